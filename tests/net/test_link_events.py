"""What happens to the links of a run from a file: a port whose device goes waits for it, the others go
on, every frame has one fate, and a device that is there again is served within a second.

RIG-2 with a third pair, gen(g2) <-> dut(d2). A patch wan-lan on d0-d1, and beside it l2fwd on d2, which
nothing that happens to the others may disturb. A run from flags ends when its device goes:
test_links.py.
"""

import contextlib
import os
import pathlib
import random
import re
import resource
import subprocess
import time

import frames
import pytest
from appliance import forward, port
from control import millracectl
from daemon import program, stopped, total
from lab import SANITIZED, SLOWNESS, Namespace, wait_until
from test_links import Received
from wire import Taker, exchange

RATE = 2000
RESUME = 1.0 * SLOWNESS
FAR = {"d0": "g0", "d1": "s0", "d2": "g2"}


@pytest.fixture
def rig(rig2):
    rig = rig2()
    rig.join(rig.gen, "g2", "d2")
    return rig


def patch(attach="auto", wan=None, lan=None, **keys):
    return [port("wan", "d0", attach=attach, **(wan or {})),
            port("lan", "d1", attach=attach, **(lan or {})), forward("main", "patch", "wan lan", **keys)]


def side(attach="auto", **keys):
    return [port("dmz", "d2", attach=attach), forward("side", "l2fwd", "dmz", **keys)]


@pytest.fixture
def start(rig, millraced, file):
    def begin(*sections, **options):
        file.write(*sections)
        return millraced(rig.dut, "--config", file.path, **options)
    return begin


def owner(rig, ifname):
    return {"d": rig.dut, "g": rig.gen, "s": rig.sink}[ifname[0]]


def port_of(file, name):
    return next(one for one in file.ask("status")["ports"] if one["port"] == name)


def becomes(file, name, state, timeout=5):
    """Wait for the state of a port; the seconds it took."""
    try:
        return wait_until(lambda: port_of(file, name)["state"] == state, timeout * SLOWNESS,
                          f"{name} {state}")
    except AssertionError as error:
        raise AssertionError(f"{error}, but: {port_of(file, name)}") from None


def works(rig, tap, count=100):
    near, far = tap(rig.gen, "g0"), tap(rig.sink, "s0")
    sent = [frames.numbered(n) for n in range(count)]
    exchange(near, far, sent, sent)
    exchange(far, near, sent, sent)


def delete(rig, device):
    far = FAR[device]
    owner(rig, far).ip("link", "del", far)


def create(rig, device):
    rig.join(owner(rig, FAR[device]), FAR[device], device)


def dropped(record, *devices):
    """Frames that a worker took and dropped, over these ports."""
    return sum(sum(socket["drops"].values()) for socket in record["sockets"]
               if socket["interface"] in devices)


def check_fates(record):
    """Each frame that a worker received has left, or was dropped by name; none is counted twice."""
    for ports in (("d0", "d1"), ("d2",)):
        came = sum(total(record, "rx_packets", one) for one in ports)
        left = sum(total(record, "tx_packets", one) for one in ports)
        assert came == left + dropped(record, *ports), (ports, came, left, record)


class Undisturbed:
    """A numbered stream to d2 and back, all of which must come, once and in order."""

    def __init__(self, rig, tap, stream, task, rate=RATE):
        wire = tap(rig.gen, "g2")
        self._taker = Taker(task, wire)
        self._load = stream(wire, frames.numbered, rate)

    def stop(self):
        self._load.stop()
        got = self._taker.stop()
        want = [frames.swapped(frames.numbered(n)) for n in range(self._load.given)]
        assert self._load.refused == 0
        assert got == want, f"{len(got)} of {len(want)} frames came back as they should"


@pytest.fixture
def beside(rig, tap, stream, task):
    def begin(**options):
        return Undisturbed(rig, tap, stream, task, **options)
    return begin


def fds(pid):
    return len(list(pathlib.Path(f"/proc/{pid}/fd").iterdir()))


def helper_of(daemon):
    return int(pathlib.Path(f"/proc/{daemon.pid}/task/{daemon.pid}/children").read_text())


# A device that goes and comes


@pytest.mark.parametrize("waiting", ["spin", "poll"])
@pytest.mark.parametrize("where", ["d0", "d1"])
def test_deleted_and_created_again_under_load(start, file, rig, tap, stream, beside, attach, where,
                                              waiting):
    """Field case 53."""
    daemon = start(*patch(attach, wait=waiting), *side(attach))
    taken = beside()
    load = stream(tap(rig.gen, "g0"), lambda seq: frames.numbered(seq, 100), RATE)
    far = Received(tap(rig.sink, "s0"))
    far.seconds_to_next(lambda: load.given, 5)
    held = fds(daemon.pid)
    delete(rig, where)
    name = "wan" if where == "d0" else "lan"
    becomes(file, name, "gone", 1)
    now = port_of(file, name)
    assert now["program"] is None and now["link"] == "absent" and "deleted" in now["reason"]
    if where == "d1":
        before = total(daemon.next_record(), "rx_packets", "d0")
        record = daemon.next_record()
        assert total(record, "rx_packets", "d0") > before, "what came in flows on"
        assert total(record, "tx_packets", "d1") and dropped(record, "d0") > 0, record
    load.stop()
    create(rig, where)
    usable = time.monotonic()
    load = stream(tap(rig.gen, "g0"), lambda seq: frames.numbered(seq, 100), RATE)
    far = Received(tap(rig.sink, "s0"))
    far.seconds_to_next(lambda: 0, 5)
    took = time.monotonic() - usable
    load.stop()
    taken.stop()
    record = daemon.quiet_record()
    check_fates(record)
    assert fds(daemon.pid) == held
    states = [one["state"] for one in port_of(file, name)["history"]]
    assert states[0] == "up" and "gone" in states, states
    works(rig, tap)
    final = daemon.stop()
    check_fates(final)
    print(f"recovered in {took * 1000:.0f} ms")
    assert took < RESUME
    assert rig.dut.attached() == {}


