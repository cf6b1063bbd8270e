"""Several queues (veths with 2 or 4): each frame comes on the queue it came, none is lost between.

200 UDP flows spread over the queues by the kernel's hash.
"""

import collections
import json
import os
import re
import signal
import struct
import time

import frames
import pytest
from daemon import check_final, explained, program, total
from lab import SLOWNESS, run, wait_until
from xsk import Borrowed, put_into_xskmap

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


def sized_flows(seed, dst, src):
    """As flows(), of all sizes, told apart by the seed."""
    frames_of = []
    for seq in range(5):
        for flow in range(FLOWS):
            data = struct.pack("!II", flow, seq) + bytes([seed]) * ((flow * 37 + seq) % 1400)
            packet = frames.udp("198.18.0.1", "198.18.0.2", 1024 + flow, 9, data)
            frames_of.append(frames.ethernet(dst, src, frames.IPV4, packet))
    return frames_of


# Races are what a long run finds, and ThreadSanitizer what finds them.
LONG = 600 if "TSAN_OPTIONS" in os.environ else 60


@pytest.mark.parametrize("seconds", [2, pytest.param(LONG, marks=pytest.mark.full)])
def test_four_queue_patch_under_load_both_ways(rig2, tap, task, millraced, attach, seconds):
    """Field case 40: four pollers, traffic both ways all the time. No frame twice, none changed
    (each has its flow, number and UDP checksum, and is compared), none lost, and the audit exact;
    under ThreadSanitizer no report either.
    """
    rig = rig2(**peers(4, attach))
    near, far = tap(rig.gen, "g0"), tap(rig.sink, "s0")
    daemon = millraced(rig.dut, "-l", "-i", "d0", "-i", "d1", "-q", "all", attach=attach,
                       waiting="poll")
    assert len({bound["worker"] for bound in daemon.bound.values()}) == 4
    there = [sized_flows(seed, frames.BOB, frames.ALICE) for seed in (1, 2)]
    back = [sized_flows(seed, frames.ALICE, frames.BOB) for seed in (3, 4)]
    rounds, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        sent = there[rounds % 2], back[rounds % 2]
        moves = [task(move, near, far, sent[0]), task(move, far, near, sent[1])]
        for one, frames_sent in zip(moves, sent):
            check_flows(one.result(60 * SLOWNESS), frames_sent, daemon)
        rounds += 1
    final = daemon.stop()
    for port in rig.ports:
        queues = packets_by_queue(final, port)
        assert all(queues.values()), f"no traffic on a queue, so nothing was tested: {queues}"
        assert sum(queues.values()) == rounds * len(there[0])
        assert total(final, "tx_packets", port) == rounds * len(back[0])


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
    """Field case 11: no black hole, and every frame is on one side or the other."""
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


def test_queue_beyond_the_active_ones_names_ethtool(rig1, millraced, attach):
    """Field case 8: refused before anything is attached, with what there is and what to do."""
    rig = rig1(queues=4)
    rig.gen.run("ethtool", "-L", "g0", "tx", 1, "rx", 1)
    rig.dut.run("ethtool", "-L", "d0", "tx", 1, "rx", 1)
    for asked in ("1", "0-3"):
        said = millraced(rig.dut, "-i", "d0", "-q", asked, attach=attach,
                         ready=False).fails(1)
        assert "d0" in said and "ethtool -L" in said, said
        assert rig.dut.attached() == {}
    daemon = millraced(rig.dut, "-i", "d0", "-q", "all", attach=attach)
    assert set(daemon.bound) == {("d0", 0)}
    daemon.stop()
    rig.dut.run("ethtool", "-L", "d0", "tx", 4, "rx", 4)
    daemon = millraced(rig.dut, "-i", "d0", "-q", "all", attach=attach)
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


def test_more_rx_than_tx_queues(rig1, tap, millraced, attach):
    """Field case 9: two RX queues and one TX queue. What receives serves both; what only sends has no
    use for a queue that is not there, and is refused by name. (What forwards: test_handover.)
    """
    rig = rig1(**peers(2, attach))
    rig.dut.run("ethtool", "-L", "d0", "rx", 2, "tx", 1)
    wire, host = tap(rig.gen, "g0"), tap(rig.dut, "d0")
    daemon = millraced(rig.dut, "-r", "-i", "d0", "-q", "all", attach=attach)
    sent = flows()
    wire.send_all(sent)
    queues = packets_by_queue(daemon.quiet_record(), "d0")
    assert set(queues) == {0, 1} and all(queues.values()), queues
    assert sum(queues.values()) == len(sent)
    daemon.stop()
    said = millraced(rig.dut, "-t", "-i", "d0", "-q", "all", attach=attach, ready=False).fails(1)
    assert re.search(r"d0 q1: no TX queue of this number \(1 active\)", said), said
    assert rig.dut.attached() == {}
    daemon = millraced(rig.dut, "-l", "-i", "d0", "-q", "0", attach=attach)
    wire.send_all(sent)
    answers, passed = wire.drain(0.3), host.drain()
    final = daemon.stop()
    assert len(answers) == total(final, "rx_packets") == total(final, "tx_packets") > 0
    assert sorted([frames.swapped(frame) for frame in answers] + passed) == sorted(sent)


