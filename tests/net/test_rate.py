"""--pps: the rate is kept over 10 s, without a clump, whatever the poller does when it waits; -T: cycles."""

import time

import pytest
from daemon import total

SECONDS = 10
PPS = 5000
CLUMP = 0.010  # no more frames than are due in this time may come at once
AT_ONCE = 0.001
# {name: flags of the waiting strategy}
STRATEGIES = {"adaptive": [], "spin": ["--wait=spin"], "poll": ["-p"],
              "busy-poll": ["-B", "--wait=spin"], "poll and busy-poll": ["-p", "-B"]}


def arrivals(wire, quiet=0.3):
    """The times at which frames came, until none did for `quiet` seconds."""
    times = []
    while (item := wire.receive(quiet)) is not None:
        times.append(item[1])
    return times


def largest_clump(times, window=AT_ONCE):
    """The most frames that came within any `window` seconds."""
    most = first = 0
    for last, when in enumerate(times):
        while times[first] < when - window:
            first += 1
        most = max(most, last - first + 1)
    return most


@pytest.mark.alone
def test_the_rate_is_kept_in_every_strategy(rig1, tap, millraced):
    """All at once, so that they also take the CPUs from each other."""
    rigs = {name: rig1() for name in STRATEGIES}
    wires = {name: tap(rig.gen, "g0") for name, rig in rigs.items()}
    daemons = {name: millraced(rig.dut, "-t", "-i", "d0", f"--pps={PPS}", *STRATEGIES[name])
               for name, rig in rigs.items()}
    start = {name: (time.monotonic(), total(one.next_record(), "tx_packets"))
             for name, one in daemons.items()}
    time.sleep(SECONDS)
    for name, one in daemons.items():
        first, last = one.records[0], one.next_record()
        took = last["seconds"] - first["seconds"]
        sent = total(last, "tx_packets") - total(first, "tx_packets")
        assert took >= SECONDS - 1 and start
        assert abs(sent / took / PPS - 1) <= 0.01, f"{name}: {sent / took:.0f} frames a second"
    for name, one in daemons.items():
        final = one.stop()
        times = arrivals(wires[name])
        assert len(times) == total(final, "tx_packets"), name
        # Twice, for the veth's receiving side, which is kept off its CPU as well. (The sending side
        # alone: tests/fwd/test_pacer.c.)
        assert largest_clump(times) <= 2 * CLUMP * PPS, name


@pytest.mark.alone
def test_a_paced_poller_sleeps_while_its_frames_cannot_leave(rig1, millraced):
    """And when the link is back it catches up with a second at most, not with all that it missed."""
    rig = rig1()
    daemon = millraced(rig.dut, "-t", "-i", "d0", "--pps=20000", "-p")
    daemon.next_record()
    rig.dut.link_down("d0")
    time.sleep(0.5)
    before, start = daemon.cpu_seconds(), time.monotonic()
    time.sleep(3)
    assert (daemon.cpu_seconds() - before) / (time.monotonic() - start) < 0.05
    down = total(daemon.next_record(), "tx_packets")
    rig.dut.link_up("d0")
    daemon.next_record()
    later = daemon.next_record()
    assert 20000 * 0.5 < total(later, "tx_packets") - down < 20000 * 3.5 + 2048
    daemon.stop()


# Kept off its CPU for a slice of 3 ms, a poller sends what got due in it at once: 250 a second, 4 ms apart, are
# even only where the tests beside it do not want the CPUs as well.
@pytest.mark.parametrize("pps", [1, 7, pytest.param(250, marks=pytest.mark.alone)])
def test_a_low_rate_is_even(rig1, tap, millraced, attach, waiting, pps):
    rig = rig1()
    wire = tap(rig.gen, "g0")
    daemon = millraced(rig.dut, "-t", "-i", "d0", f"--pps={pps}", "-C", max(3, pps // 2),
                       attach=attach, waiting=waiting)
    final = daemon.ended(10)
    times = arrivals(wire)
    assert len(times) == total(final, "tx_packets") == max(3, pps // 2)
    gaps = sorted(b - a for a, b in zip(times, times[1:]))
    assert abs(gaps[len(gaps) // 2] * pps - 1) <= 0.5, gaps


def test_two_queues_share_the_rate(rig1, millraced):
    rig = rig1(queues=2)
    daemon = millraced(rig.dut, "-t", "-i", "d0", "-q", "0,1", "--pps=2000", "-p", "-d", "3")
    final = daemon.ended(10)
    assert 0.95 * 6000 <= total(final, "tx_packets") <= 6100
    one, other = (socket["tx_packets"] for socket in final["sockets"])
    assert abs(one - other) <= 0.1 * one


def test_a_cycle_sends_one_batch_and_is_measured(rig1, tap, millraced, attach):
    rig = rig1()
    wire = tap(rig.gen, "g0")
    daemon = millraced(rig.dut, "-t", "-i", "d0", "-T", 20000, "-b", 4, "-d", 2, attach=attach)
    final = daemon.ended(10)
    [worker] = final["workers"]
    cycle = worker["cycle"]
    assert cycle["period_ns"] == 20_000_000
    assert 90 <= cycle["cycles"] <= 101
    assert 0 <= cycle["min_ns"] <= cycle["average_ns"] <= cycle["max_ns"]
    assert total(final, "tx_packets") == 4 * cycle["cycles"]
    times = arrivals(wire)
    assert len(times) == 4 * cycle["cycles"]
    begins = times[::4]
    gaps = sorted(b - a for a, b in zip(begins, begins[1:]))
    assert abs(gaps[len(gaps) // 2] - 0.020) < 0.002, gaps


def test_a_cycle_of_a_second_ends_when_told(rig1, millraced):
    """A sleep until the next cycle is not waited for."""
    rig = rig1()
    daemon = millraced(rig.dut, "-t", "-i", "d0", "-T", 3_000_000)
    daemon.next_record()
    daemon.stop()


def test_completions_that_do_not_come_are_waited_for_as_long_as_told(rig1, millraced):
    """-C with -O: the device goes down in the middle; exit 1 when nothing was completed for so long."""
    rig = rig1()
    daemon = millraced(rig.dut, "-t", "-i", "d0", "-C", 500, "--pps=100", "-O", 1)
    daemon.next_record()
    rig.dut.link_down("d0")
    began = time.monotonic()
    final = daemon.ended(10, code=1)
    assert time.monotonic() - began >= 4.5, "the rest is generated first, then it waits"
    assert "frames not completed" in daemon.stderr
    assert total(final, "tx_packets") < 500