@pytest.mark.parametrize("where", ["d0", "d1"])
def test_moved_to_another_namespace_and_back(start, file, rig, tap, beside, attach, closing, where):
    offload = r"^rx-vlan-offload: on$"
    assert re.search(offload, rig.dut.run("ethtool", "-k", where), re.M)
    daemon = start(*patch(attach), *side(attach))
    taken = beside()
    works(rig, tap)
    name = "wan" if where == "d0" else "lan"
    other = closing(Namespace("other"))
    ifindex = port_of(file, name)["ifindex"]
    rig.dut.ip("link", "set", where, "netns", other.name)
    becomes(file, name, "gone", 1)
    other.link_up(where)
    assert other.attached() == {}, "our program went with it"
    assert other.promiscuity(where) == 0
    time.sleep(0.2)
    other.ip("link", "set", where, "netns", rig.dut.name)
    rig.dut.link_up(where)
    took = becomes(file, name, "up", 1)
    assert took < RESUME
    works(rig, tap)
    taken.stop()
    assert port_of(file, name)["ifindex"] == ifindex, "the kernel kept the number, and we saw through it"
    assert not re.search(offload, rig.dut.run("ethtool", "-k", where), re.M)
    check_fates(daemon.stop())
    wait_until(lambda: re.search(offload, rig.dut.run("ethtool", "-k", where), re.M), 1 * SLOWNESS,
               "what was switched off before it went is on again")


def test_frames_of_a_device_that_left_while_we_were_late_are_no_fault(start, file, rig, tap, stream, attach, closing):
    """The kernel takes the sockets off it when it leaves, and runs our program on until we take that off. The port
    was degraded for it, by a wrong key in our map, until frames came for 10 s."""
    daemon = start(*patch(attach, wait="poll"), *side(attach, wait="poll"))
    works(rig, tap)
    other = closing(Namespace("other"))
    load = stream(tap(rig.sink, "s0"), frames.numbered, 2000)
    time.sleep(0.1)
    with stopped(daemon.pid):
        rig.dut.ip("link", "set", "d1", "netns", other.name)
        other.link_up("d1")
        time.sleep(0.1)
        other.ip("link", "set", "d1", "netns", rig.dut.name)
        rig.dut.link_up("d1")
    becomes(file, "lan", "up")
    time.sleep(1)  # by then it would be judged
    load.stop()
    assert port_of(file, "lan")["state"] == "up", port_of(file, "lan")
    assert not daemon.warnings("d1: [0-9]+ frames"), daemon.stderr
    works(rig, tap)
    record = daemon.quiet_record()
    assert program(record, "d1")["departed"] > 10
    assert program(record, "d0")["departed"] == 0
    check_fates(daemon.stop())


def test_both_ports_of_a_patch_go_and_come(start, file, rig, tap, beside, attach):
    """No socket is left whose memory the next could share."""
    daemon = start(*patch(attach), *side(attach))
    taken = beside()
    works(rig, tap)
    for _ in range(3):
        for one in ("d0", "d1"):
            delete(rig, one)
        for name in ("wan", "lan"):
            becomes(file, name, "gone", 1)
        for one in ("d1", "d0"):
            create(rig, one)
        for name in ("wan", "lan"):
            becomes(file, name, "up")
        works(rig, tap)
    taken.stop()
    final = daemon.stop()
    check_fates(final)
    assert total(final, "tx_packets", "d1") == total(final, "tx_packets", "d0") == 400, "counts go on"


def test_created_again_at_once(start, file, rig, tap, attach):
    """The new one is there before the daemon has heard that the old one went."""
    daemon = start(*patch(attach), *side(attach))
    for _ in range(5):
        delete(rig, "d1")
        create(rig, "d1")
        first = port_of(file, "lan")["ifindex"]
        wait_until(lambda: port_of(file, "lan")["ifindex"] == rig.dut.link("d1")["ifindex"] and
                   port_of(file, "lan")["state"] == "up", 5, f"served again, was {first}")
        works(rig, tap)
    check_fates(daemon.stop())


