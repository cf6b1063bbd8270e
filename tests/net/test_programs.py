"""Programs of others: in the way at start, and while ours runs: ours taken off, replaced (case 46)."""

import json
import shlex
import struct
import subprocess
import time

import frames
import pytest
from appliance import File, forward, port
from control import result
from daemon import END_LIMIT, program, stopped, total
from holder import bpf, load
from lab import SLOWNESS, wait_until
from test_queues import xsks_map
from wire import exchange
from xsk import Squatter, Xskmap

BPF_LINK_UPDATE, BPF_LINK_GET_FD_BY_ID = 29, 30
IP_WORD = {"native": "xdpdrv", "skb": "xdpgeneric"}
NOTICED_S = 5 * SLOWNESS


@pytest.fixture
def file(tmp_path):
    return File(tmp_path / "millrace.conf", tmp_path / "sock")


def link_of(namespace, ifname):
    """The id of the link that holds the program of an interface."""
    wanted = namespace.attached()[ifname]
    links = json.loads(namespace.run("bpftool", "-j", "link", "show"))
    return next(link["id"] for link in links if link.get("prog_id") == wanted)


def detach(namespace, ifname):
    namespace.run("bpftool", "link", "detach", "id", link_of(namespace, ifname))


def detach_and_put(daemon, namespace, ifname, compiled, mode):
    """Ours is off and the other one on before the daemon can look."""
    link = link_of(namespace, ifname)
    with stopped(daemon.pid):
        namespace.run("sh", "-c", f"bpftool link detach id {link} && "
                      f"ip link set dev {ifname} {IP_WORD[mode]} obj {compiled} sec xdp")
    return namespace.attached()[ifname]


def port_of(sock):
    """What the daemon says of its first port."""
    return result(sock, "status")["ports"][0]


@pytest.fixture
def sock(tmp_path):
    return tmp_path / "sock"


def forwards(wire, first, count=100):
    sent = [frames.numbered(n) for n in range(first, first + count)]
    exchange(wire, wire, sent, [frames.swapped(one) for one in sent])


def test_another_program_without_sys_admin_is_told_by_number(rig1, millraced, attach, foreign_object):
    """Field case 45: the kernel tells its name to CAP_SYS_ADMIN alone; the rest is said all the same."""
    rig = rig1()
    rig.dut.ip("link", "set", "dev", "d0", IP_WORD[attach], "obj", foreign_object, "sec", "xdp")
    before = rig.dut.attached()
    said_of_it = millraced(rig.dut, "-i", "d0", attach=attach, ready=False, wrap=lambda argv: [
        "capsh", "--drop=cap_sys_admin", "--", "-c", "exec " + shlex.join(argv)]).fails(1)
    assert f"d0: XDP program {before['d0']} ({attach} mode) is attached and is left alone" in said_of_it
    assert f"`ip link set dev d0 {IP_WORD[attach]} off`, or start with --replace" in said_of_it
    assert rig.dut.attached() == before


def test_ip_link_cannot_take_ours_off(rig1, tap, millraced, attach, foreign_object):
    """While our link lives: neither off nor another program, in any mode."""
    rig = rig1()
    wire = tap(rig.gen, "g0")
    daemon = millraced(rig.dut, "-l", "-i", "d0",
                       attach=attach, waiting="poll")
    ours = rig.dut.attached()
    for word in ("xdp", "xdpdrv", "xdpgeneric"):
        for what in (["off"], ["obj", str(foreign_object), "sec", "xdp"]):
            done = subprocess.run(rig.dut.command("ip", "link", "set", "dev", "d0", word, *what),
                                  capture_output=True, text=True)
            # Taking off what is not there is fine with the driver; xdp alone means the driver's.
            nothing = what == ["off"] and word not in {"native": ("xdp", "xdpdrv"),
                                                       "skb": ("xdpgeneric",)}[attach]
            assert done.returncode != 0 or nothing, (word, what)
            assert rig.dut.attached() == ours, (word, what)
    forwards(wire, 0)
    time.sleep(1.2)
    assert daemon.said("program lost") == []
    daemon.stop()


