"""The rig itself, without millraced: with a kernel bridge in the dut as the forwarder (RIG-2).

If these fail, the machine or the helpers are at fault, and the other files' failures mean nothing.
"""

import statistics
import time

import frames
import pytest
from wire import exchange


@pytest.fixture
def bridged(rig2, tap):
    rig = rig2()
    rig.dut.ip("link", "add", "name", "bridge0", "type", "bridge", "forward_delay", 0,
               "mcast_snooping", 0)
    for port in rig.ports:
        rig.dut.ip("link", "set", port, "master", "bridge0")
    rig.dut.link_up("bridge0")
    time.sleep(0.1)
    return tap(rig.gen, "g0"), tap(rig.sink, "s0")


def test_bridge_forwards_every_size(bridged):
    near, far = bridged
    sent = [frames.numbered(n, size) for n, size in
            enumerate(range(frames.MIN_SIZE, frames.MAX_SIZE + 1, 7))]
    exchange(near, far, sent, sent)
    answers = [frames.swapped(frame) for frame in sent]
    exchange(far, near, answers, answers)


def test_taps_put_vlan_tags_back(bridged):
    near, far = bridged
    plain = frames.numbered(1, 80)
    sent = [frames.tagged(plain, *tags) for tags in
            ([(frames.VLAN, 0x2064)], [(frames.QINQ, 5), (frames.VLAN, 0xE00A)],
             [(frames.VLAN, 0)])]
    exchange(near, far, sent, sent)


def test_latency_clock_is_sound(bridged):
    near, far = bridged
    delays = []
    for n in range(7):
        before = time.time()
        assert near.send(frames.numbered(n))
        frame, arrived = far.receive()
        assert frames.number_of(frame) == n
        delays.append(arrived - before)
    assert 0 <= statistics.median(delays) < 0.005, delays


def test_no_frame_of_the_kernels_own(rig2, tap):
    """Exact counts need silence: neither the stacks nor their neighbour discovery may speak."""
    rig = rig2()
    taps = [tap(rig.gen, "g0"), tap(rig.dut, "d0"), tap(rig.dut, "d1"), tap(rig.sink, "s0")]
    rig.dut.link_down("d0")
    rig.dut.link_up("d0")
    time.sleep(1)
    assert [one.drain(0) for one in taps] == [[], [], [], []]


def test_numbers_and_checksums_of_built_frames():
    frame = frames.udp_flow(3, 4)
    frames.check_udp(frame[:14 + 36])
    with pytest.raises(AssertionError):
        frames.check_udp(frame[:49] + bytes([frame[49] ^ 1]))
    assert frames.number_of(frames.tagged(frames.numbered(7), (frames.QINQ, 1))) == 7