@pytest.mark.parametrize("how", ["created again", "moved and back"])
def test_events_that_were_lost_are_made_up_for(start, file, rig, tap, closing, attach, how,
                                               tmp_path):
    """So many that the kernel drops some: every device is looked at, and no socket is believed to live
    because a device has the number it had."""
    daemon = start(*patch(attach), *side(attach))
    works(rig, tap)
    other = closing(Namespace("other"))
    storm = tmp_path / "storm"
    storm.write_text("".join(f"link set d2 alias {'x' * 200}{n}\n" for n in range(1000)))
    with stopped(daemon.pid):
        rig.dut.run("ip", "-batch", storm)
        if how == "created again":
            delete(rig, "d1")
            create(rig, "d1")
        else:
            rig.dut.ip("link", "set", "d1", "netns", other.name)
            other.ip("link", "set", "d1", "netns", rig.dut.name)
            rig.dut.link_up("d1")
    wait_until(lambda: "d1 is not served any more" in daemon.stderr, 2 * SLOWNESS, "it was seen")
    becomes(file, "lan", "up", 2)
    works(rig, tap)
    rig.dut.link_down("d2")
    becomes(file, "dmz", "down", 2)
    daemon.stop()


def test_a_look_that_fails_is_taken_again_and_for_no_state(start, file, rig, tap, attach, tmp_path):
    """Events were lost, and there is no fd left to ask the kernel with: nothing is known, so nothing is said."""
    daemon = start(*patch(attach), *side(attach))
    held = fds(daemon.pid)
    storm = tmp_path / "storm"
    storm.write_text("".join(f"link set d0 alias {'x' * 200}{n}\n" for n in range(1000)))
    limit = resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE)
    with stopped(daemon.pid):
        rig.dut.run("ip", "-batch", storm)
        rig.dut.link_down("d2")
        delete(rig, "d1")
        create(rig, "d1")
        resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, (3, limit[1]))
    wait_until(lambda: "d1 is not served any more" in daemon.stderr, 2 * SLOWNESS, "it was seen")
    time.sleep(0.3)
    assert daemon.said("EMFILE"), daemon.stderr
    assert not daemon.said("port dmz") and not daemon.said("port wan"), daemon.stderr
    resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, limit)
    becomes(file, "lan", "up", 3)
    becomes(file, "dmz", "down", 3)
    works(rig, tap)
    assert [one["state"] for one in port_of(file, "wan")["history"]] == ["up"]
    wait_until(lambda: fds(daemon.pid) == held, 2 * SLOWNESS, f"{held} fds as before")
    check_fates(daemon.stop())


def test_a_port_comes_under_an_alternative_name(start, file, rig, tap, attach):
    daemon = start(port("wan", "d0", attach=attach),
                   port("lan", "uplink-to-the-provider", attach=attach, wait_for_device="yes"),
                   forward("main", "patch", "wan lan"))
    assert port_of(file, "lan")["state"] == "gone"
    rig.dut.ip("link", "property", "add", "dev", "d1", "altname", "uplink-to-the-provider")
    becomes(file, "lan", "up", 1)
    assert port_of(file, "lan")["device"] == "d1"
    works(rig, tap)
    daemon.stop()


@pytest.mark.alone
def test_a_port_that_is_gone_costs_nothing(start, file, rig, attach):
    daemon = start(*patch(attach, wait="poll"), *side(attach, wait="poll"))
    delete(rig, "d1")
    becomes(file, "lan", "gone")
    time.sleep(0.2)
    before = daemon.cpu_seconds()
    time.sleep(2)
    used = daemon.cpu_seconds() - before
    daemon.stop()
    assert used < 0.1 * SLOWNESS, f"{used:.3f} s CPU in 2 s"


@pytest.mark.parametrize("mode", ["rxdrop", "txpush", "l2fwd"])
def test_other_modes_wait_too(start, file, rig, tap, attach, mode):
    pace = {"pps": 2000} if mode == "txpush" else {}
    forwards = [forward("main", mode, "one two", **pace)] if mode != "l2fwd" else [
        forward("main", mode, "one"), forward("other", mode, "two")]
    daemon = start(port("one", "d0", attach=attach), port("two", "d1", attach=attach), *forwards)
    near = tap(rig.gen, "g0")
    delete(rig, "d1")
    becomes(file, "two", "gone", 1)
    create(rig, "d1")
    becomes(file, "two", "up")
    far = tap(rig.sink, "s0")
    if mode == "txpush":
        assert far.receive(2)[0][6:12] == rig.dut.mac("d1"), "from the address of the new device"
        assert near.receive(2)[0][6:12] == rig.dut.mac("d0")
    else:
        sent = [frames.numbered(n) for n in range(100)]
        back = [frames.swapped(one) for one in sent]
        for wire in (near, far):
            wire.send_all(sent)
            assert mode == "rxdrop" or wire.frames(100) == back
        if mode == "rxdrop":
            wait_until(lambda: total(daemon.next_record(), "rx_packets", "d1") == 100, 5, "received")
    daemon.stop()


