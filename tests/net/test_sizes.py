"""Frames are bytes: every size from 60 to 1514, VLAN tags in band, each byte-identical.

l2fwd on RIG-1, patch on RIG-2, native and skb.
"""

import frames
import pytest
from wire import exchange

EVERY_SIZE = range(frames.MIN_SIZE, frames.MAX_SIZE + 1)
TAGS = {
    "vlan": [(frames.VLAN, 100)],
    "vlan-priority-and-dei": [(frames.VLAN, 0xFFFE)],
    "priority-tag": [(frames.VLAN, 0x6000)],
    "qinq": [(frames.QINQ, 200), (frames.VLAN, 100)],
    "old-qinq": [(frames.VLAN, 200), (frames.VLAN, 100)],
    "three-tags": [(frames.QINQ, 3), (frames.QINQ, 2), (frames.VLAN, 1)],
}


def every_size():
    return [frames.numbered(n, size) for n, size in enumerate(EVERY_SIZE)]


def test_every_size_through_l2fwd(rig1, tap, millraced, attach):
    rig = rig1()
    wire = tap(rig.gen, "g0")
    daemon = millraced(rig.dut, "-l", "-i", "d0", attach=attach)
    exchange(wire, wire, every_size(), [frames.swapped(frame) for frame in every_size()])
    daemon.stop()


def test_every_size_through_patch_both_ways(rig2, tap, millraced, attach):
    rig = rig2()
    near, far = tap(rig.gen, "g0"), tap(rig.sink, "s0")
    daemon = millraced(rig.dut, "-l", "-i", "d0", "-i", "d1", attach=attach)
    exchange(near, far, every_size(), every_size())
    exchange(far, near, every_size(), every_size())
    daemon.stop()


def test_frames_shorter_than_ethernet_allows(rig2, tap, millraced, attach):
    """Virtual links carry them; 14 bytes is all that a packet socket can send."""
    rig = rig2()
    near, far = tap(rig.gen, "g0"), tap(rig.sink, "s0")
    daemon = millraced(rig.dut, "-l", "-i", "d0", "-i", "d1", attach=attach)
    sent = [frames.numbered(size, 60)[:size] for size in range(14, 60)]
    exchange(near, far, sent, sent)
    daemon.stop()


@pytest.mark.parametrize("tags", TAGS.values(), ids=TAGS.keys())
def test_tags_in_band_through_patch(rig2, tap, millraced, attach, tags):
    """Field case 22 (a)."""
    rig = rig2()
    near, far = tap(rig.gen, "g0"), tap(rig.sink, "s0")
    daemon = millraced(rig.dut, "-l", "-i", "d0", "-i", "d1", attach=attach)
    sent = [frames.tagged(frames.numbered(size, size), *tags) for size in (60, 64, 500, 1500)]
    exchange(near, far, sent, sent)
    exchange(far, near, sent, sent)
    daemon.stop()


@pytest.mark.parametrize("tags", [TAGS["vlan"], TAGS["qinq"]], ids=["vlan", "qinq"])
def test_tags_in_band_through_l2fwd(rig1, tap, millraced, attach, tags):
    """Field case 22 (a)."""
    rig = rig1()
    wire = tap(rig.gen, "g0")
    daemon = millraced(rig.dut, "-l", "-i", "d0", attach=attach)
    sent = [frames.tagged(frames.numbered(size, size), *tags) for size in (60, 500, 1500)]
    exchange(wire, wire, sent, [frames.swapped(frame) for frame in sent])
    daemon.stop()
