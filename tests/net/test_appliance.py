"""Several forwards from one configuration file: each exact, each told by its names, none in the
other's way; and the field cases that a file words differently from flags.

RIG-2 with further pairs: gen(g2) <-> dut(d2).
"""

import json
import re
import signal
import subprocess
import time

import frames
import pytest
from appliance import devices_of, forward, forwards_of, port
from control import millracectl
from daemon import MILLRACED, READY, check_final, explained, program, total
from lab import SLOWNESS, wait_until
from test_handover import drops, handed, narrow
from test_queues import (EACH, FLOWS, check_flows, flow_of_queue_1, flows, move, packets_by_queue,
                         peers, xsks_map)
from wire import exchange
from xsk import Borrowed, put_into_xskmap

LONG_NAME = "uplink-long-name-over-15-chars"


@pytest.fixture
def rig(rig2):
    """RIG-2 and a third pair."""
    rig = rig2()
    rig.join(rig.gen, "g2", "d2")
    return rig


def patch(attach="auto", **keys):
    return [port("wan", "d0", attach=attach), port("lan", "d1", attach=attach),
            forward("main", "patch", "wan lan", **keys)]


def ask(*arguments):
    return subprocess.run([MILLRACED, *map(str, arguments)], capture_output=True, text=True,
                          timeout=20)


@pytest.mark.parametrize("second", ["rxdrop", "l2fwd"])
@pytest.mark.parametrize("wait", ["spin", "poll"])
def test_two_forwards_are_both_exact(rig, tap, task, millraced, file, attach, wait, second):
    near, far, third = tap(rig.gen, "g0"), tap(rig.sink, "s0"), tap(rig.gen, "g2")
    file.write(*patch(attach, wait=wait), port("dmz", "d2", attach=attach),
               forward("side", second, "dmz", wait=wait))
    daemon = millraced(rig.dut, "--config", file.path)
    assert {one["attach"] for one in daemon.bound.values()} == {attach}
    assert set(rig.dut.attached()) == {"d0", "d1", "d2"}
    there = [frames.numbered(n, 60 + n % 200) for n in range(2000)]
    aside = [frames.numbered(n, 60 + n % 300, frames.ALICE, frames.BOB) for n in range(1500)]

    def beside():
        if second == "l2fwd":
            exchange(third, third, aside, [frames.swapped(frame) for frame in aside])
        else:
            third.send_all(aside)

    busy = task(beside)
    exchange(near, far, there, there)
    exchange(far, near, there, there)
    busy.result(60)
    assert third.drain() == [], "none of the patch's frames comes out here"
    daemon.quiet_record()

    status = file.ask("status")
    assert devices_of(status) == {"wan": "d0", "lan": "d1", "dmz": "d2"}
    assert {name: {one["port"] for one in workers[0]["sockets"]}
            for name, workers in forwards_of(status).items()} == {"main": {"wan", "lan"},
                                                                  "side": {"dmz"}}
    assert {worker["mode"] for worker in status["workers"]} == {"patch", second}
    stats = file.ask("stats")
    received = {one["port"]: (one["forward"], one["rx_packets"]) for one in stats["sockets"]}
    assert received == {"wan": ("main", 2000), "lan": ("main", 2000), "dmz": ("side", 1500)}
    for command in ("status", "stats", "plan"):
        code, out, err = millracectl(file.sock, command)
        assert (code, err) == (0, "")
        assert all(re.search(rf"\b{word}\b", out) for word in ("wan", "lan", "dmz")), out
    text = millracectl(file.sock, "plan")[1]
    assert "forward main: patch, 1 worker" in text and f"forward side: {second}, 1 worker" in text
    assert [one["forward"] for one in file.ask("plan")["plan"]["forwards"]] == ["main", "side"]

    final = daemon.stop()
    for name in ("d0", "d1"):
        assert total(final, "rx_packets", name) == total(final, "tx_packets", name) == 2000
    assert total(final, "rx_packets", "d2") == 1500
    assert total(final, "tx_packets", "d2") == (1500 if second == "l2fwd" else 0)
    assert rig.dut.attached() == {}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_start_and_stop_leave_nothing(rig, millraced, file, number):
    file.write(*patch(), port("dmz", "d2"), forward("side", "rxdrop", "dmz"))
    for _ in range(3):
        daemon = millraced(rig.dut, "--config", file.path)
        assert file.sock.exists()
        daemon.stop(number)
        assert not file.sock.exists()
        assert rig.dut.attached() == {}
        assert [rig.dut.promiscuity(name) for name in ("d0", "d1", "d2")] == [0, 0, 0]