@pytest.mark.parametrize("wide, narrow", [("d0", "d1"), ("d1", "d0")])
def test_hand_over_survives_it(rig2, closing, file, millraced, tap, attach, wide, narrow):
    """Ports of unequal width: a worker without a TX queue hands over, before and after."""
    rig = rig2()
    for one in (wide, narrow):
        delete(rig, one)
        far = FAR[one]
        owner(rig, far).ip("link", "add", far, "numrxqueues", 1, "numtxqueues", 1, "type", "veth",
                           "peer", "name", one, "netns", rig.dut.name, "numtxqueues",
                           1 if one == narrow else 2, "numrxqueues", 2)
        owner(rig, far).link_up(far)
        rig.dut.link_up(one)
    file.write(*patch(attach))
    daemon = millraced(rig.dut, "--config", file.path)
    works(rig, tap)
    for gone in (narrow, wide):
        name = "wan" if gone == "d0" else "lan"
        far = FAR[gone]
        delete(rig, gone)
        becomes(file, name, "gone", 1)
        near = tap(owner(rig, FAR[wide if gone == narrow else narrow]),
                   FAR[wide if gone == narrow else narrow])
        near.send_all([frames.numbered(n) for n in range(100)])
        owner(rig, far).ip("link", "add", far, "numrxqueues", 1, "numtxqueues", 1, "type", "veth",
                           "peer", "name", gone, "netns", rig.dut.name, "numtxqueues",
                           1 if gone == narrow else 2, "numrxqueues", 2)
        owner(rig, far).link_up(far)
        rig.dut.link_up(gone)
        becomes(file, name, "up")
        works(rig, tap)
    final = daemon.stop()
    came = total(final, "rx_packets")
    assert came == total(final, "tx_packets") + dropped(final, "d0", "d1"), final


# A device that is not as it was


def test_it_comes_back_with_fewer_queues(rig2, file, millraced, tap, attach):
    rig = rig2(queues=2, peer_queues=2 + (attach == "skb"))
    file.write(*patch(attach))
    daemon = millraced(rig.dut, "--config", file.path)
    delete(rig, "d1")
    becomes(file, "lan", "gone", 1)
    rig.queues = rig.peer_queues = 1
    create(rig, "d1")
    becomes(file, "lan", "degraded", 2)
    now = port_of(file, "lan")
    assert now["rx_queues"] == 1 and re.search(r"1 of the planned queues .*reload", now["reason"]), now
    near, far = tap(rig.gen, "g0"), tap(rig.sink, "s0")
    sent = [frames.numbered(n) for n in range(50)]
    exchange(far, near, sent, sent)
    status, _, err = file.reload()
    assert (status, err) == (0, []), err
    becomes(file, "lan", "up", 2)
    exchange(near, far, sent, sent)
    daemon.stop()


def test_it_comes_back_with_more_queues(rig2, file, millraced, tap, attach):
    rig = rig2()
    file.write(*patch(attach))
    daemon = millraced(rig.dut, "--config", file.path)
    delete(rig, "d1")
    becomes(file, "lan", "gone", 1)
    rig.queues = 4
    create(rig, "d1")
    becomes(file, "lan", "degraded", 2)
    assert "3 of 4 RX queues are not served" in port_of(file, "lan")["reason"]
    works(rig, tap)
    assert file.reload()[0] == 0
    becomes(file, "lan", "up", 2)
    daemon.stop()


def test_it_comes_back_as_a_port_of_a_bridge(start, file, rig, tap, beside, attach):
    """What a start would refuse is not served, said once, and served when it is in order."""
    daemon = start(*patch(attach), *side(attach))
    taken = beside()
    delete(rig, "d1")
    becomes(file, "lan", "gone", 1)
    rig.dut.ip("link", "add", "br0", "type", "bridge")
    rig.sink.ip("link", "add", "s0", "type", "veth", "peer", "name", "dx", "netns", rig.dut.name)
    rig.dut.ip("link", "set", "dx", "master", "br0")
    rig.sink.link_up("s0")
    rig.dut.ip("link", "set", "dx", "name", "d1")
    rig.dut.link_up("d1")
    becomes(file, "lan", "degraded", 2)
    assert "is a port of bridge br0" in port_of(file, "lan")["reason"]
    time.sleep(0.5)
    assert daemon.stderr.count("is a port of bridge br0, which") == 1, daemon.stderr
    assert "d1" not in rig.dut.attached()
    rig.dut.ip("link", "set", "d1", "nomaster")
    becomes(file, "lan", "up", 2)
    works(rig, tap)
    taken.stop()
    check_fates(daemon.stop())


def test_somebody_elses_program_is_on_the_new_device(start, file, rig, tap, attach, foreign_object):
    """It is left alone; tried a bounded number of times, said once; served when it is off."""
    daemon = start(*patch(attach))
    delete(rig, "d1")
    becomes(file, "lan", "gone", 1)
    rig.sink.ip("link", "add", "s0", "type", "veth", "peer", "name", "dx", "netns", rig.dut.name)
    rig.sink.link_up("s0")
    rig.dut.link_up("dx")
    rig.dut.ip("link", "set", "dx", "xdpgeneric" if attach == "skb" else "xdp", "obj", foreign_object,
               "sec", "xdp")
    rig.dut.link_down("dx")
    rig.dut.ip("link", "set", "dx", "name", "d1")
    rig.dut.link_up("d1")
    becomes(file, "lan", "degraded", 4)
    assert "left alone" in port_of(file, "lan")["reason"], port_of(file, "lan")
    time.sleep(1)
    assert daemon.stderr.count("is left alone") == 1, daemon.stderr
    rig.dut.ip("link", "set", "d1", "xdpgeneric" if attach == "skb" else "xdp", "off")
    becomes(file, "lan", "up", 4)
    works(rig, tap)
    daemon.stop()


