"""The host keeps its network while its ports are forwarded (field case 61), and gets what rules say.

RIG-2: the host's addresses are on d0, in the dut; the patch d0-d1 joins gen and sink.
"""

import os
import signal
import socket
import time

import frames
import pytest
from appliance import forward, port
from control import millracectl
from daemon import total
from lab import SLOWNESS, wait_until
from test_opener import helper_of
from test_verdicts import frame_of, icmp6, ipv6, six
from wire import exchange

GEN, SINK, HOST, NEW, PORT = "10.77.0.1", "10.77.0.2", "10.77.0.3", "10.77.0.4", 2222
GEN6, SINK6, HOST6 = "fd77::1", "fd77::2", "fd77::3"
LLDP = 0x88CC
SOON = 1.0 * SLOWNESS


@pytest.fixture
def rig(rig2):
    """With addresses of both families on all of g0, s0 and d0, and wires that carry real frames."""
    rig = rig2(addresses={"g0": f"{GEN}/24", "s0": f"{SINK}/24", "d0": f"{HOST}/24"})
    for where, name, address in ((rig.gen, "g0", GEN6), (rig.sink, "s0", SINK6),
                                 (rig.dut, "d0", HOST6)):
        where.write_sysctl(f"net.ipv6.conf.{name}.disable_ipv6", 0)
        where.ip("address", "add", f"{address}/64", "dev", name, "nodad")
    rig.offloads_off("g0", "s0", "d0")
    return rig


@pytest.fixture
def plain(rig2):
    """IPv4 on d0 alone: nobody sends a frame by itself."""
    return rig2(addresses={"d0": f"{HOST}/24"})


def patch(attach="auto", passes=None, **keys):
    wan = {"pass": passes} if passes else {}
    return [port("wan", "d0", attach=attach, **wan), port("lan", "d1", attach=attach),
            forward("main", "patch", "wan lan", **keys)]


class Session:
    """A TCP session of gen with the host, both ends real sockets; each beat is there and back."""

    def __init__(self, rig, closing, host=HOST):
        with rig.dut.entered():
            server = closing(socket.create_server((host, PORT)))
        with rig.gen.entered():
            self._client = closing(socket.socket())
        server.settimeout(5)
        self._client.settimeout(5)
        self._client.connect((host, PORT))
        self._peer = closing(server.accept()[0])
        self._peer.settimeout(5)
        self._beats = 0

    def beat(self, times=20):
        for _ in range(times):
            self._beats += 1
            text = b"%08d" % self._beats * 100
            for one, other in ((self._client, self._peer), (self._peer, self._client)):
                one.sendall(text)
                got = b""
                while len(got) < len(text):
                    got += other.recv(len(text) - len(got))
                assert got == text


def ping(namespace, address, count=3):
    out = namespace.run("ping", "-c", count, "-i", 0.05, "-W", 1, address, check=False)
    return f"{count} received" in out


def cold(rig):
    """Nobody knows anybody's MAC any more."""
    for where in (rig.gen, rig.sink, rig.dut):
        where.ip("neigh", "flush", "all")


def test_the_hosts_session_lives_through_start_reload_kill_and_stop(rig, millraced, file, closing,
                                                                    attach):
    """Field case 61, its first half."""
    session = Session(rig, closing)
    session.beat()

    def works(daemon_runs):
        session.beat()
        cold(rig)
        assert ping(rig.gen, HOST) and ping(rig.gen, HOST6), "the host is reached, from cold"
        session.beat()
        assert ping(rig.gen, SINK) is daemon_runs and ping(rig.gen, SINK6) is daemon_runs
        cold(rig)
        # The host asks, too.
        assert ping(rig.dut, GEN) and ping(rig.dut, GEN6)
        session.beat()

    works(False)
    file.write(*patch(attach))
    daemon = millraced(rig.dut, "--config", file.path)
    works(True)
    for batch in (16, 64):
        file.take(*patch(attach, batch=batch))
        session.beat()
    file.take(*patch(attach, passes="default, tcp dport 9"))
    file.take(*patch(attach, ring_size=512))  # stopped, and started anew
    works(True)
    daemon.kill()
    wait_until(lambda: rig.dut.attached() == {}, 5 * SLOWNESS, "program gone")
    works(False)
    daemon = millraced(rig.dut, "--config", file.path)
    works(True)
    final = daemon.stop()
    assert total(final, "rx_packets", "d0") > 0
    works(False)