def test_one_forward_that_cannot_start_starts_none(rig, millraced, file):
    file.write(*patch(), port("dmz", "nix"), forward("side", "rxdrop", "dmz"))
    said = millraced(rig.dut, "--config", file.path, ready=False).fails(1)
    assert "nix: no such interface" in said
    assert rig.dut.attached() == {}


@pytest.mark.parametrize("device, keys, way_out", [
    ("d0", {"zero_copy": "require"}, "leave out zero-copy = require"),
    ("x0", {"attach": "native"}, "without -N, in a file attach = native, skb mode is tried too"),
])
def test_a_refusal_names_the_key_of_the_file(rig1, millraced, file, device, keys, way_out):
    rig = rig1()
    rig.dut.ip("link", "add", "x0", "type", "bridge")
    rig.dut.link_up("x0")
    file.write(port("wan", device, **keys), forward("main", "rxdrop", "wan"))
    assert way_out in millraced(rig.dut, "--config", file.path, ready=False).fails(1)


def test_check_has_three_answers(rig, file):
    def check(*sections):
        done = subprocess.run(rig.dut.command(MILLRACED, "--check", file.write(*sections)),
                              capture_output=True, text=True, timeout=20)
        assert READY not in done.stderr
        return done.returncode, done.stdout, done.stderr

    side = [port("dmz", "d2", queues="0"), forward("side", "rxdrop", "dmz")]
    code, out, _ = check(*patch(), *side)
    assert code == 0 and out.startswith(f"{file.path}: correct; 3 ports, 2 forwards\n")
    rig.dut.ip("link", "set", "d2", "mtu", 8901)
    code, _, err = check(*patch(), *side)
    assert code == 1 and "d2: MTU 8901 does not fit" in err, "this host cannot run it"
    rig.dut.ip("link", "set", "d2", "mtu", 1500)
    code, out, err = check(*patch(), port("dmz", "gone0"), forward("side", "rxdrop", "dmz"))
    assert code == 0 and "warning: gone0: no such interface" in err, "absent is no fault"
    code, out, err = check(*patch(), port("dmz", "d0"), forward("side", "rxdrop", "wan dmz"))
    assert code == 2 and out == "" and err.count("error: ") == 2, err
    assert rig.dut.attached() == {}


@pytest.mark.parametrize("wide, width", [(1, 1), (2, 2), (4, 4), (4, 1)])
def test_every_queue_both_ways_at_once(rig2, tap, task, millraced, file, attach, wide, width):
    rig = rig2(**peers(wide, attach))
    if width < wide:
        narrow(rig, width)
    near, far = tap(rig.gen, "g0"), tap(rig.sink, "s0")
    file.write(*patch(attach, wait="poll"))
    daemon = millraced(rig.dut, "--config", file.path)
    assert len(file.ask("status")["workers"]) == wide
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


# Field cases


