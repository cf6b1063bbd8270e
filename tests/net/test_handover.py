"""Ports of unequal width: who has no TX queue of its number hands over to a worker that has one.

The narrow port is d1; flows come in on every queue of the wide one, both ways at once, exactly.
"""

import re

import frames
import pytest
from daemon import total
from test_queues import FLOWS, EACH, check_flows, flows, move, packets_by_queue, peers


def narrow(rig, width, rx=None):
    """Give d1 `width` queues each way (or `rx` receiving ones), and its far end no more than that."""
    rig.sink.run("ethtool", "-L", "s0", "rx", width, "tx", width)
    rig.dut.run("ethtool", "-L", "d1", "rx", rx or width, "tx", width)


def handed(record):
    return sum(worker["handed"] for worker in record["workers"])


def drops(record):
    return sum(sum(socket["drops"].values()) for socket in record["sockets"])


@pytest.mark.parametrize("wide, width", [(4, 1), (4, 2), (2, 1)])
def test_a_wide_and_a_narrow_port_both_ways_exact(rig2, tap, task, millraced, attach, waiting, wide,
                                                  width):
    rig = rig2(**peers(wide, attach))
    narrow(rig, width)
    near, far = tap(rig.gen, "g0"), tap(rig.sink, "s0")
    daemon = millraced(rig.dut, "-l", "-i", "d0", "-i", "d1", "-q", "all", attach=attach,
                       waiting=waiting)
    for queue in range(width, wide):
        assert re.search(rf"d1 q{queue}: .* hands over to worker {(queue - width) % width},",
                         daemon.stderr), daemon.stderr
    there, back = flows(), flows(frames.ALICE, frames.BOB)
    moves = [task(move, near, far, there), task(move, far, near, back)]
    arrived = [one.result(120) for one in moves]
    final = daemon.stop()
    check_flows(arrived[0], there, final)
    check_flows(arrived[1], back, final)
    queues = packets_by_queue(final, "d0")
    assert len(queues) == wide and all(queues.values()), queues
    assert total(final, "tx_packets", "d1") == FLOWS * EACH == total(final, "rx_packets", "d0")
    assert handed(final) == sum(count for queue, count in queues.items() if queue >= width)
    assert drops(final) == 0


def test_a_lone_frame_does_not_wait(rig2, tap, millraced, attach):
    """Both workers asleep: the hand-over wakes the one that sends, within a moment."""
    rig = rig2(**peers(4, attach))
    narrow(rig, 1)
    near, far = tap(rig.gen, "g0"), tap(rig.sink, "s0")
    daemon = millraced(rig.dut, "-l", "-i", "d0", "-i", "d1", "-q", "all", attach=attach,
                       waiting="poll")
    for sent in flows()[:200]:
        near.send_all([sent])
        assert far.frames(1, 2) == [sent]
    final = daemon.stop()
    assert handed(final) > 0


def test_a_narrow_port_sends_back_what_its_rx_queues_get(rig1, tap, millraced, attach, waiting):
    """Field case 9: l2fwd on two RX queues and one TX queue; nothing stays on the second."""
    rig = rig1(**peers(2, attach))
    rig.dut.run("ethtool", "-L", "d0", "rx", 2, "tx", 1)
    wire = tap(rig.gen, "g0")
    daemon = millraced(rig.dut, "-l", "-i", "d0", "-q", "all", attach=attach, waiting=waiting)
    sent = flows()
    got = []
    for start in range(0, len(sent), 64):
        wire.send_all(sent[start:start + 64])
        got += wire.frames(len(sent[start:start + 64]), 2)
    final = daemon.stop()
    check_flows([frames.swapped(frame) for frame in got], sent, final)
    queues = packets_by_queue(final, "d0")
    assert handed(final) == queues[1] > 0
    assert packets_by_queue(final, "d0", "tx_packets")[0] == len(sent)


def test_a_port_with_tx_queues_only_needs_no_hand_over(rig2, tap, millraced, attach):
    """The kernel lets a socket send on a queue that has no RX side: each worker sends for itself."""
    rig = rig2(**peers(4, attach))
    rig.sink.run("ethtool", "-L", "s0", "tx", 1)
    rig.dut.run("ethtool", "-L", "d1", "rx", 1)
    near, far = tap(rig.gen, "g0"), tap(rig.sink, "s0")
    daemon = millraced(rig.dut, "-l", "-i", "d0", "-i", "d1", "-q", "all", attach=attach,
                       waiting="poll")
    there, back = flows(), flows(frames.ALICE, frames.BOB)
    arrived = move(near, far, there), move(far, near, back)
    final = daemon.stop()
    check_flows(arrived[0], there, final)
    check_flows(arrived[1], back, final)
    assert handed(final) == 0
    sent_on = packets_by_queue(final, "d1", "tx_packets")
    assert sent_on == packets_by_queue(final, "d0") and len(sent_on) == 4


@pytest.mark.parametrize("size", [60, 1514])
def test_a_receiver_that_cannot_keep_up_drops_are_counted(rig2, tap, millraced, attach, size):
    """Everything that comes in at full speed goes out or has a name."""
    rig = rig2(**peers(4, attach))
    narrow(rig, 1)
    near = tap(rig.gen, "g0")
    daemon = millraced(rig.dut, "-l", "-i", "d0", "-i", "d1", "-q", "all", "--ring-size=64",
                       attach=attach, waiting="poll")
    sent = [frame + bytes(size - len(frame)) for frame in flows()]
    for _ in range(5):
        near.send_all(sent)
    record = daemon.quiet_record()
    assert total(record, "rx_packets", "d0") == total(record, "tx_packets", "d1") + drops(record)
    assert all(worker["balance"] == 0 and worker["hand_over"] == 0 for worker in record["workers"])
    daemon.stop()


def test_large_packets_cross_whole(rig2, tap, millraced, attach):
    """-F: a packet of several descriptors is handed over whole."""
    rig = rig2(**peers(2, attach))
    narrow(rig, 1)
    for end in ("g0", "s0", "d0", "d1"):
        rig._owner(end).ip("link", "set", end, "mtu", 9000)
    near, far = tap(rig.gen, "g0"), tap(rig.sink, "s0")
    daemon = millraced(rig.dut, "-l", "-i", "d0", "-i", "d1", "-q", "all", "-F", attach=attach,
                       waiting="poll")
    for flow in range(40):
        data = bytes((flow + i) % 251 for i in range(100 + 220 * flow))
        packet = frames.udp("198.18.0.1", "198.18.0.2", 1024 + flow, 9, data)
        frame = frames.ethernet(frames.BOB, frames.ALICE, frames.IPV4, packet)
        near.send_all([frame])
        assert far.frames(1, 2) == [frame]
    final = daemon.stop()
    assert handed(final) > 0 and drops(final) == 0
