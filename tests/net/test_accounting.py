"""Every frame has one fate and every fate a counter (RIG-1, RIG-2; live-frames flood).

The sending side is taken from veth's own counters: what flood produced, less what the veth refused
(`tx_queue_N_xdp_xmit_errors`), is what the program must have seen. In skb mode a frame that veth
could not turn into an skb (`rx_queue_N_drops`) is not seen either. Then, per DESIGN.md: seen =
passed + departed + received + rx_dropped + rx_ring_full, to the frame, and nothing is unexplained.
"""

import time

import pytest
from daemon import explained, program, total
from flood import receive_drops, xmit_errors

MILLION = 1_000_000


def arrived(rig, produced, attach):
    """Frames that reached the hook of d0 according to the veth pair itself."""
    dropped = xmit_errors(rig.gen, "g0")
    if attach == "skb":
        dropped += receive_drops(rig.dut, "d0")
    return produced - dropped


def test_millions_of_frames_through_rxdrop(rig1, flood, millraced, attach, any_waiting, share):
    """Field case 28; five million if the run is a full one."""
    count = share(5 * MILLION)
    rig = rig1()
    rig.gro_on("d0")
    daemon = millraced(rig.dut, "-r", "-i", "d0", attach=attach, waiting=any_waiting)
    produced = flood(rig.gen, "gen", "g0", "--count", count).finish()["frames"]
    assert produced == count
    record = daemon.quiet_record()
    seen = program(record, "d0")["seen"]
    assert seen == explained(record, "d0"), str(record)
    assert seen == arrived(rig, produced, attach), str(record)
    assert program(record, "d0")["passed"] == 0
    assert total(record, "rx_packets") > 0
    assert total(record, "rx_bytes") == 60 * total(record, "rx_packets")
    final = daemon.stop()
    assert program(final, "d0")["seen"] == seen == explained(final, "d0"), str(final)


@pytest.mark.parametrize("size, burst", [
    (60, 10_000), pytest.param(60, MILLION // 2, marks=pytest.mark.full),
    pytest.param(1514, MILLION // 2, marks=pytest.mark.full)])
def test_bursts_and_pauses_leave_no_frame_behind(rig1, flood, millraced, attach, waiting, size,
                                                 burst):
    """Field case 28: consumed frames go back to fill for ever, also with a small memory. Twenty
    bursts, ten million frames in all if the run is a full one.
    """
    rig = rig1()
    rig.gro_on("d0")
    daemon = millraced(rig.dut, "-r", "-i", "d0", "--ring-size=512", attach=attach, waiting=waiting)
    produced = 0
    for _ in range(20):
        run = flood(rig.gen, "gen", "g0", "--count", burst, "--size", size)
        produced += run.finish()["frames"]
    record = daemon.quiet_record()
    seen = program(record, "d0")["seen"]
    assert seen == explained(record, "d0") == arrived(rig, produced, attach), str(record)
    daemon.stop()


def test_flood_through_patch_comes_out_once_and_whole(rig2, flood, millraced, attach, waiting,
                                                       share):
    """No frame corrupt, foreign or twice; each received one is sent or has a drop reason."""
    rig = rig2()
    rig.gro_on("d0", "s0")
    sink = flood(rig.sink, "sink", "s0", "--check")
    daemon = millraced(rig.dut, "-l", "-i", "d0", "-i", "d1", attach=attach, waiting=waiting)
    produced = flood(rig.gen, "gen", "g0", "--count", share(MILLION),
                     "--size", 100).finish()["frames"]
    record = daemon.quiet_record()
    seen = program(record, "d0")["seen"]
    assert seen == explained(record, "d0") == arrived(rig, produced, attach), str(record)
    dropped = sum(sum(socket["drops"].values()) for socket in record["sockets"])
    forwarded = total(record, "tx_packets", "d1")
    assert total(record, "rx_packets", "d0") == forwarded + dropped, str(record)
    refused_by_veth = rig.dut.link("d1")["stats64"]["tx"]["dropped"]
    daemon.stop()
    got = sink.stop()
    assert (got["foreign"], got["corrupt"], got["duplicates"], got["late"]) == (0, 0, 0, 0), got
    assert got["fresh"] == forwarded - refused_by_veth, str(record)
    assert got["fresh"] > 1000


def test_flood_through_l2fwd_balances(rig1, flood, millraced, attach, any_waiting):
    rig = rig1()
    rig.gro_on("d0")
    daemon = millraced(rig.dut, "-l", "-i", "d0", attach=attach, waiting=any_waiting)
    flood(rig.gen, "gen", "g0", "--count", 1_000_000).finish()
    record = daemon.quiet_record()
    dropped = sum(sum(socket["drops"].values()) for socket in record["sockets"])
    assert program(record, "d0")["seen"] == explained(record, "d0")
    assert total(record, "rx_packets") == total(record, "tx_packets") + dropped, str(record)
    daemon.stop()


def test_flood_both_ways_through_patch_balances(rig2, flood, millraced, attach, waiting):
    rig = rig2()
    rig.gro_on("d0", "d1")
    daemon = millraced(rig.dut, "-l", "-i", "d0", "-i", "d1", attach=attach, waiting=waiting)
    there = flood(rig.gen, "gen", "g0", "--seconds", 1.5)
    back = flood(rig.sink, "gen", "s0", "--seconds", 1.5)
    there.finish(), back.finish()
    record = daemon.quiet_record()
    for port in rig.ports:
        assert program(record, port)["seen"] == explained(record, port), str(record)
        assert total(record, "tx_packets", port) > 0
    daemon.stop()


@pytest.mark.parametrize("flags", [["-r", "-i", "d0"], ["-l", "-i", "d0"],
                                   ["-l", "-i", "d0", "-i", "d1"]],
                         ids=["rxdrop", "l2fwd", "patch"])
def test_sigterm_under_flood_ends_in_time(rig2, flood, millraced, attach, waiting, flags):
    """Frames never stop coming: the drain must end all the same, and the sums still be right."""
    rig = rig2()
    rig.gro_on("d0")
    generator = flood(rig.gen, "gen", "g0")
    daemon = millraced(rig.dut, *flags, attach=attach, waiting=waiting)
    time.sleep(0.3)
    final = daemon.stop()
    generator.stop()
    assert total(final, "rx_packets", "d0") > 0
    assert program(final, "d0")["seen"] == explained(final, "d0"), str(final)


def test_tx_part_of_kernel_is_empty_soon_after_traffic(rig2, flood, millraced, attach, waiting):
    """Copy mode: nothing of what was sent stays with the kernel once traffic has stopped. Of what
    is received one frame a socket may: the kernel keeps it ready when it met a full RX ring.
    """
    rig = rig2()
    rig.gro_on("d0")
    daemon = millraced(rig.dut, "-l", "-i", "d0", "-i", "d1", attach=attach, waiting=waiting)
    flood(rig.gen, "gen", "g0", "--count", 200_000).finish()
    record = daemon.quiet_record()
    for socket in record["sockets"]:
        assert (socket["rx"], socket["tx"], socket["completion"]) == (0, 0, 0), str(record)
    held = sum(socket["fill"] for socket in record["sockets"])
    worker = record["workers"][0]
    assert 0 <= worker["kernel"] <= len(record["sockets"]), str(record)
    assert worker["pool"] + held + worker["kernel"] == worker["total"], str(record)
    dropped = sum(sum(socket["drops"].values()) for socket in record["sockets"])
    assert total(record, "tx_packets") == total(record, "rx_packets") - dropped, str(record)
    daemon.stop()