def test_detached_link_is_noticed_and_attached_again(rig1, tap, millraced, stream, sock, attach):
    """Under traffic; nothing is counted anew, and every frame is accounted for."""
    rig = rig1()
    wire = tap(rig.gen, "g0")
    daemon = millraced(rig.dut, "-l", "-i", "d0", f"--control-socket={sock}",
                       attach=attach, waiting="poll")
    ours = rig.dut.attached()["d0"]
    assert port_of(sock)["state"] == "up"
    forwards(wire, 0, 500)
    before = daemon.quiet_record()
    running = stream(wire, frames.numbered, 2000)
    detach(rig.dut, "d0")
    start = time.monotonic()
    took = wait_until(lambda: daemon.said("d0: program lost"), NOTICED_S, f"notice of {daemon}")
    wait_until(lambda: rig.dut.attached() == {"d0": ours}, NOTICED_S, "the same program again")
    print(f"noticed after {took:.2f} s, attached after {time.monotonic() - start:.2f} s")
    time.sleep(0.3)
    running.stop()
    wire.drain()
    forwards(wire, 10000)
    record = daemon.quiet_record()
    now = port_of(sock)
    assert (now["state"], now["program"]["id"]) == ("up", ours)
    history = [(one["state"], one["reason"]) for one in now["history"]]
    assert history[:2] == [("up", ""), ("degraded", "the XDP program was taken off the interface")]
    assert rig.dut.link("d0")["xdp"]["mode"] == {"native": 1, "skb": 2}[attach]
    assert program(record, "d0")["seen"] > program(before, "d0")["seen"] >= 500
    assert total(record, "rx_packets") > total(before, "rx_packets")
    assert len(daemon.said("program lost")) == 1 and "bpftool" in daemon.stderr
    daemon.stop()
    assert rig.dut.attached() == {}


def test_detached_again_and_again_is_answered_less_often(rig1, tap, millraced):
    rig = rig1()
    wire = tap(rig.gen, "g0")
    daemon = millraced(rig.dut, "-l", "-i", "d0", waiting="poll")
    for count, limit in ((1, 2), (2, 3.5)):  # at once; after one second
        detach(rig.dut, "d0")
        wait_until(lambda n=count: len(daemon.said("program lost")) == n and
                   "d0" in rig.dut.attached(), limit * SLOWNESS, f"loss {count} of {daemon}")
    detach(rig.dut, "d0")
    time.sleep(1.9)  # the third time it waits for two
    assert rig.dut.attached() == {}
    wait_until(lambda: "d0" in rig.dut.attached(), 4 * SLOWNESS, f"the third time: {daemon}")
    forwards(wire, 0)
    daemon.stop()


def test_program_in_the_place_of_ours_is_left_alone(rig1, tap, millraced, sock, attach, foreign_object):
    """Said once, with who it is and what to type; ours is back when that was done."""
    rig = rig1()
    wire = tap(rig.gen, "g0")
    daemon = millraced(rig.dut, "-l", "-i", "d0", f"--control-socket={sock}",
                       attach=attach, waiting="poll")
    foreign = detach_and_put(daemon, rig.dut, "d0", foreign_object, attach)
    wait_until(lambda: daemon.said("d0: program lost"), NOTICED_S, f"notice of {daemon}")
    line = daemon.said("d0: program lost")[0]
    assert f"XDP program {foreign} 'foreign_pass' ({attach} mode) is in its place" in line
    off = f"ip link set dev d0 {IP_WORD[attach]} off"
    assert f"`{off}`, or start with --replace" in line, line
    time.sleep(4)
    assert rig.dut.attached() == {"d0": foreign}
    assert len(daemon.said("program lost")) == 1, daemon.stderr
    now = port_of(sock)
    assert now["state"] == "degraded" and now["state_seconds"] > 3
    assert now["reason"].startswith(f"program lost: XDP program {foreign} 'foreign_pass'"), now
    rig.dut.run(*off.split())
    wait_until(lambda: daemon.said("is attached again, after"), 17 * SLOWNESS, f"ours again: {daemon}")
    forwards(wire, 0)
    assert port_of(sock)["state"] == "up"
    daemon.stop()


def test_program_in_the_place_of_ours_goes_with_replace(rig1, tap, millraced, attach, foreign_object):
    rig = rig1()
    wire = tap(rig.gen, "g0")
    daemon = millraced(rig.dut, "-l", "-i", "d0", "--replace",
                       attach=attach, waiting="poll")
    ours = rig.dut.attached()
    detach_and_put(daemon, rig.dut, "d0", foreign_object, attach)
    wait_until(lambda: daemon.said("program lost"), NOTICED_S, f"notice of {daemon}")
    wait_until(lambda: rig.dut.attached() == ours, NOTICED_S, "ours again")
    assert daemon.warnings("'foreign_pass' .* was taken off for --replace")
    forwards(wire, 0)
    daemon.stop()


