"""attach-method = external: somebody else's program, whose pinned XSKMAP we fill; and pins of others."""

import errno
import re
import time

import frames
import pytest
from appliance import File, forward, port
from control import result
from daemon import total
from external import Bpffs, External, compiled, slot_is_free
from lab import SLOWNESS, run, wait_until
from wire import exchange
from xsk import Squatter, put_into_xskmap

ARP_FRAME = frames.ethernet(b"\xff" * 6, frames.ALICE, 0x0806, bytes(28), frames.MIN_SIZE)


@pytest.fixture
def bpffs(tmp_path, closing):
    return closing(Bpffs(tmp_path))


@pytest.fixture
def example(tmp_path):
    return compiled(tmp_path)


@pytest.fixture
def file(tmp_path):
    return File(tmp_path / "millrace.conf", tmp_path / "sock")


def flags(xskmap):
    return ["--attach-method=external", f"--xskmap={xskmap}"]


def test_read_only_bpffs_is_named(rig1, millraced, bpffs, example):
    """Field case 60: and what of a unit is to be changed."""
    rig = rig1()
    theirs = External(bpffs, "theirs", example)
    run("mount", "-o", "remount,ro", bpffs.path)
    said = millraced(rig.dut, "-r", "-i", "d0", *flags(theirs.xskmap), ready=False).fails(1)
    assert re.search(rf"d0: xskmap {theirs.xskmap}: cannot be opened: EROFS \(.*\); mount it for "
                     r"writing, or in a systemd unit name it in ReadWritePaths=", said), said


def forwards(wire, first=0, count=200):
    sent = [frames.numbered(n) for n in range(first, first + count)]
    exchange(wire, wire, sent, [frames.swapped(one) for one in sent])


def state(sock):
    return result(sock, "status")["ports"][0]["state"]


def test_frames_come_by_the_example_program(rig1, tap, millraced, closing, bpffs, example, attach):
    """What it steers is ours, the rest is the host's; at the end the slot is empty and all else as it
    was: the program, the pins, somebody else's socket in another slot.
    """
    rig = rig1(queues=2, peer_queues=2)
    wire, host = tap(rig.gen, "g0"), tap(rig.dut, "d0")
    theirs = External(bpffs, "theirs", example)
    program = theirs.attach(rig.dut, "d0", attach)
    other = closing(Squatter(rig.dut, "d0", 1))
    put_into_xskmap(theirs.xskmap, 1, other.fd)
    pins = bpffs.entries()
    daemon = millraced(rig.dut, "-l", "-i", "d0", *flags(theirs.xskmap))
    assert {one["attach"] for one in daemon.bound.values()} == {attach}
    sent = [frames.numbered(n) for n in range(300)]
    wire.send_all([*sent[:150], ARP_FRAME, *sent[150:]])
    assert wire.frames(300) == [frames.swapped(one) for one in sent]
    assert host.drain() == [ARP_FRAME]
    record = daemon.next_record()
    assert record["programs"] == [{"interface": "d0", "seen": None, "passed": None, "departed": None,
                                   "unexplained": None}]
    final = daemon.stop()
    assert total(final, "rx_packets") == total(final, "tx_packets") == 300
    assert not daemon.warnings("d0: (?!queue)"), daemon.stderr
    assert rig.dut.attached() == {"d0": program} and bpffs.entries() == pins
    mine = closing(Squatter(rig.dut, "d0", 0))
    assert slot_is_free(theirs.xskmap, 0, mine.fd)
    assert not slot_is_free(theirs.xskmap, 1, mine.fd)
    wire.send_all(sent)
    assert host.drain() == sent, "after the end they are the host's"


def squatter_in_turn(namespace, ifname, queue):
    """The kernel lets go of a queue a moment after whoever had a socket there has ended."""
    made = []

    def binds():
        try:
            made.append(Squatter(namespace, ifname, queue))
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise
        return made

    wait_until(binds, 2 * SLOWNESS, f"queue {queue} of {ifname} free")
    return made[0]


def test_socket_of_another_process_in_the_slot_stays(rig1, millraced, closing, bpffs, example):
    """Two that fill one map: the second is refused, and the first loses nothing."""
    rig = rig1(queues=2, peer_queues=2)
    theirs = External(bpffs, "theirs", example)
    theirs.attach(rig.dut, "d0", "native")
    other, probe = closing(Squatter(rig.dut, "d0", 1)), closing(Squatter(rig.dut, "d0", 0))
    put_into_xskmap(theirs.xskmap, 0, other.fd)
    probe.close()
    time.sleep(0.2)
    message = millraced(rig.dut, "-i", "d0", *flags(theirs.xskmap), ready=False).fails(1)
    assert "d0 q0: the socket is not taken into the XSKMAP: EEXIST" in message
    assert "another program's socket is in this slot of your xskmap" in message
    probe = closing(squatter_in_turn(rig.dut, "d0", 0))
    assert not slot_is_free(theirs.xskmap, 0, probe.fd)


