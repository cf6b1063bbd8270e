"""Every mode moves exactly what it says: rxdrop, l2fwd on RIG-1, patch on RIG-2, native and skb,
spinning and in poll. (txpush: test_txpush.py.)
"""

import frames
import pytest
from daemon import explained, program, total
from wire import exchange

COUNT = 5000


def test_rxdrop_counts_every_frame_and_byte(rig1, tap, millraced, attach, waiting):
    rig = rig1()
    wire = tap(rig.gen, "g0")
    daemon = millraced(rig.dut, "-r", "-i", "d0", attach=attach, waiting=waiting)
    sizes = [60 + n % 1000 for n in range(COUNT)]
    wire.send_all(frames.numbered(n, size) for n, size in enumerate(sizes))
    record = daemon.quiet_record()
    assert program(record, "d0")["seen"] == COUNT
    assert program(record, "d0")["passed"] == 0
    assert explained(record, "d0") == COUNT
    assert total(record, "rx_packets") == COUNT, str(record)
    assert total(record, "rx_bytes") == sum(sizes)
    assert total(record, "tx_packets") == 0
    final = daemon.stop()
    assert total(final, "rx_packets") == COUNT
    assert wire.drain() == [], "rxdrop sent something"


def test_rxdrop_is_the_default_mode(rig1, tap, millraced):
    rig = rig1()
    daemon = millraced(rig.dut, "-i", "d0")
    tap(rig.gen, "g0").send_all(frames.numbered(n) for n in range(100))
    assert daemon.quiet_record()["sockets"][0]["mode"] == "rxdrop"
    assert total(daemon.stop(), "rx_packets") == 100


def test_l2fwd_swaps_macs_and_sends_back(rig1, tap, millraced, attach, waiting):
    rig = rig1()
    wire = tap(rig.gen, "g0")
    daemon = millraced(rig.dut, "-l", "-i", "d0", attach=attach, waiting=waiting)
    sent = [frames.numbered(n, 60 + n % 200) for n in range(COUNT)]
    exchange(wire, wire, sent, [frames.swapped(frame) for frame in sent])
    final = daemon.stop()
    assert total(final, "rx_packets") == total(final, "tx_packets") == COUNT
    assert total(final, "rx_bytes") == total(final, "tx_bytes") == sum(map(len, sent))


def test_patch_forwards_unchanged_both_ways(rig2, tap, millraced, attach, waiting):
    rig = rig2()
    near, far = tap(rig.gen, "g0"), tap(rig.sink, "s0")
    daemon = millraced(rig.dut, "-l", "-i", "d0", "-i", "d1", attach=attach, waiting=waiting)
    there = [frames.numbered(n, 60 + n % 200) for n in range(COUNT)]
    back = [frames.numbered(n, 300, dst=frames.ALICE, src=frames.BOB) for n in range(COUNT // 2)]
    exchange(near, far, there, there)
    exchange(far, near, back, back)
    final = daemon.stop()
    for rx, tx, count in (("d0", "d1", len(there)), ("d1", "d0", len(back))):
        assert total(final, "rx_packets", rx) == total(final, "tx_packets", tx) == count
        assert program(final, rx)["seen"] == count


def test_patch_forwards_broadcast_multicast_and_foreign_addresses(rig2, tap, millraced, attach):
    rig = rig2()
    near, far = tap(rig.gen, "g0"), tap(rig.sink, "s0")
    daemon = millraced(rig.dut, "-l", "-i", "d0", "-i", "d1", attach=attach)
    sent = [frames.numbered(n, dst=dst) for n, dst in enumerate((
        frames.BROADCAST, bytes.fromhex("01005e000001"), bytes.fromhex("0180c2000000"),
        rig.macs["d0"], rig.macs["s0"], frames.BOB))]
    exchange(near, far, sent, sent)
    exchange(far, near, sent, sent)
    daemon.stop()


def test_patch_sets_promiscuous_mode_and_restores_it(rig2, millraced):
    rig = rig2()
    rig.dut.ip("link", "set", "d1", "promisc", "on")
    before = {port: rig.dut.promiscuity(port) for port in rig.ports}
    assert before == {"d0": 0, "d1": 1}
    daemon = millraced(rig.dut, "-l", "-i", "d0", "-i", "d1")
    during = {port: rig.dut.promiscuity(port) for port in rig.ports}
    assert during["d0"] > 0 and during["d1"] > 0
    daemon.stop()
    assert {port: rig.dut.promiscuity(port) for port in rig.ports} == before


@pytest.mark.parametrize("flags", [["-b1"], ["-b8"], ["-b256"], ["--ring-size=16"],
                                   ["--ring-size=16384"]], ids=" ".join)
def test_patch_forwards_at_any_batch_and_ring(rig2, tap, millraced, flags):
    rig = rig2()
    near, far = tap(rig.gen, "g0"), tap(rig.sink, "s0")
    daemon = millraced(rig.dut, "-l", "-i", "d0", "-i", "d1", *flags)
    sent = [frames.numbered(n) for n in range(1000)]
    exchange(near, far, sent, sent, window=8)
    daemon.stop()


@pytest.mark.parametrize("flags", [
    ["-f", "2048", "--ring-size=256"],
    ["-f", "4096", "--ring-size=64", "--frames-per-queue=512"],
], ids=["small-frames", "small-rings"])
def test_patch_runs_many_times_round_its_memory(rig2, tap, millraced, attach, flags):
    """Field cases 23 and 41: more frames than the UMEM holds, one way only: the receiving port's
    fill must not starve.
    """
    rig = rig2()
    near, far = tap(rig.gen, "g0"), tap(rig.sink, "s0")
    daemon = millraced(rig.dut, "-l", "-i", "d0", "-i", "d1", *flags, attach=attach)
    sent = [frames.numbered(n, 1514 if n % 10 == 0 else 60) for n in range(20000)]
    exchange(near, far, sent, sent)
    daemon.stop()