def ask_for(target):
    return frames.arp(1, frames.ALICE, GEN, target)


def answers(question, frame):
    """An ARP reply to ARP, an advertisement to a solicitation; to who asked."""
    return frame[:6] == question[6:12] and frame[12:14] == question[12:14] and (
        frame[21] == 2 if frame[12:14] == b"\x08\x06" else frame[54] == 136)


def who_gets(ends, frame):
    """Of a question: "host" answered it on the near side, "wire" carried it to the far side."""
    near, far = ends
    near.drain(0.02), far.drain(0.02)
    near.send_all([frame])
    until = time.monotonic() + 1 * SLOWNESS
    while time.monotonic() < until:
        if frame in far.frames(1, 0.02):
            return "wire"
        if any(answers(frame, one) for one in near.frames(1, 0.02)):
            return "host"
    return None


def nd_for(target, rig, src=GEN6):
    """A solicitation as gen sends it, with its own address to answer to."""
    body = icmp6(135, target) + b"\1\1" + rig.macs["g0"]
    group = b"\x33\x33\xff" + six(target)[13:]
    packet = ipv6(58, body, src=src, dst=f"ff02::1:ff{six(target)[13]:02x}:"
                  f"{int.from_bytes(six(target)[14:], 'big'):x}")
    head = packet[8:40] + (len(body)).to_bytes(4, "big") + b"\0\0\0\x3a"
    total_ = frames.checksum(head + body).to_bytes(2, "big")
    return group + rig.macs["g0"] + b"\x86\xdd" + packet[:42] + total_ + packet[44:]


def test_arp_and_nd_go_to_whom_they_are_about(rig, millraced, file, tap, attach):
    file.write(*patch(attach))
    daemon = millraced(rig.dut, "--config", file.path)
    # Nobody but the taps is at the ends: stacks there would answer, and learn, by themselves.
    ends = tap(rig.gen, "g0"), tap(rig.sink, "s0")
    for where, name in ((rig.gen, "g0"), (rig.sink, "s0")):
        where.ip("address", "flush", "dev", name)
        where.write_sysctl(f"net.ipv6.conf.{name}.disable_ipv6", 1)
    assert who_gets(ends, ask_for(HOST)) == "host"
    assert who_gets(ends, ask_for(SINK)) == "wire"
    assert who_gets(ends, nd_for(HOST6, rig)) == "host"
    assert who_gets(ends, nd_for(SINK6, rig)) == "wire"
    daemon.stop()


def test_a_patch_is_a_wire_but_for_the_host(plain, millraced, file, tap, attach):
    """Reserved addresses cross, tagged frames cross, and all of it unchanged; both ways."""
    near, far = tap(plain.gen, "g0"), tap(plain.sink, "s0")
    file.write(*patch(attach))
    daemon = millraced(plain.dut, "--config", file.path)
    sent = [frame_of(bytes.fromhex(f"0180c20000{last:02x}"), 0x88B5, bytes(46))
            for last in range(16)]
    sent += [frames.tagged(frames.numbered(1), (frames.VLAN, 100))]
    # By itself, for a copy goes another way: the host has an address on the near side.
    for part in (sent, [ask_for("10.77.0.99")]):
        exchange(near, far, part, part)
        exchange(far, near, part, part)
    # Each port's own MAC is the host's, there and nowhere else.
    own = {near: plain.macs["d0"], far: plain.macs["d1"]}
    for one, other in ((near, far), (far, near)):
        wires = frames.numbered(7, dst=own[other])
        exchange(one, other, [frames.numbered(8, dst=own[one]), wires], [wires])
    final = daemon.stop()
    assert [one["passed"] for one in final["programs"]] == [2, 1]


