"""A process that is stopped 200 ms in every second under flood recovers by itself (RIG-1, RIG-2).

After the flood the fill ring is full again (>= 90 %) and nothing is lost. Records come once a
second, so the flood is stopped 150 ms before one is due: that record shows the ring then.
"""

import time

import pytest
from daemon import explained, program, stopped, total

RING = 2048
STOCK = RING + 64  # what is out for receiving: the RX ring and a batch


def stop_and_go(daemon, seconds):
    for _ in range(seconds):
        with stopped(daemon.pid):
            time.sleep(0.2)
        time.sleep(0.8)


def record_100_ms_after(daemon, generator):
    """End the flood just before a record is due and return that record (a later one if late)."""
    daemon.next_record()
    due = daemon.out[-1][0] + 1.0
    time.sleep(max(0, due - 0.15 - time.monotonic()))
    generator.stop()
    ended = time.monotonic()
    record = daemon.next_record()
    if daemon.out[-1][0] - ended < 0.1:
        record = daemon.next_record()
    return record


def fills(record, interface):
    return [socket["fill"] for socket in record["sockets"] if socket["interface"] == interface]


@pytest.mark.parametrize("mode, waiting", [("-r", "spin"), ("-l", "poll")])
def test_fill_recovers_after_stops_under_flood(rig1, flood, millraced, attach, waiting, mode):
    """Field case 29."""
    rig = rig1()
    rig.gro_on("d0")
    daemon = millraced(rig.dut, mode, "-i", "d0", f"--ring-size={RING}", attach=attach,
                       waiting=waiting)
    generator = flood(rig.gen, "gen", "g0")
    stop_and_go(daemon, 2)
    before = total(daemon.next_record(), "rx_packets")
    record = record_100_ms_after(daemon, generator)
    assert total(record, "rx_packets") > before, "traffic resumed without a restart"
    assert all(fill >= 0.9 * STOCK for fill in fills(record, "d0")), str(record)
    missed = total(record, "rx_ring_full") + total(record, "rx_dropped")
    assert missed > 0, "200 ms without a reader must show in a counter"
    assert program(daemon.quiet_record(), "d0")["unexplained"] == 0
    final = daemon.stop()
    assert program(final, "d0")["seen"] == explained(final, "d0")


def test_fill_recovers_with_bursts_larger_than_a_refill(rig2, flood, millraced, attach):
    """Field case 29: batch 256 through a patch with small rings."""
    rig = rig2()
    rig.gro_on("d0")
    daemon = millraced(rig.dut, "-l", "-i", "d0", "-i", "d1", "-b", 256, "--ring-size=256",
                       attach=attach)
    generator = flood(rig.gen, "gen", "g0")
    stop_and_go(daemon, 2)
    record = record_100_ms_after(daemon, generator)
    assert all(fill >= 0.9 * (256 + 256) for fill in fills(record, "d0") + fills(record, "d1")), str(record)
    daemon.stop()


def test_fill_is_stocked_before_the_first_frame(rig2, millraced, attach):
    rig = rig2()
    daemon = millraced(rig.dut, "-l", "-i", "d0", "-i", "d1", f"--ring-size={RING}", attach=attach)
    record = daemon.next_record()
    assert fills(record, "d0") == fills(record, "d1") == [STOCK]
    daemon.stop()


def test_fill_is_stocked_for_txpush_too(rig1, millraced, attach):
    """Field case 31: some drivers fail when a socket that only sends has an empty fill ring."""
    rig = rig1()
    daemon = millraced(rig.dut, "-t", "-i", "d0", f"--ring-size={RING}", attach=attach)
    assert fills(daemon.next_record(), "d0") == [STOCK]
    daemon.stop()