def test_program_that_comes_later_is_waited_for(rig1, tap, millraced, tmp_path, bpffs, example,
                                                 attach):
    """Without a program nothing can come, and that is said; likewise when it goes again."""
    sock = tmp_path / "sock"
    rig = rig1()
    wire = tap(rig.gen, "g0")
    theirs = External(bpffs, "theirs", example)
    daemon = millraced(rig.dut, "-l", "-i", "d0", "-c", f"--control-socket={sock}",
                       *flags(theirs.xskmap))
    assert daemon.warnings("d0: no XDP program is attached; nothing comes")
    wait_until(lambda: state(sock) == "degraded", 3 * SLOWNESS, "a port without a program")
    theirs.attach(rig.dut, "d0", attach)
    wait_until(lambda: daemon.said("d0: an XDP program is attached, after"), 3 * SLOWNESS,
               f"notice of {daemon}")
    assert state(sock) == "up"
    forwards(wire)
    theirs.detach(rig.dut, "d0", attach)
    wait_until(lambda: daemon.warnings("d0: program lost"), 5 * SLOWNESS, f"notice of {daemon}")
    assert state(sock) == "degraded"
    theirs.attach(rig.dut, "d0", attach)
    wait_until(lambda: len(daemon.said("an XDP program is attached, after")) == 2, 3 * SLOWNESS,
               f"notice of {daemon}")
    forwards(wire, 1000)
    assert total(daemon.stop(), "rx_packets") == 400


def test_program_without_the_map_is_named(rig1, millraced, bpffs, example, foreign_object):
    rig = rig1()
    theirs = External(bpffs, "theirs", example)
    rig.dut.ip("link", "set", "dev", "d0", "xdpdrv", "obj", foreign_object, "sec", "xdp")
    daemon = millraced(rig.dut, "-i", "d0", *flags(theirs.xskmap))
    assert daemon.warnings(rf"d0: XDP program \d+ 'foreign_pass' \(native mode\) does not use the map "
                           rf"pinned at {re.escape(str(theirs.xskmap))}")
    daemon.stop()