def test_pass_none_has_everything_cross(plain, millraced, file, tap):
    near, far = tap(plain.gen, "g0"), tap(plain.sink, "s0")
    file.write(*patch(passes="none"))
    daemon = millraced(plain.dut, "--config", file.path)
    sent = [frames.numbered(1, dst=plain.macs["d0"]), ask_for(HOST)]
    exchange(near, far, sent, sent)
    assert daemon.stop()["programs"][0]["passed"] == 0


def test_flags_pass_nothing_unless_they_say_so(plain, millraced, tap):
    near, far = tap(plain.gen, "g0"), tap(plain.sink, "s0")
    sent = [frames.numbered(1, dst=plain.macs["d0"]), ask_for(HOST)]
    daemon = millraced(plain.dut, "-l", "-i", "d0", "-i", "d1")
    exchange(near, far, sent, sent)
    daemon.stop()
    daemon = millraced(plain.dut, "-l", "-i", "d0", "-i", "d1", "--pass=default")
    exchange(near, far, sent, [])
    assert daemon.stop()["programs"][0]["passed"] == 2


@pytest.mark.parametrize("helper", ["lives", "died"])
def test_addresses_are_followed(plain, millraced, file, tap, helper):
    ends = tap(plain.gen, "g0"), tap(plain.sink, "s0")
    file.write(*patch())
    daemon = millraced(plain.dut, "--config", file.path)
    if helper == "died":
        os.kill(helper_of(daemon), signal.SIGKILL)
        wait_until(lambda: "helper process" in daemon.stderr, 2 * SLOWNESS, "its end is said")
    ask = ask_for(NEW)
    assert who_gets(ends, ask) == "wire"
    plain.dut.ip("address", "add", f"{NEW}/24", "dev", "d0")
    time.sleep(SOON)
    assert who_gets(ends, ask) == "host"
    assert who_gets(ends, ask_for(HOST)) == "host", "the one of before stays"
    plain.dut.ip("address", "del", f"{NEW}/24", "dev", "d0")
    time.sleep(SOON)
    assert who_gets(ends, ask) == "wire"

    old, new = plain.macs["d0"], bytes.fromhex("02000000d00d")
    near, far = ends
    exchange(near, far, [frames.numbered(1, dst=old), frames.numbered(2, dst=new)],
             [frames.numbered(2, dst=new)])
    plain.dut.ip("link", "set", "d0", "address", new.hex(":"))
    time.sleep(SOON)
    exchange(near, far, [frames.numbered(3, dst=old), frames.numbered(4, dst=new)],
             [frames.numbered(3, dst=old)])
    # Rules are read again too, with nobody who has a privilege.
    file.take(*patch(passes="default, ethertype 0x88b5"))
    exchange(near, far, [frames.numbered(5)], [])
    daemon.stop()


def test_a_thousand_addresses_at_once_are_all_followed(plain, millraced, file, tap):
    ends = tap(plain.gen, "g0"), tap(plain.sink, "s0")
    file.write(*patch())
    daemon = millraced(plain.dut, "--config", file.path)
    addresses = [f"10.78.{n // 250}.{n % 250 + 1}" for n in range(1000)]
    batch = "".join(f"address add {address}/16 dev d0\n" for address in addresses)
    path = file.path.with_suffix(".batch")
    path.write_text(batch)
    plain.dut.ip("-batch", path)
    time.sleep(SOON)
    for address in addresses[::111]:
        assert who_gets(ends, ask_for(address)) == "host", address
    plain.dut.ip("address", "flush", "dev", "d0")
    time.sleep(SOON)
    for address in addresses[::111]:
        assert who_gets(ends, ask_for(address)) == "wire", address
    daemon.stop()