@pytest.mark.full
def test_what_ends_without_an_event_is_noticed(start, file, rig, tap, attach, foreign_link):
    """A program that goes with its bpf_link sends no message; the port was degraded until the next reload."""
    daemon = start(*patch(attach))
    with stopped(daemon.pid):
        delete(rig, "d1")
        create(rig, "d1")
        other = foreign_link(rig.dut, "d1", attach)
    becomes(file, "lan", "degraded", 4)
    time.sleep(9)  # all quick tries are over
    assert "left alone" in port_of(file, "lan")["reason"], port_of(file, "lan")
    assert daemon.stderr.count("is left alone") == 1, daemon.stderr
    other.close()
    becomes(file, "lan", "up", 12)
    works(rig, tap)
    daemon.stop()


# What happens to a device that stays


def test_down_and_no_carrier_are_told(start, file, rig, tap, beside, attach):
    """Field case 52; that forwarding goes on: test_links.py."""
    daemon = start(*patch(attach), *side(attach))
    taken = beside()
    rig.dut.link_down("d1")
    becomes(file, "lan", "down", 1)
    rig.dut.link_up("d1")
    becomes(file, "lan", "up", 1)
    rig.sink.link_down("s0")
    becomes(file, "lan", "no-carrier", 1)
    rig.sink.link_up("s0")
    becomes(file, "lan", "up", 1)
    works(rig, tap)
    taken.stop()
    history = port_of(file, "lan")["history"]
    states = [one["state"] for one in history]
    assert states[0] == "up" and states[-1] == "up" and len(states) <= 16
    assert [one for one in states if one == "down"] and "no-carrier" in states, states
    ages = [one["age_seconds"] for one in history]
    assert ages == sorted(ages)
    assert re.search(r"^millraced: port lan: no-carrier: the other end", daemon.stderr, re.M)
    _, text, _ = millracectl(file.sock, "ports")
    assert re.search(r"^lan +\d+ s +down +the device is set down", text, re.M), text
    daemon.stop()


def test_renamed(start, file, rig, tap, beside, attach):
    """It forwards on under its new name; once it is gone, one of the configured name is served."""
    daemon = start(*patch(attach, lan={"promiscuous": "off"}), *side(attach))
    taken = beside()
    rig.dut.link_down("d1")
    rig.dut.ip("link", "set", "d1", "name", "renamed7")
    rig.dut.link_up("renamed7")
    wait_until(lambda: port_of(file, "lan")["device"] == "renamed7", 1 * SLOWNESS, "the new name")
    becomes(file, "lan", "up", 1)
    works(rig, tap)
    assert "port lan: d1 is called renamed7 now" in daemon.stderr
    for on in (True, False):  # what was not opened before it had that name
        file.ask("set", port="lan", promiscuous=on)
        assert rig.dut.promiscuity("renamed7") == on
    record = daemon.next_record()
    assert total(record, "rx_packets", "renamed7") == 100, record
    delete(rig, "d1")
    becomes(file, "lan", "gone", 1)
    create(rig, "d1")
    becomes(file, "lan", "up", 2)
    works(rig, tap)
    taken.stop()
    daemon.stop()


def test_mtu_raised_is_warned_of_and_no_reload_fails(start, file, rig, tap, beside):
    """Field case 52 beside: a forward that is left as it is is no reason to refuse another."""
    daemon = start(*patch("skb", frame_size=2048), *side("skb"))
    taken = beside()
    rig.dut.ip("link", "set", "d1", "mtu", 3000)
    becomes(file, "lan", "degraded", 1)
    assert re.search(r"MTU 3000 is above the 1770 ", port_of(file, "lan")["reason"]), port_of(file, "lan")
    works(rig, tap)
    assert len(daemon.warnings("MTU is 3000 now")) == 1
    file.take(*patch("skb", frame_size=2048, batch=7), *side("skb"))
    works(rig, tap)
    # What would be started anew with it could not be had: that is refused before anything is ended.
    err = file.refuse(*patch("skb", frame_size=2048, ring_size=256), *side("skb"))
    assert any("MTU 3000 does not fit" in line for line in err), err
    works(rig, tap)
    rig.dut.ip("link", "set", "d1", "mtu", 1500)
    becomes(file, "lan", "up", 1)
    taken.stop()
    daemon.stop()


def test_it_comes_back_with_a_larger_mtu(start, file, rig, tap):
    """As one that was raised meanwhile: served, with a warning."""
    daemon = start(*patch("skb", frame_size=2048))
    delete(rig, "d1")
    becomes(file, "lan", "gone", 1)
    rig.sink.ip("link", "add", "s0", "type", "veth", "peer", "name", "d1", "mtu", 3000, "netns",
                rig.dut.name)
    rig.sink.link_up("s0")
    rig.dut.link_up("d1")
    becomes(file, "lan", "degraded", 2)
    wait_until(lambda: port_of(file, "lan")["program"], 1 * SLOWNESS, "served")
    assert "MTU 3000 is above" in port_of(file, "lan")["reason"]
    assert len(daemon.warnings("d1: MTU 3000 does not fit")) == 1
    works(rig, tap)
    daemon.stop()