MISTAKES = {
    "no such file": (lambda theirs, folder: theirs.maps / "xks",
                     r"no such file; pin the map of your program there \(`bpftool map pin name NAME "),
    "no bpffs": (lambda theirs, folder: folder / "external.o",
                 r"is no pinned map, for it is not in a bpf file system; `mount -t bpf bpf FOLDER`"),
    "a program": (lambda theirs, folder: theirs.program,
                  r"is a bpf-prog and not a map; name the file at which your program's XSKMAP is"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_path_of_no_map(rig1, millraced, tmp_path, bpffs, example, mistake):
    rig = rig1()
    theirs = External(bpffs, "theirs", example)
    path, message = MISTAKES[mistake][0](theirs, tmp_path), MISTAKES[mistake][1]
    lines = millraced(rig.dut, "-i", "d0", *flags(path), ready=False).fails(1)
    assert re.search(rf"d0: xskmap {re.escape(str(path))}: {message}", lines), lines
    assert lines.count("\n") == 0


def test_map_of_another_type(rig1, millraced, bpffs):
    rig = rig1()
    path = bpffs.path / "hash"
    run("bpftool", "map", "create", path, "type", "hash", "key", 4, "value", 4, "entries", 4, "name",
        "other")
    message = millraced(rig.dut, "-i", "d0", *flags(path), ready=False).fails(1)
    assert f"d0: xskmap {path}: map 'other' is not an XSKMAP" in message
    assert "make it with BPF_MAP_TYPE_XSKMAP" in message


def test_map_with_too_few_slots(rig1, millraced, tmp_path, bpffs):
    rig = rig1(queues=4)
    theirs = External(bpffs, "theirs", compiled(tmp_path, slots=2))
    theirs.attach(rig.dut, "d0", "native")
    message = millraced(rig.dut, "-i", "d0", "-q", "0,3", *flags(theirs.xskmap), ready=False).fails(1)
    assert (f"d0: xskmap {theirs.xskmap}: has 2 slots, and queue 3 needs 4; make it with max_entries 4, "
            "or serve other queues") in message
    millraced(rig.dut, "-i", "d0", "-q", "0-1", *flags(theirs.xskmap)).stop()


def test_two_interfaces_have_not_one_map(rig2, millraced, bpffs, example):
    rig = rig2()
    theirs = External(bpffs, "theirs", example)
    message = millraced(rig.dut, "-l", "-i", "d0", "-i", "d1", *flags(theirs.xskmap),
                        ready=False).fails(1)
    assert f"d0 and d1 have the same xskmap {theirs.xskmap}, whose slots are the queues of one" in message


def test_patch_by_a_file_and_its_reload(rig2, tap, millraced, file, bpffs, example, attach):
    """One port by somebody else's program, one by ours; a reload hands the first over to ours."""
    rig = rig2()
    near, far = tap(rig.gen, "g0"), tap(rig.sink, "s0")
    theirs = External(bpffs, "theirs", example)
    program = theirs.attach(rig.dut, "d0", attach)
    ends = [port("b", "d1", attach=attach), forward("main", "patch", "a b")]
    file.write(port("a", "d0", attach_method="external", xskmap=theirs.xskmap), *ends)
    daemon = millraced(rig.dut, "--config", file.path)
    sent = [frames.numbered(n) for n in range(200)]
    exchange(near, far, sent, sent)
    exchange(far, near, sent, sent)
    shown = {one["port"]: one["program"]["id"] for one in file.ask("status")["ports"]}
    assert shown["a"] == program
    assert "millrace_unexplained_packets{device=\"d1\"}" in file.ask("metrics")["text"]
    assert "millrace_unexplained_packets{device=\"d0\"}" not in file.ask("metrics")["text"]
    file.refuse(port("a", "d0"), *ends)  # theirs is there
    exchange(near, far, sent, sent)
    theirs.detach(rig.dut, "d0", attach)
    file.take(port("a", "d0", attach=attach), *ends)
    exchange(near, far, sent, sent)
    daemon.stop()
    assert rig.dut.attached() == {}


def test_crash_leaves_the_slot_empty(rig1, tap, millraced, closing, bpffs, example, attach):
    rig = rig1()
    wire, host = tap(rig.gen, "g0"), tap(rig.dut, "d0")
    theirs = External(bpffs, "theirs", example)
    program = theirs.attach(rig.dut, "d0", attach)
    daemon = millraced(rig.dut, "-l", "-i", "d0", *flags(theirs.xskmap))
    forwards(wire)
    daemon.kill()
    time.sleep(0.3)
    sent = [frames.numbered(n) for n in range(100)]
    wire.send_all(sent)
    assert host.drain() == sent and rig.dut.attached() == {"d0": program}
    daemon = millraced(rig.dut, "-l", "-i", "d0", *flags(theirs.xskmap))
    forwards(wire, 500)
    daemon.stop()


@pytest.mark.parametrize("method", ["link", "external"])
def test_equal_ifindex_in_two_namespaces_and_one_bpffs(rig1, tap, millraced, bpffs, example, attach,
                                                       method):
    """Field case 49: what one does never touches the other's program, map or pins."""
    rigs = [rig1(), rig1()]
    assert rigs[0].dut.link("d0")["ifindex"] == rigs[1].dut.link("d0")["ifindex"]
    wires = [tap(rig.gen, "g0") for rig in rigs]
    theirs = [External(bpffs, f"theirs{n}", example) for n in range(2)]
    asked = [["-l", "-i", "d0"], ["-l", "-i", "d0"]]
    if method == "external":
        for n in range(2):
            theirs[n].attach(rigs[n].dut, "d0", attach)
            asked[n] += flags(theirs[n].xskmap)
    pins = bpffs.entries()
    how = {} if method == "external" else {"attach": attach}
    daemons = [millraced(rigs[n].dut, *asked[n], **how) for n in range(2)]
    assert bpffs.entries() == pins, "nothing is pinned by us"
    attached = rigs[1].dut.attached()
    for wire in wires:
        forwards(wire)
    daemons[0].stop()
    assert rigs[1].dut.attached() == attached and bpffs.entries() == pins
    forwards(wires[1], 500)
    daemons[0] = millraced(rigs[0].dut, *asked[0], **how)
    daemons[0].kill()
    forwards(wires[1], 1000)
    assert rigs[1].dut.attached() == attached and bpffs.entries() == pins
    assert total(daemons[1].stop(), "rx_packets") == 600