@pytest.mark.parametrize("replace", [False, True])
def test_program_put_into_our_link_is_noticed(rig1, tap, millraced, attach, replace):
    """BPF_LINK_UPDATE by whoever is root: the link lives, and runs another program."""
    rig = rig1()
    wire = tap(rig.gen, "g0")
    daemon = millraced(rig.dut, "-l", "-i", "d0", *["--replace"] * replace,
                       attach=attach, waiting="poll")
    ours = rig.dut.attached()
    link = link_of(rig.dut, "d0")
    fd = bpf(BPF_LINK_GET_FD_BY_ID, struct.pack("<II", link, 0))
    bpf(BPF_LINK_UPDATE, struct.pack("<IIII", fd, load(), 0, 0))
    other = rig.dut.attached()
    assert other != ours
    with open(fd, closefd=True):
        pass
    wait_until(lambda: daemon.said("d0: program lost"), NOTICED_S, f"notice of {daemon}")
    if replace:
        wait_until(lambda: rig.dut.attached() == ours, NOTICED_S, "ours again")
    else:
        time.sleep(3)
        assert rig.dut.attached() == other and len(daemon.said("program lost")) == 1
        detach(rig.dut, "d0")
        wait_until(lambda: rig.dut.attached() == ours, 17 * SLOWNESS, f"ours again: {daemon}")
    forwards(wire, 0)
    daemon.stop()


def test_exit_where_asked_for(rig1, millraced, attach, foreign_object):
    """The host has its frames, the other program stays."""
    rig = rig1()
    daemon = millraced(rig.dut, "-l", "-i", "d0", "--on-program-lost=exit",
                       attach=attach, waiting="poll")
    foreign = detach_and_put(daemon, rig.dut, "d0", foreign_object, attach)
    daemon.ended(NOTICED_S + END_LIMIT, code=1)
    assert len(daemon.said("error: d0: program lost")) == 1, daemon.stderr
    assert rig.dut.attached() == {"d0": foreign}


def test_reload_takes_over_what_is_done(rig2, tap, millraced, file, attach):
    """Without ending what runs; the other port never stops."""
    rig = rig2()
    near, far = tap(rig.gen, "g0"), tap(rig.sink, "s0")
    ends = forward("main", "patch", "a b")
    ports = [port("a", "d0", attach=attach), port("b", "d1", attach=attach)]
    file.write(*ports, ends)
    daemon = millraced(rig.dut, "--config", file.path)
    file.take(port("a", "d0", attach=attach, on_program_lost="exit"), ports[1], ends)
    assert daemon.said("runs on with other parameters")
    detach(rig.dut, "d1")
    wait_until(lambda: daemon.said("d1: program lost"), NOTICED_S, f"notice of {daemon}")
    sent = [frames.numbered(n) for n in range(100)]
    exchange(near, far, sent, sent)
    exchange(far, near, sent, sent)
    detach(rig.dut, "d0")
    daemon.wait(NOTICED_S + END_LIMIT)
    assert daemon.process.returncode == 1 and daemon.said("error: d0: program lost")
    assert rig.dut.attached() == {}


def test_slot_that_somebody_empties_or_takes(rig2, tap, millraced, closing, sock, attach):
    """An emptied one is filled again within seconds, and that is said; a stolen one is left to its socket."""
    rig = rig2()
    rig.join(rig.gen, "g2", "d2")
    near, far = tap(rig.gen, "g0"), tap(rig.sink, "s0")
    daemon = millraced(rig.dut, "-l", "-i", "d0", "-i", "d1", f"--control-socket={sock}",
                       attach=attach, waiting="poll")
    sent = [frames.numbered(n) for n in range(50)]
    exchange(near, far, sent, sent)
    with Xskmap(xsks_map(rig.dut.attached()["d0"])) as slots:
        for count in (1, 2):
            slots.empty(0)
            wait_until(lambda n=count: f"filled again; {n} times so far" in port_of(sock)["reason"],
                       NOTICED_S, f"notice of {daemon}")
            assert port_of(sock)["state"] == "degraded"
            wait_until(lambda: port_of(sock)["state"] == "up", NOTICED_S, "in order again")
            exchange(near, far, sent, sent)
            exchange(far, near, sent, sent)
        assert len(daemon.warnings("d0 q0: somebody emptied its slot in our XSKMAP")) == 1, daemon.stderr
        other = closing(Squatter(rig.dut, "d2"))
        assert slots.put(0, other.fd)
        wait_until(lambda: daemon.said("error: d0 q0: somebody else's socket is in its slot"),
                   NOTICED_S, f"notice of {daemon}")
        time.sleep(2.2)
        now = port_of(sock)
        assert now["state"] == "degraded" and "socket is in the XSKMAP slot of q0" in now["reason"], now
        assert len(daemon.said("somebody else's socket is in its slot")) == 1
        other.close()
    wait_until(lambda: daemon.said("d0 q0: our socket is in its slot of the XSKMAP again"), NOTICED_S,
               f"ours again: {daemon}")
    exchange(near, far, sent, sent)
    wait_until(lambda: port_of(sock)["state"] == "up", NOTICED_S, "in order again")
    assert not daemon.said("d1 q0: somebody")
    daemon.stop()