def test_mtu_raised_stops_the_port_if_asked(start, file, rig, tap, beside):
    stop = {"mtu_too_large": "stop"}
    daemon = start(*patch("skb", lan=stop, frame_size=2048), *side("skb"))
    taken = beside()
    works(rig, tap)
    rig.dut.ip("link", "set", "d1", "mtu", 3000)
    becomes(file, "lan", "degraded", 1)
    assert "d1" not in rig.dut.attached() and "MTU 3000" in port_of(file, "lan")["reason"]
    file.take(*patch("skb", lan=stop, frame_size=2048, batch=7), *side("skb"))
    assert port_of(file, "lan")["state"] == "degraded"
    rig.dut.ip("link", "set", "d1", "mtu", 1500)
    took = becomes(file, "lan", "up", 1)
    works(rig, tap)
    taken.stop()
    assert took < RESUME
    check_fates(daemon.stop())


def test_channels_changed(rig2, file, millraced, tap, attach):
    rig = rig2(queues=4, peer_queues=1)
    rig.dut.run("ethtool", "-L", "d1", "rx", 2, "tx", 2)
    file.write(*patch(attach))
    daemon = millraced(rig.dut, "--config", file.path)
    works(rig, tap)
    refused = rig.dut.run("ethtool", "-L", "d1", "rx", 1, "tx", 1, check=False)
    assert port_of(file, "lan")["rx_queues"] == 2, f"the kernel lets nobody take queues: {refused}"
    rig.dut.run("ethtool", "-L", "d1", "rx", 4, "tx", 4)
    becomes(file, "lan", "degraded", 2)
    assert "2 of 4 RX queues are not served" in port_of(file, "lan")["reason"]
    works(rig, tap)
    assert file.reload()[0] == 0
    becomes(file, "lan", "up", 2)
    works(rig, tap)
    assert {one["queue"] for one in port_of(file, "lan")["queues"]} >= {0, 1, 2, 3}
    daemon.stop()


def test_mac_changed(start, file, rig, tap, attach):
    daemon = start(port("one", "d0", attach=attach), forward("main", "txpush", "one", pps=1000))
    rig.dut.ip("link", "set", "d0", "address", "02:00:00:00:77:01")
    wait_until(lambda: "02:00:00:00:77:01 now" in daemon.stderr, 1 * SLOWNESS, "told")
    near = tap(rig.gen, "g0")
    ours = bytes.fromhex("020000007701")
    wait_until(lambda: near.receive(2)[0][6:12] == ours, 2 * SLOWNESS, "frames with the new address")
    assert {near.receive(2)[0][6:12] for _ in range(50)} == {ours}
    daemon.stop()


def test_leaving_a_bridge_is_not_going_away(start, file, rig, attach):
    """It sends RTM_DELLINK too."""
    daemon = start(port("one", "d0", attach=attach), forward("main", "txpush", "one", pps=10))
    rig.dut.ip("link", "add", "br0", "type", "bridge")
    rig.dut.ip("link", "set", "d0", "master", "br0")
    rig.dut.ip("link", "set", "d0", "nomaster")
    time.sleep(0.3)
    assert "gone" not in [one["state"] for one in port_of(file, "one")["history"]]
    daemon.stop()


# Absent at the start


@pytest.mark.parametrize("queues", ["auto", "0"])
def test_wait_for_device(rig, start, file, tap, beside, attach, queues):
    delete(rig, "d1")
    wait = {"wait_for_device": "yes", "queues": queues}
    daemon = start(*patch(attach, lan=wait), *side(attach))
    taken = beside()
    now = port_of(file, "lan")
    assert (now["state"], now["reason"]) == ("gone", "waiting for the device")
    near = tap(rig.gen, "g0")
    near.send_all([frames.numbered(n) for n in range(100)])
    record = daemon.quiet_record()
    assert dropped(record, "d0") == 100, record
    create(rig, "d1")
    usable = time.monotonic()
    becomes(file, "lan", "up", 1)
    assert time.monotonic() - usable < RESUME
    works(rig, tap)
    taken.stop()
    check_fates(daemon.stop())


def test_all_devices_are_awaited(rig, start, file, tap, attach):
    for one in ("d0", "d1"):
        delete(rig, one)
    wait = {"wait_for_device": "yes"}
    daemon = start(*patch(attach, wan=wait, lan=wait), *side(attach))
    assert [one["state"] for one in file.ask("status")["ports"]] == ["gone", "gone", "up"]
    for one in ("d0", "d1"):
        create(rig, one)
    for name in ("wan", "lan"):
        becomes(file, name, "up")
    works(rig, tap)
    daemon.stop()


def test_without_it_an_absent_device_is_an_error(rig, file, millraced):
    delete(rig, "d1")
    file.write(*patch(lan={"wait_for_device": "no"}))
    assert "d1: no such interface" in millraced(rig.dut, "--config", file.path, ready=False).fails()


# Reloads meanwhile


