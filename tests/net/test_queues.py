"""Several queues (veths with 2 or 4): each frame comes on the queue it came, none is lost between.

200 UDP flows spread over the queues by the kernel's hash.
"""

import collections

import frames
import pytest
from daemon import explained, program, total

FLOWS, EACH = 200, 20


def flows(dst=frames.BOB, src=frames.ALICE):
    return [frames.udp_flow(flow, seq, dst, src) for seq in range(EACH) for flow in range(FLOWS)]


def peers(queues, attach):
    """Rig options for traffic on every queue. In skb mode a veth takes the sender's queue number
    for a recorded RX queue, which counts from 1: TX queues 0 and 1 come in on 0, 2 on 1, ...
    """
    return {"queues": queues, "peer_queues": queues + (attach == "skb")}


def packets_by_queue(record, interface, field="rx_packets"):
    return {socket["queue"]: socket[field] for socket in record["sockets"]
            if socket["interface"] == interface}


def check_flows(got, sent, record):
    """The same frames, and within a flow in order (queues may overtake one another)."""
    assert len(got) == len(sent), str(record)
    assert collections.Counter(got) == collections.Counter(sent)
    last = {}
    for frame in got:
        flow, seq = frame[42:46], frame[46:50]
        assert last.get(flow, b"") < seq, f"flow {flow.hex()} out of order"
        last[flow] = seq


def move(sender, receiver, sent):
    """Send with few on their way, collect at the other end."""
    got = []
    for start in range(0, len(sent), 64):
        part = sent[start:start + 64]
        sender.send_all(part)
        got += receiver.frames(len(part), 2)
    return got + receiver.drain()


def test_two_queue_patch_both_ways_exact(rig2, tap, millraced, attach, waiting):
    rig = rig2(**peers(2, attach))
    near, far = tap(rig.gen, "g0"), tap(rig.sink, "s0")
    daemon = millraced(rig.dut, "-l", "-i", "d0", "-i", "d1", "-q", "0-1", attach=attach,
                       waiting=waiting)
    assert set(daemon.bound) == {("d0", 0), ("d0", 1), ("d1", 0), ("d1", 1)}
    assert len({b["worker"] for b in daemon.bound.values()}) == 2, "a worker a queue number"
    there, back = flows(), flows(frames.ALICE, frames.BOB)
    arrived = move(near, far, there), move(far, near, back)
    final = daemon.stop()
    check_flows(arrived[0], there, final)
    check_flows(arrived[1], back, final)
    for rx, tx in (("d0", "d1"), ("d1", "d0")):
        queues = packets_by_queue(final, rx)
        assert all(queues.values()), f"no traffic on a queue, so nothing was tested: {queues}"
        assert queues == packets_by_queue(final, tx, "tx_packets")
        assert sum(queues.values()) == FLOWS * EACH == program(final, rx)["seen"]


def test_two_queues_both_ways_at_once(rig2, tap, task, millraced, attach, waiting):
    rig = rig2(**peers(2, attach))
    near, far = tap(rig.gen, "g0"), tap(rig.sink, "s0")
    daemon = millraced(rig.dut, "-l", "-i", "d0", "-i", "d1", "-q", "all", attach=attach,
                       waiting=waiting)
    there, back = flows(), flows(frames.ALICE, frames.BOB)
    senders = [task(near.send_all, there, 16), task(far.send_all, back, 16)]
    for sender in senders:
        sender.result(60)
    arrived = far.drain(0.5), near.drain(0.5)
    final = daemon.stop()
    assert (far.lost(), near.lost()) == (0, 0)
    check_flows(arrived[0], there, final)
    check_flows(arrived[1], back, final)


def test_rxdrop_on_all_of_four_queues(rig1, tap, millraced, attach, waiting):
    rig = rig1(**peers(4, attach))
    daemon = millraced(rig.dut, "-r", "-i", "d0", "-q", "all", attach=attach, waiting=waiting)
    tap(rig.gen, "g0").send_all(flows())
    record = daemon.quiet_record()
    queues = packets_by_queue(record, "d0")
    assert set(queues) == {0, 1, 2, 3} and all(queues.values()), queues
    assert sum(queues.values()) == FLOWS * EACH
    assert program(record, "d0")["passed"] == 0
    daemon.stop()


@pytest.mark.parametrize("asked, covered", [("0", {0}), ("0,2-3", {0, 2, 3}), ("1-2", {1, 2})])
def test_uncovered_queues_pass_to_the_stack(rig1, tap, millraced, attach, asked, covered):
    rig = rig1(**peers(4, attach))
    host = tap(rig.dut, "d0")
    daemon = millraced(rig.dut, "-r", "-i", "d0", "-q", asked, attach=attach)
    sent = flows()
    tap(rig.gen, "g0").send_all(sent)
    record = daemon.quiet_record()
    assert set(packets_by_queue(record, "d0")) == covered
    passed = program(record, "d0")["passed"]
    assert passed > 0 and total(record, "rx_packets") > 0
    assert total(record, "rx_packets") + passed == len(sent) == explained(record, "d0")
    got = host.drain()
    assert len(got) == passed, "passed frames are in the stack"
    assert set(got) <= set(sent)
    daemon.stop()


def test_txpush_on_all_queues_sends_count_in_all(rig1, tap, millraced):
    rig = rig1(queues=2)
    wire = tap(rig.gen, "g0")
    final = millraced(rig.dut, "-t", "-i", "d0", "-q", "all", "-C", 1001, ready=False).ended(10)
    assert len(wire.drain()) == total(final, "tx_packets") == 1001


def test_queue_beyond_the_active_ones_names_ethtool(rig1, millraced):
    """Refused before anything is attached, with what there is and what to do."""
    rig = rig1(queues=4)
    rig.gen.run("ethtool", "-L", "g0", "tx", 1, "rx", 1)
    rig.dut.run("ethtool", "-L", "d0", "tx", 1, "rx", 1)
    for asked in ("1", "0-3"):
        said = millraced(rig.dut, "-i", "d0", "-q", asked, ready=False).fails(1)
        assert "d0" in said and "ethtool -L" in said, said
        assert rig.dut.attached() == {}
    daemon = millraced(rig.dut, "-i", "d0", "-q", "all")
    assert set(daemon.bound) == {("d0", 0)}
    daemon.stop()
    rig.dut.run("ethtool", "-L", "d0", "tx", 4, "rx", 4)
    daemon = millraced(rig.dut, "-i", "d0", "-q", "all")
    assert {queue for _, queue in daemon.bound} == {0, 1, 2, 3}
    daemon.stop()


def test_workers_share_the_cpus_given(rig1, millraced):
    rig = rig1(queues=2)
    daemon = millraced(rig.dut, "-i", "d0", "-q", "all", "--cpus=1,0", waiting="poll")
    assert [daemon.bound["d0", queue]["cpu"] for queue in (0, 1)] == ["1", "0"]
    daemon.stop()


def test_two_interfaces_in_two_runs_do_not_meet(rig2, tap, millraced):
    rig = rig2()
    first = millraced(rig.dut, "-i", "d0", waiting="poll")
    second = millraced(rig.dut, "-i", "d1", waiting="poll")
    tap(rig.gen, "g0").send_all(frames.numbered(n) for n in range(100))
    tap(rig.sink, "s0").send_all(frames.numbered(n) for n in range(200))
    first.quiet_record(), second.quiet_record()
    assert total(first.stop(), "rx_packets") == 100
    assert total(second.stop(), "rx_packets") == 200