def test_tx_queue_in_use_cannot_be_taken_away(rig1, tap, millraced, attach):
    """Field case 9: `ethtool -L` below the bound queues is refused, and frames go on."""
    rig = rig1(**peers(2, attach))
    wire = tap(rig.gen, "g0")
    daemon = millraced(rig.dut, "-l", "-i", "d0", "-q", "all", attach=attach)
    rig.dut.run("ethtool", "-L", "d0", "tx", 1, check=False)
    assert "TX:\t\t2" in rig.dut.run("ethtool", "-l", "d0").split("Current")[1]
    sent = flows()
    wire.send_all(sent)
    assert sorted(map(frames.swapped, wire.drain(0.3))) == sorted(sent)
    final = daemon.stop()
    assert all(packets_by_queue(final, "d0", "tx_packets").values())


@pytest.mark.parametrize("asked, uncovered", [("0", "1-3|1, ?2,? (and )?3"), ("0,2-3", r"\b1\b")],
                         ids=["1-3", "1"])
def test_uncovered_queues_are_named_at_start(rig1, millraced, attach, asked, uncovered):
    """Field case 11: frames of the other queues go to the host, so say which these are."""
    rig = rig1(queues=4)
    daemon = millraced(rig.dut, "-r", "-i", "d0", "-q", asked, attach=attach)
    daemon.stop()
    said = daemon.warnings(rf"d0.*queue.*({uncovered})")
    assert len(said) == 1, f"no line names them: {daemon.stderr}"


def test_all_queues_covered_need_no_warning(rig1, millraced, attach):
    """Field case 11, control."""
    rig = rig1(queues=4)
    daemon = millraced(rig.dut, "-r", "-i", "d0", "-q", "0-3", attach=attach)
    daemon.stop()
    assert not daemon.warnings("queue"), daemon.stderr


def xsks_map(program_id):
    """The id of the XSKMAP of a program."""
    shown = json.loads(run("bpftool", "-j", "prog", "show", "id", program_id))
    maps = [json.loads(run("bpftool", "-j", "map", "show", "id", one)) for one in shown["map_ids"]]
    return next(one["id"] for one in maps if one["type"] == "xskmap")


def flow_of_queue_1(wire, host):
    """A frame of queue 1, which has no socket yet: the first that reaches the host."""
    for flow in range(FLOWS):
        wire.send(frames.udp_flow(flow, 0))
        if host.receive(0.02):
            return frames.udp_flow(flow, 1)
    raise AssertionError("no flow comes in on queue 1")


@pytest.mark.parametrize("traffic", ["one frame", "200 flows"])
def test_socket_under_a_wrong_key_raises_an_alarm(rig1, tap, millraced, closing, attach, traffic):
    """Field case 12: queue 0's socket in slot 1 of the map. The kernel drops queue 1's frames and
    counts them nowhere; the daemon must miss them within 3 s, and queue 0 must not suffer.
    """
    rig = rig1(**peers(2, attach))
    wire = tap(rig.gen, "g0")
    daemon = millraced(rig.dut, "-r", "-i", "d0", "-q", "0", attach=attach)
    sent = [flow_of_queue_1(wire, tap(rig.dut, "d0"))] if traffic == "one frame" else flows()
    before = daemon.quiet_record()
    put_into_xskmap(xsks_map(rig.dut.attached()["d0"]), 1, closing(Borrowed(daemon.pid)).fd)
    wire.send_all(sent)
    wait_until(lambda: daemon.warnings(r"d0: \d+ frames? went to no socket"), 3 * SLOWNESS,
               f"an alarm of {daemon}")
    daemon.next_record()  # a frame is missed in the line after the one that has seen it
    record = daemon.next_record()
    received = total(record, "rx_packets") - total(before, "rx_packets")
    missing = program(record, "d0")["unexplained"]
    assert received + missing == len(sent), str(record)
    assert missing > 0 and (received > 0) is (traffic == "200 flows")
    assert program(record, "d0")["seen"] == explained(record, "d0") + missing
    assert len(daemon.warnings("went to no socket")) == 1, "said once"
    daemon.send(signal.SIGTERM)
    assert daemon.wait(10)[0] == 0
    for line in daemon.records:  # the audit, less the frames that must be missing here
        assert [worker["balance"] for worker in line["workers"]] == [0]
    check_final(daemon.records[-1])
    assert rig.dut.attached() == {}