def test_reload_while_a_port_is_gone(start, file, rig, tap, beside, attach):
    """What is about others is taken over, the port waits on; and it can be taken out."""
    daemon = start(*patch(attach), *side(attach))
    taken = beside()
    delete(rig, "d1")
    becomes(file, "lan", "gone", 1)
    file.take(*patch(attach, batch=7), *side(attach))
    assert port_of(file, "lan")["state"] == "gone"
    create(rig, "d1")
    becomes(file, "lan", "up")
    works(rig, tap)
    delete(rig, "d1")
    becomes(file, "lan", "gone", 1)
    file.take(*patch(attach, ring_size=256), *side(attach))  # started anew, and still waiting
    assert port_of(file, "lan")["state"] == "gone"
    create(rig, "d1")
    becomes(file, "lan", "up")
    works(rig, tap)
    delete(rig, "d1")
    becomes(file, "lan", "gone", 1)
    file.take(port("wan", "d0", attach=attach), forward("main", "l2fwd", "wan"), *side(attach))
    taken.stop()
    daemon.stop()


@pytest.mark.parametrize("change", ["add", "remove"])
def test_a_port_beside_one_that_is_gone_comes_and_goes(start, file, rig, tap, attach, change):
    """rxdrop, whose ports come and go by themselves."""
    def ports(*names):
        return [*(port(name, name, attach=attach) for name in names),
                forward("main", "rxdrop", " ".join(names))]
    daemon = start(*ports("d0", "d1", *(["d2"] if change == "remove" else [])))
    delete(rig, "d1")
    becomes(file, "d1", "gone", 1)
    file.take(*ports("d1", "d0", *(["d2"] if change == "add" else [])))
    assert port_of(file, "d1")["state"] == "gone"
    create(rig, "d1")
    becomes(file, "d1", "up", 2)
    wire = tap(rig.sink, "s0")
    wire.send_all([frames.numbered(n) for n in range(100)])
    record = daemon.quiet_record()
    assert total(record, "rx_packets", "d1") == 100, record
    daemon.stop()


def test_an_up_that_was_lost_among_many_events_is_seen(start, file, rig):
    """Else the port stayed down for good: what was still queued is older than what was lost."""
    daemon = start(*patch("native", wait="poll"), *side("native", wait="poll"))
    with stopped(daemon.pid):
        rig.dut.link_down("d1")
        lines = "\n".join(f"link set d1 mtu {1400 + n % 2}" for n in range(1500))
        subprocess.run(["ip", "-n", rig.dut.name, "-batch", "-"], input=lines, text=True, check=True)
        rig.dut.link_up("d1")
    time.sleep(4)
    now = port_of(file, "lan")
    assert now["state"] == "up", now
    daemon.stop()


# A random walk


