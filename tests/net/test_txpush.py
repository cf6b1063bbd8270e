"""txpush (RIG-1): exactly -C frames, each a valid IPv4/UDP frame of -s bytes less the FCS; nothing
stays in a partial batch; the host keeps its receive side.
"""

import statistics
import time

import frames
import pytest
from daemon import program, total
from lab import SLOWNESS


def push(millraced, rig, *flags, attach="native", waiting="adaptive"):
    """A run that ends by itself with -C; returns its final record."""
    daemon = millraced(rig.dut, "-t", "-i", "d0", *flags, attach=attach, waiting=waiting,
                       ready=False)
    return daemon.ended(20)


@pytest.mark.parametrize("size", [64, 65, 128, 1000, 1518])
def test_frames_are_valid_and_exactly_as_long_as_asked(rig1, tap, millraced, attach, size):
    rig = rig1()
    wire = tap(rig.gen, "g0")
    final = push(millraced, rig, "-C", 500, "-s", size, attach=attach)
    got = wire.drain()
    assert len(got) == 500, f"tap lost {wire.lost()}"
    assert total(final, "tx_packets") == 500
    assert total(final, "tx_bytes") == 500 * (size - 4)
    for frame in got:
        assert len(frame) == size - 4
        frames.check_udp(frame)
        assert frame[6:12] == rig.macs["d0"], "source is the interface's own"


def test_default_size_is_64_with_fcs(rig1, tap, millraced):
    rig = rig1()
    wire = tap(rig.gen, "g0")
    push(millraced, rig, "-C", 10)
    assert [len(frame) for frame in wire.drain()] == [60] * 10


@pytest.mark.parametrize("name", ["-t", "--txonly", "--txpush"])
def test_all_names_of_the_mode(rig1, tap, millraced, name):
    rig = rig1()
    wire = tap(rig.gen, "g0")
    final = millraced(rig.dut, name, "-i", "d0", "-C", 3, ready=False).ended(10)
    assert len(wire.drain()) == 3
    assert final["sockets"][0]["mode"] in ("txpush", "txonly")


@pytest.mark.parametrize("count", [1, 63, 64, 65, 179, 10000])
@pytest.mark.parametrize("batch", [1, 8, 64, 256])
def test_count_is_exact_at_any_batch(rig1, tap, millraced, batch, count):
    rig = rig1()
    wire = tap(rig.gen, "g0")
    final = push(millraced, rig, "-C", count, "-b", batch)
    assert len(wire.drain()) == count, f"tap lost {wire.lost()}"
    assert total(final, "tx_packets") == count


def repeated(rig, wire, millraced, runs, **how):
    """Start txpush of 179 frames at batch 64 `runs` times; frames that arrived, seconds a run."""
    arrived, seconds = 0, []
    for _ in range(runs):
        start = time.monotonic()
        push(millraced, rig, "-C", 179, "-b", 64, **how)
        seconds.append(time.monotonic() - start)
        arrived += len(wire.drain(0.01))
    return arrived + len(wire.drain()), seconds


@pytest.mark.parametrize("runs", [20, pytest.param(200, marks=pytest.mark.full)])
def test_179_frames_at_batch_64_again_and_again(rig1, tap, millraced, attach, waiting, runs):
    """Field case 33: exactly as many each time, and no run waits for something."""
    rig = rig1()
    arrived, seconds = repeated(rig, tap(rig.gen, "g0"), millraced, runs, attach=attach,
                                waiting=waiting)
    assert arrived == runs * 179
    assert statistics.median(seconds) < 1 * SLOWNESS, "a run of 179 frames waits for something"


@pytest.mark.alone
def test_rate_does_not_collapse_with_batch(rig1, tap, millraced, attach):
    """Field case 33: a forgotten kick shows as 100 or 1000 ms a batch."""
    rig = rig1()
    wire = tap(rig.gen, "g0")
    for batch in (1, 8, 64, 256):
        start = time.monotonic()
        push(millraced, rig, "-C", 20000, "-b", batch, attach=attach)
        took = time.monotonic() - start
        assert len(wire.drain()) == 20000, f"batch {batch}, tap lost {wire.lost()}"
        assert took < 2 * SLOWNESS, f"batch {batch}: {took:.2f} s"


def test_1000_frames_then_idle_all_arrive_at_once(rig1, tap, millraced, attach, waiting):
    """Field case 35. One kick moves 32: the rest must follow without new input, in 100 ms."""
    rig = rig1()
    wire = tap(rig.gen, "g0")
    spans = []
    for _ in range(3):
        daemon = millraced(rig.dut, "-t", "-i", "d0", "-C", 1000, "-b", 64, attach=attach,
                           waiting=waiting, ready=False)
        first = wire.receive(5)
        assert first, str(daemon)
        stamps = [first[1]]
        while item := wire.receive(0.5):
            stamps.append(item[1])
        daemon.ended(5)
        assert len(stamps) == 1000
        spans.append(stamps[-1] - stamps[0])
    assert statistics.median(spans) < 0.1 * SLOWNESS, spans


def test_two_interfaces_share_the_count(rig2, tap, millraced):
    """-C is exact with two ports as well: what is counted as sent has arrived."""
    rig = rig2()
    near, far = tap(rig.gen, "g0"), tap(rig.sink, "s0")
    final = millraced(rig.dut, "-t", "-i", "d0", "-i", "d1", "-C", 100, ready=False).ended(10)
    arrived = {"d0": len(near.drain()), "d1": len(far.drain())}
    assert arrived == {port: total(final, "tx_packets", port) for port in rig.ports}
    assert sum(arrived.values()) == 100, "-C counts over all queues together"


def test_host_keeps_receiving_during_txpush(rig1, millraced, attach, waiting):
    """Field case 31: ping from the peer is answered before, during and after; passed frames are
    counted.
    """
    rig = rig1(addresses={"g0": "10.78.0.1/24", "d0": "10.78.0.2/24"})

    def ping(count):
        out = rig.gen.run("ping", "-c", count, "-i", 0.1, "-W", 2, "10.78.0.2")
        assert f" {count} received" in out, out

    ping(1)
    daemon = millraced(rig.dut, "-t", "-i", "d0", attach=attach, waiting=waiting)
    ping(10)
    record = daemon.quiet_record()
    assert total(record, "tx_packets") > 1000, "it was pushing meanwhile"
    assert program(record, "d0")["passed"] >= 10
    assert program(record, "d0")["passed"] == program(record, "d0")["seen"]
    assert total(record, "rx_packets") == 0
    daemon.stop()
    ping(1)


def test_txpush_without_count_ends_on_sigterm_with_everything_sent(rig1, tap, millraced, attach):
    rig = rig1()
    before = received(rig)
    daemon = millraced(rig.dut, "-t", "-i", "d0", attach=attach)
    time.sleep(0.5)
    final = daemon.stop()
    assert total(final, "tx_packets") > 0
    assert received(rig) - before == total(final, "tx_packets"), str(daemon)


def received(rig):
    return rig.gen.link("g0")["stats64"]["rx"]["packets"]