def test_queue_beyond_the_active_ones(rig1, millraced, file, attach):
    """Field case 8."""
    rig = rig1(queues=4)
    for namespace, name in ((rig.gen, "g0"), (rig.dut, "d0")):
        namespace.run("ethtool", "-L", name, "tx", 1, "rx", 1)
    drop = forward("main", "rxdrop", "wan")
    file.write(port("wan", "d0", queues="0-3", attach=attach), drop)
    said = millraced(rig.dut, "--config", file.path, ready=False).fails(1)
    assert "d0" in said and "ethtool -L" in said, said
    assert rig.dut.attached() == {}
    file.write(port("wan", "d0", queues="auto", attach=attach), drop)
    daemon = millraced(rig.dut, "--config", file.path)
    assert set(daemon.bound) == {("d0", 0)}
    daemon.stop()
    rig.dut.run("ethtool", "-L", "d0", "tx", 4, "rx", 4)
    daemon = millraced(rig.dut, "--config", file.path)
    assert {queue for _, queue in daemon.bound} == {0, 1, 2, 3}
    daemon.stop()


def test_more_rx_than_tx_queues(rig1, tap, millraced, file, attach):
    """Field case 9: both RX queues are served, and what comes in on either goes out."""
    rig = rig1(**peers(2, attach))
    rig.dut.run("ethtool", "-L", "d0", "rx", 2, "tx", 1)
    wire = tap(rig.gen, "g0")
    file.write(port("wan", "d0", attach=attach), forward("main", "l2fwd", "wan"))
    daemon = millraced(rig.dut, "--config", file.path)
    shown = file.ask("ports")["ports"][0]
    assert (shown["rx_queues"], shown["tx_queues"]) == (2, 1)
    sent = flows()
    got = move(wire, wire, sent)
    final = daemon.stop()
    check_flows([frames.swapped(frame) for frame in got], sent, final)
    queues = packets_by_queue(final, "d0")
    assert len(queues) == 2 and handed(final) == queues[1] > 0
    file.write(port("wan", "d0", attach=attach), forward("main", "txpush", "wan"))
    said = millraced(rig.dut, "--config", file.path, ready=False).fails(1)
    assert "d0 q1: no TX queue of this number" in said, said


def test_uncovered_queues_pass_to_the_stack_and_are_named(rig1, tap, millraced, file, attach):
    """Field case 11."""
    rig = rig1(**peers(4, attach))
    host = tap(rig.dut, "d0")
    file.write(port("wan", "d0", queues="0,2-3", attach=attach), forward("main", "rxdrop", "wan"))
    daemon = millraced(rig.dut, "--config", file.path)
    assert len(daemon.warnings(r"d0.*queue.*\b1\b")) == 1, daemon.stderr
    sent = flows()
    tap(rig.gen, "g0").send_all(sent)
    record = daemon.quiet_record()
    assert set(packets_by_queue(record, "d0")) == {0, 2, 3}
    passed = program(record, "d0")["passed"]
    assert passed > 0 and total(record, "rx_packets") > 0
    assert total(record, "rx_packets") + passed == len(sent) == explained(record, "d0")
    assert len(host.drain()) == passed
    daemon.stop()


def test_socket_under_a_wrong_key_raises_an_alarm(rig1, tap, millraced, file, closing, attach):
    """Field case 12."""
    rig = rig1(**peers(2, attach))
    wire = tap(rig.gen, "g0")
    file.write(port("wan", "d0", queues="0", attach=attach), forward("main", "rxdrop", "wan"))
    daemon = millraced(rig.dut, "--config", file.path)
    sent = [flow_of_queue_1(wire, tap(rig.dut, "d0"))]
    daemon.quiet_record()
    put_into_xskmap(xsks_map(rig.dut.attached()["d0"]), 1, closing(Borrowed(daemon.pid)).fd)
    wire.send_all(sent)
    wait_until(lambda: daemon.warnings(r"d0: \d+ frames? went to no socket"), 3 * SLOWNESS,
               f"an alarm of {daemon}")
    wan = file.ask("status")["ports"][0]
    assert wan["state"] == "degraded" and "a wrong key in our map" in wan["reason"], wan
    assert "degraded" in millracectl(file.sock, "status")[1]
    time.sleep(11)  # no sign that it is over, so it stays; then frames come through, and none is missing
    assert file.ask("status")["ports"][0]["state"] == "degraded"
    rig.dut.run("bpftool", "map", "delete", "id", xsks_map(rig.dut.attached()["d0"]), "key", 1, 0, 0, 0)
    wire.send_all(flows()[:100])
    wait_until(lambda: file.ask("status")["ports"][0]["state"] == "up", 5 * SLOWNESS, "in order again")
    daemon.send(signal.SIGTERM)
    assert daemon.wait(10)[0] == 0
    check_final(daemon.records[-1])