def test_l2fwd_gives_the_host_what_rules_say(plain, millraced, tap, attach):
    near = tap(plain.gen, "g0")
    daemon = millraced(plain.dut, "-l", "-i", "d0", "--pass=tcp dport 22", "--pass=ethertype 0x0806",
                       attach=attach)
    plain.dut.ip("neigh", "replace", GEN, "lladdr", frames.ALICE.hex(":"), "dev", "d0")

    def syn(dport):
        return frames.ethernet(plain.macs["d0"], frames.ALICE, frames.IPV4,
                               frames.tcp_syn(GEN, HOST, 999, dport))

    near.send_all([syn(22)])
    [reset] = near.frames(1)
    assert reset[:6] == frames.ALICE and reset[14 + 20 + 13] & 4, "the host refuses: RST"
    exchange(near, near, [syn(23)], [frames.swapped(syn(23))])
    near.send_all([ask_for(HOST)])
    [reply] = near.frames(1)
    assert answers(ask_for(HOST), reply)
    final = daemon.stop()
    assert final["programs"][0]["passed"] == 2 and total(final, "rx_packets") == 1


def test_a_rule_that_stays_holds_for_every_frame_while_others_change(plain, millraced, file, tap,
                                                                     stream):
    near, far = tap(plain.gen, "g0"), tap(plain.sink, "s0")
    file.write(*patch(passes="ethertype 0x88cc"))
    daemon = millraced(plain.dut, "--config", file.path)

    def build(seq):
        frame = frames.numbered(seq)
        return frame[:12] + LLDP.to_bytes(2, "big") + frame[14:] if seq % 2 else frame

    running = stream(near, build, 4000)
    for n in range(30):
        others = [f"tcp dport {1 + (n * 37 + m) % 4000}" for m in range(n * 7 % 200)]
        others.insert(len(others) // 2, "ethertype 0x88cc")
        file.take(*patch(passes=",\n\t".join([*["default"][:n % 2], *others])))
    running.stop()
    got = far.drain(0.3)
    assert got == [build(seq) for seq in range(0, running.given, 2)]
    final = daemon.stop()
    assert final["programs"][0]["passed"] == running.given // 2


def rules_of(file):
    return {(one["port"], one["class"] or one["rule"]): one["frames"]
            for one in file.ask("rules")["rules"]}


def test_rules_are_counted_and_told(plain, millraced, file, tap):
    near, far = tap(plain.gen, "g0"), tap(plain.sink, "s0")
    file.write(*patch(passes="default, ethertype 0x88b5, both tcp dport 22"))
    daemon = millraced(plain.dut, "--config", file.path)
    near.send_all([frames.numbered(n) for n in range(7)] + [ask_for(HOST)] * 3 +
                  [frame_of(plain.macs["d0"], 0x0800, bytes(46))] * 2)
    # The answers of the host are not its own to get.
    wait_until(lambda: rules_of(file)[("wan", "own MAC")] == 2, 2 * SLOWNESS, "counts")
    told = rules_of(file)
    assert {key: frames_ for key, frames_ in told.items() if frames_} == {
        ("wan", "ethertype 0x88b5"): 7, ("wan", "own ARP"): 3, ("wan", "own MAC"): 2}
    assert told[("wan", "both tcp dport 22")] == told[("lan", "own MAC")] == 0
    assert ("lan", "ethertype 0x88b5") not in told
    code, out, err = millracectl(file.sock, "rules")
    assert (code, err) == (0, "") and "default: own ARP" in out and "ethertype 0x88b5" in out, out
    # One that stays keeps its count, one that goes is no more told, a port that has none has no line.
    file.take(*patch(passes="tcp dport 23, ethertype 0x88b5"))
    told = {key: frames_ for key, frames_ in rules_of(file).items() if key[0] == "wan"}
    assert told == {("wan", "ethertype 0x88b5"): 7, ("wan", "tcp dport 23"): 0}
    assert far.drain(0.05) == []
    assert daemon.stop()["programs"][0]["passed"] == 12