class Walk:
    """Random events over the three ports, under traffic; `random` decides all of them."""

    def __init__(self, rig, file, daemon, tap, stream, random, other, sections):
        self.rig, self.file, self.daemon = rig, file, daemon
        self.tap, self.stream, self.random = tap, stream, random
        self.other, self.sections = other, sections  # a namespace to move to; what is configured
        self.names = {"d0": "wan", "d1": "lan", "d2": "dmz"}
        self.loads, self.took = {}, []
        self.begun, self.done = time.monotonic(), []  # what happened, as "at SECONDS: EVENT DEVICE"
        self.up = dict.fromkeys(self.names, True)
        self.far_up = dict.fromkeys(self.names, True)
        for device in self.names:
            self.load(device)

    def load(self, device):
        far = FAR[device]
        wire = self.tap(owner(self.rig, far), far)
        self.loads[device] = self.stream(wire, frames.numbered, 500)

    def quiet(self, device):
        if device in self.loads:
            self.loads.pop(device).stop()

    def usable(self, device):
        """A device that is there, up at both ends: the port must serve it within a second."""
        if not (self.up[device] and self.far_up[device]):
            return
        name, ifindex = self.names[device], self.rig.dut.link(device)["ifindex"]

        def serves():
            now = port_of(self.file, name)
            return now["state"] in ("up", "degraded") and now["ifindex"] == ifindex and now["program"]
        try:
            self.took.append(wait_until(serves, 10 * SLOWNESS, f"{name} served"))
        except AssertionError as error:
            raise AssertionError(f"{error}, but: {port_of(self.file, name)}") from None

    def note(self, *words):
        self.done.append(f"at {time.monotonic() - self.begun:.3f}: {' '.join(map(str, words))}")

    @contextlib.contextmanager
    def explained(self):
        """What goes wrong within the block is told with all that happened, and what the daemon said."""
        try:
            yield
        except AssertionError as error:
            events = "\n".join(self.done)
            log = "\n".join(f"at {when - self.begun:.3f}: {text}" for when, text in self.daemon.err)
            raise AssertionError(f"{error}\nevents:\n{events}\nlog:\n{log}\n{self.daemon}") from None

    def recreate(self, device):
        self.quiet(device)
        delete(self.rig, device)
        time.sleep(self.random.choice([0, 0, 0.02, 0.2]))
        self.rig.queues = self.rig.peer_queues = self.random.choice([1, 2])
        create(self.rig, device)
        self.up[device] = self.far_up[device] = True
        self.load(device)
        self.usable(device)

    def move(self, device):
        self.rig.dut.ip("link", "set", device, "netns", self.other.name)
        if self.random.random() < 0.5:
            self.other.link_up(device)
        time.sleep(self.random.choice([0, 0.02, 0.1]))
        self.other.ip("link", "set", device, "netns", self.rig.dut.name)
        self.rig.dut.link_up(device)
        self.up[device] = True
        self.usable(device)

    def set_up(self, device):
        self.up[device] = not self.up[device]
        (self.rig.dut.link_up if self.up[device] else self.rig.dut.link_down)(device)

    def carrier(self, device):
        self.far_up[device] = not self.far_up[device]
        far = owner(self.rig, FAR[device])
        (far.link_up if self.far_up[device] else far.link_down)(FAR[device])

    def rename(self, device):
        self.rig.dut.ip("link", "set", device, "down")
        self.rig.dut.ip("link", "set", device, "name", "elsewhat")
        if self.random.random() < 0.5:
            self.rig.dut.ip("link", "set", "elsewhat", "up")
        time.sleep(self.random.choice([0, 0.05]))
        self.rig.dut.ip("link", "set", "elsewhat", "down")
        self.rig.dut.ip("link", "set", "elsewhat", "name", device)
        self.rig.dut.link_up(device)
        self.up[device] = True

    def mtu(self, device):
        self.rig.dut.ip("link", "set", device, "mtu", self.random.choice([1280, 1500, 5000]),
                        check=False)

    def channels(self, device):
        number = self.random.choice([1, 2])
        self.rig.dut.run("ethtool", "-L", device, "rx", number, "tx", number, check=False)

    def mac(self, device):
        self.rig.dut.ip("link", "set", device, "address",
                        f"02:00:00:00:00:{self.random.randrange(256):02x}")

    def reload(self, _):
        """It may be refused, for a device is as no start would have it; nothing may come of that."""
        keys = {"batch": self.random.choice([16, 32, 64])}
        self.file.write(*self.sections(**keys))
        self.file.reload()

    def step(self):
        event = self.random.choice([self.recreate, self.recreate, self.move, self.set_up, self.set_up,
                                    self.carrier, self.carrier, self.rename, self.mtu, self.channels,
                                    self.mac, self.reload])
        device = self.random.choice(list(self.names))
        self.note(event.__name__, device)
        event(device)
        assert self.daemon.running, "it ended"
        time.sleep(self.random.choice([0, 0, 0.01, 0.05, 0.1]))

    def settle(self):
        """All as at the start."""
        self.rig.queues = self.rig.peer_queues = 1
        for device in self.names:
            self.note("settle", device)
            self.quiet(device)
            delete(self.rig, device)
            create(self.rig, device)
            self.up[device] = self.far_up[device] = True
            self.usable(device)
        self.note("settle, reload")
        self.file.write(*self.sections())
        status, _, err = self.file.reload()
        assert (status, err) == (0, []), err
        for name in self.names.values():
            becomes(self.file, name, "up")


def held(daemon):
    """What the daemon and its helper have open, by kind."""
    kinds = {}
    for pid in (daemon.pid, helper_of(daemon)):
        for one in pathlib.Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):  # a client that has just left
                kind = re.sub(r"[0-9]+", "N", os.readlink(one))
                kinds[kind] = kinds.get(kind, 0) + 1
    return kinds


def rss_kib(pid):
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"^VmRSS:\s+(\d+)", text, re.M).group(1))


@pytest.mark.parametrize("events", [60, pytest.param(500, marks=pytest.mark.full)])
def test_random_walk(start, file, rig, tap, stream, closing, attach, events):
    """Field cases 52 and 53: whatever happens to the links, in any order. MILLRACE_WALK_SEED repeats one."""
    seed = int(os.environ.get("MILLRACE_WALK_SEED", random.randrange(1 << 32)))
    print(f"MILLRACE_WALK_SEED={seed}")

    def sections(**keys):
        return [*patch(attach, wait="poll", **keys), *side(attach, wait="poll", **keys)]

    daemon = start(*sections())
    walk = Walk(rig, file, daemon, tap, stream, random.Random(seed), closing(Namespace("other")),
                sections)
    with walk.explained():
        walk.settle()
    time.sleep(0.1)  # clients of the control socket leave
    before, memory = held(daemon), rss_kib(daemon.pid)
    for device in walk.names:
        walk.load(device)
    with walk.explained():
        for _ in range(events):
            walk.step()
        walk.settle()
    time.sleep(0.1)
    assert held(daemon) == before, "something was left open"
    grown = rss_kib(daemon.pid) - memory
    works(rig, tap)
    record = daemon.quiet_record()
    with walk.explained():
        check_fates(record)
        for one in ("d0", "d1", "d2"):
            assert program(record, one)["unexplained"] == 0, program(record, one)
        check_fates(daemon.stop())
    took = sorted(walk.took)
    print(f"{events} events, {len(took)} recoveries: median {took[len(took) // 2] * 1000:.0f} ms, "
          f"worst {took[-1] * 1000:.0f} ms; grown by {grown} KiB")
    assert took[-1] < RESUME, took[-5:]
    assert SANITIZED or grown < 1024, f"{grown} KiB more"
    assert rig.dut.attached() == {}
    assert [rig.dut.promiscuity(one) for one in walk.names] == [0, 0, 0]