def test_alternative_name_as_the_device(rig2, tap, millraced, file, attach):
    """Field case 15: the port goes by its own name, and what is told has the kernel's."""
    rig = rig2()
    rig.dut.ip("link", "property", "add", "dev", "d0", "altname", LONG_NAME)
    near, far = tap(rig.gen, "g0"), tap(rig.sink, "s0")
    sections = [port("wan", LONG_NAME, attach=attach), port("lan", "d1", attach=attach),
                forward("main", "patch", "wan lan")]
    file.write(*sections)
    daemon = millraced(rig.dut, "--config", file.path)
    assert f"{LONG_NAME} is an alternative name of d0" in daemon.stderr
    assert set(daemon.bound) == {("d0", 0), ("d1", 0)}
    assert set(rig.dut.attached()) == {"d0", "d1"} and rig.dut.promiscuity("d0") > 0
    sent = [frames.numbered(n) for n in range(500)]
    exchange(near, far, sent, sent)
    exchange(far, near, sent, sent)
    assert devices_of(file.ask("status")) == {"wan": "d0", "lan": "d1"}
    assert LONG_NAME in millracectl(file.sock, "plan")[1]
    assert LONG_NAME in json.dumps(file.ask("plan")["plan"])
    file.ask("set", port="wan", promiscuous=False)
    assert rig.dut.promiscuity("d0") == 0
    final = daemon.stop()
    assert [one["interface"] for one in final["sockets"]] == ["d0", "d1"]
    file.write(port("wan", "d0"), port("lan", LONG_NAME), forward("main", "patch", "wan lan"))
    said = millraced(rig.dut, "--config", file.path, ready=False).fails(1)
    assert "same interface" in said, said


def test_mtu_beyond_a_chunk(rig1, tap, millraced, file, attach):
    """Field case 17: refused with the ways out; with frags such frames come through whole; raised
    while it runs it is a warning."""
    rig = rig1()
    for namespace, name in ((rig.gen, "g0"), (rig.dut, "d0")):
        namespace.ip("link", "set", name, "mtu", 8901)
    wan = port("wan", "d0", attach=attach)
    file.write(wan, forward("main", "l2fwd", "wan"))
    said = millraced(rig.dut, "--config", file.path, ready=False).fails(1)
    assert "d0: MTU 8901 does not fit frames of 4096 bytes, which take up to 3818" in said, said
    assert rig.dut.attached() == {}
    file.write(wan, forward("main", "l2fwd", "wan", frags="yes"))
    daemon = millraced(rig.dut, "--config", file.path)
    wire = tap(rig.gen, "g0")
    sent = [frames.numbered(n, size) for n, size in enumerate((60, 3818, 3833, 8000, 8915))]
    exchange(wire, wire, sent, [frames.swapped(frame) for frame in sent])
    daemon.stop()
    rig.dut.ip("link", "set", "d0", "mtu", 1500)
    file.write(wan, forward("main", "l2fwd", "wan"))
    daemon = millraced(rig.dut, "--config", file.path)
    rig.dut.ip("link", "set", "d0", "mtu", 8901)
    wait_until(lambda: daemon.warnings("d0: MTU is 8901 now"), 5 * SLOWNESS, "a warning")
    daemon.stop()
