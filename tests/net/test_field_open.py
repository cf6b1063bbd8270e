"""Opening, opening again and falling back, as reported from the field (docs/field-cases.md).

RIG-1 and RIG-2, and devices without native XDP stacked on them: a macvlan, a bridge, a tun.
"""

import fcntl
import os
import re
import struct
import time

import frames
import pytest
from daemon import explained, program, total
from lab import SLOWNESS, wait_until
from wire import exchange

BUSY = re.compile(r"EBUSY|resource busy", re.I)
FALL_BACK = re.compile(r"no native XDP \(.*does not support XDP in native mode")
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
SHORT_NAME, LONG_NAME = "uplink", "uplink-long-name-over-15-chars"


def stack(rig, kind, port, name):
    """A device without native XDP above a port of the dut; what the port receives is its own."""
    dut = rig.dut
    if kind == "macvlan":
        dut.ip("link", "add", name, "link", port, "type", "macvlan", "mode", "passthru")
    else:
        dut.ip("link", "add", name, "type", "bridge", "forward_delay", 0, "mcast_snooping", 0)
        dut.ip("link", "set", port, "master", name)
    dut.link_up(name)
    wait_until(lambda: dut.link(name)["operstate"] == "UP", 5, f"{name} up")
    return dut.mac(name)


# Opening the same queue again

@pytest.mark.parametrize("times", [10, pytest.param(100, marks=pytest.mark.full)])
def test_generations_without_a_pause_do_not_mix(rig1, tap, millraced, attach, times):
    """Field case 1: started again at once, each run gets its own frames and no other's.

    A frame sent between two runs goes to the host and is never answered later.
    """
    rig = rig1()
    wire = tap(rig.gen, "g0")
    for generation in range(times):
        daemon = millraced(rig.dut, "-l", "-i", "d0", attach=attach)
        sent = [frames.numbered(generation * 100 + n) for n in range(5)]
        exchange(wire, wire, sent, [frames.swapped(frame) for frame in sent])
        final = daemon.stop()
        wire.send(frames.numbered(generation * 100 + 99))
        assert not BUSY.search(daemon.stderr), daemon.stderr
        assert total(final, "rx_packets") == program(final, "d0")["seen"] == len(sent)
    assert wire.drain() == []
    assert rig.dut.attached() == {}


@pytest.mark.parametrize("second", ["native", "skb"])
def test_second_user_of_a_queue_costs_the_first_no_frame(rig1, tap, stream, millraced, attach,
                                                         second):
    """Field case 2: refused by name while traffic flows; the first one's counts are whole."""
    rig = rig1()
    first = millraced(rig.dut, "-r", "-i", "d0", attach=attach)
    before = rig.dut.attached()
    load = stream(tap(rig.gen, "g0"), frames.numbered, 2000)
    said = millraced(rig.dut, "-r", "-i", "d0", attach=second, ready=False).fails(1)
    assert re.search(r"d0: another millraced serves it, whose XDP program \d+ 'millrace' .*end pid \d+ first", said), said
    assert rig.dut.attached() == before
    load.stop()
    record = first.quiet_record()
    assert total(record, "rx_packets") == load.given - load.refused > 0
    assert program(record, "d0")["seen"] == explained(record, "d0")
    assert total(first.stop(), "rx_dropped") == 0


# Falling back

@pytest.mark.parametrize("asked", ["auto", "skb"])
@pytest.mark.parametrize("kind", ["macvlan", "bridge"])
def test_no_native_xdp_falls_back_in_one_run(rig1, tap, millraced, kind, asked):
    """Field case 3: skb mode at once, the first refusal told once, and EBUSY never in its place."""
    rig = rig1()
    mac = stack(rig, kind, "d0", "x0")
    wire = tap(rig.gen, "g0")
    daemon = millraced(rig.dut, "-l", "-i", "x0", attach=asked if asked == "skb" else "auto")
    assert daemon.bound["x0", 0]["attach"] == "skb"
    assert len(daemon.warnings(FALL_BACK)) == (asked == "auto"), daemon.stderr
    assert not BUSY.search(daemon.stderr), daemon.stderr
    sent = [frames.numbered(n, 60 + n, dst=mac) for n in range(300)]
    exchange(wire, wire, sent[:1], [frames.swapped(sent[0])])
    exchange(wire, wire, sent[1:], [frames.swapped(frame) for frame in sent[1:]])
    final = daemon.stop()
    assert total(final, "rx_packets") == total(final, "tx_packets") == len(sent)
    assert rig.dut.attached() == {}


@pytest.mark.parametrize("flags, says", [
    (["-N"], r"x0: no XDP in native mode: .*does not support XDP in native mode"),
    (["-z"], r"x0.* no zero-copy \(driver {kind}\)"),
], ids=["native", "zero-copy"])
@pytest.mark.parametrize("kind", ["macvlan", "bridge"])
def test_what_the_driver_has_not_is_refused_by_name(rig1, millraced, kind, flags, says):
    """Field cases 3 and 4: insisted on, the true reason comes out and nothing stays attached."""
    rig = rig1()
    stack(rig, kind, "d0", "x0")
    said = millraced(rig.dut, "-r", "-i", "x0", *flags, ready=False).fails(1)
    assert re.search(says.format(kind=kind), said), said
    assert not BUSY.search(said), said
    assert rig.dut.attached() == {}


def test_what_stands_on_a_port_is_named_and_has_its_frames_back(rig1, tap, millraced, attach):
    """Field case 55: a macvlan above the port gets nothing meanwhile, which one warning says."""
    rig = rig1()
    mac = stack(rig, "macvlan", "d0", "x0")
    wire, above = tap(rig.gen, "g0"), tap(rig.dut, "x0")
    sent = [frames.numbered(n, dst=mac) for n in range(50)]
    daemon = millraced(rig.dut, "-l", "-i", "d0", attach=attach)
    assert len(daemon.warnings("d0: x0 stands on it")) == 1, daemon.stderr
    exchange(wire, wire, sent, [frames.swapped(frame) for frame in sent])
    assert above.drain() == []
    daemon.stop()
    exchange(wire, above, sent, sent)
    daemon = millraced(rig.dut, "-t", "-i", "d0", "-C", 1, attach=attach)
    daemon.ended(10 * SLOWNESS)
    assert not daemon.warnings("stands on it"), daemon.stderr


@pytest.fixture
def tun(closing):
    """A tun device in the dut: whole IP packets, no Ethernet header. Read and written as a file."""
    class Tun:
        def __init__(self, namespace, name):
            with namespace.entered():
                self._file = open("/dev/net/tun", "r+b", buffering=0)
                request = struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI)
                fcntl.ioctl(self._file, TUNSETIFF, request)
            os.set_blocking(self._file.fileno(), False)
            namespace.link_up(name)

        def send(self, packet):
            self._file.write(packet)

        def receive(self):
            return self._file.read(2048)

        def close(self):
            self._file.close()

    return lambda *arguments: closing(Tun(*arguments))


def packet(n):
    return frames.udp("198.18.0.1", "198.18.0.2", 1024 + n, 9, bytes(30))


@pytest.mark.parametrize("asked", ["auto", "skb"])
def test_tun_falls_back_and_every_packet_counts(rig1, tun, millraced, asked):
    """Field case 3: a device with neither native XDP nor Ethernet can still be received from."""
    rig = rig1()
    device = tun(rig.dut, "t0")
    daemon = millraced(rig.dut, "-r", "-i", "t0", attach=asked)
    assert daemon.bound["t0", 0]["attach"] == "skb"
    assert len(daemon.warnings(FALL_BACK)) == (asked == "auto"), daemon.stderr
    for n in range(100):
        device.send(packet(n))
    record = daemon.quiet_record()
    assert total(record, "rx_packets") == explained(record, "t0") == 100
    assert total(daemon.stop(), "rx_bytes") == 100 * len(packet(0))


def test_packets_without_ethernet_header_are_not_swapped(rig1, tun, millraced):
    """Field case 3: -l on a tun must not take the IP header for two MAC addresses."""
    rig = rig1()
    device = tun(rig.dut, "t0")
    daemon = millraced(rig.dut, "-l", "-i", "t0", ready=False)
    wait_until(lambda: not daemon.running or "forwarding" in daemon.stderr, 10 * SLOWNESS, "start")
    if daemon.running:
        device.send(packet(0))
        daemon.next_record()
        answer = device.receive()
        daemon.stop()
        assert answer in (None, packet(0)), f"sent back torn: {answer.hex()}"
    else:
        assert re.search(r"t0.*Ethernet", daemon.fails(1)), daemon.stderr
    assert rig.dut.attached() == {}


@pytest.mark.parametrize("kind", ["macvlan", "bridge"])
def test_native_and_skb_port_in_one_patch(rig2, tap, millraced, kind):
    """Field case 7: one port has native XDP, the other has not; both forward, each says its own."""
    rig = rig2()
    stack(rig, kind, "d1", "x1")
    near, far = tap(rig.gen, "g0"), tap(rig.sink, "s0")
    daemon = millraced(rig.dut, "-l", "-i", "d0", "-i", "x1")
    said = {interface: bound["attach"] for (interface, _), bound in daemon.bound.items()}
    assert said == {"d0": "native", "x1": "skb"}
    assert len(daemon.warnings(FALL_BACK)) == len(daemon.warnings("x1")) == 1
    there = [frames.numbered(n, 60 + n) for n in range(1000)]
    back = [frames.numbered(n, 60 + n, frames.ALICE, frames.BOB) for n in range(1000)]
    exchange(far, near, back[:1], back[:1])
    exchange(near, far, there, there)
    exchange(far, near, back[1:], back[1:])
    record = daemon.quiet_record()
    assert {s["interface"]: s["attach"] for s in record["sockets"]} == said
    final = daemon.stop()
    for port in ("d0", "x1"):
        assert total(final, "rx_packets", port) == total(final, "tx_packets", port) == 1000
    assert rig.dut.attached() == {}


def test_effective_mode_of_every_queue_is_what_the_kernel_says(rig1, millraced, attach):
    """Field case 5: line, report and `bpftool net` agree for each queue; no wish is repeated."""
    rig = rig1(queues=2)
    daemon = millraced(rig.dut, "-r", "-i", "d0", "-q", "all", attach=attach)
    shown = re.findall(r"^d0\(\d+\) (\w+) id", rig.dut.run("bpftool", "net", "show"), re.M)
    assert shown == [{"native": "driver", "skb": "generic"}[attach]]
    assert set(daemon.bound) == {("d0", 0), ("d0", 1)}
    record = daemon.next_record()
    for socket in record["sockets"]:
        bound = daemon.bound[socket["interface"], socket["queue"]]
        assert bound["attach"] == socket["attach"] == attach
        assert bound["copy"] == "copy" and socket["zero_copy"] is False
        assert bound["wakeup"] == "need_wakeup" and socket["need_wakeup"] is True
    assert not daemon.warnings(), daemon.stderr
    daemon.stop()


# Names

@pytest.fixture
def renamed(rig2):
    rig = rig2()
    for name in (SHORT_NAME, LONG_NAME):
        rig.dut.ip("link", "property", "add", "dev", "d0", "altname", name)
    return rig


@pytest.mark.parametrize("name", [SHORT_NAME, LONG_NAME])
def test_alternative_name_serves_as_the_name(renamed, tap, millraced, attach, name):
    """Field case 15: found by a name that may be too long for ioctls, with all that goes by name:
    ethtool's queues, the promiscuous mode, the XDP program; reports have the kernel's own name.
    """
    near, far = tap(renamed.gen, "g0"), tap(renamed.sink, "s0")
    daemon = millraced(renamed.dut, "-l", "-i", name, "-i", "d1", "-q", "all", attach=attach)
    assert set(daemon.bound) == {("d0", 0), ("d1", 0)}
    assert set(renamed.dut.attached()) == {"d0", "d1"}
    assert renamed.dut.promiscuity("d0") > 0
    sent = [frames.numbered(n) for n in range(500)]
    exchange(near, far, sent, sent)
    exchange(far, near, sent, sent)
    final = daemon.stop()
    assert [socket["interface"] for socket in final["sockets"]] == ["d0", "d1"]
    assert [renamed.dut.promiscuity(port) for port in renamed.ports] == [0, 0]


def test_alternative_name_is_said_beside_the_kernels(renamed, millraced, attach):
    """Field case 15: who asked for the long name must find it again in what is said at start."""
    daemon = millraced(renamed.dut, "-r", "-i", LONG_NAME, attach=attach)
    daemon.stop()
    assert re.search(rf"{LONG_NAME}.*\bd0\b|\bd0\b.*{LONG_NAME}", daemon.stderr), daemon.stderr


def test_one_device_by_two_names_is_refused(renamed, millraced):
    """Field case 15."""
    said = millraced(renamed.dut, "-l", "-i", "d0", "-i", LONG_NAME, ready=False).fails(1)
    assert "d0" in said and LONG_NAME in said and "same interface" in said, said
    assert renamed.dut.attached() == {}


# What is left behind

def bpffs():
    return sorted(os.walk("/sys/fs/bpf"))


@pytest.mark.parametrize("then", ["native", "skb"])
def test_host_answers_again_within_a_second_of_sigkill(rig1, tap, millraced, attach, then):
    """Field case 43: while rxdrop runs the host is deaf; killed, it hears again, nothing is pinned,
    and either attach mode can be had next.
    """
    rig = rig1(addresses={"g0": "10.78.0.1/24", "d0": "10.78.0.2/24"})

    def answers():
        return " 1 received" in rig.gen.run("ping", "-c", 1, "-W", 0.3, "10.78.0.2", check=False)

    assert answers()
    pinned = bpffs()
    daemon = millraced(rig.dut, "-r", "-i", "d0", attach=attach)
    assert not answers(), "rxdrop has the frames"
    daemon.kill()
    assert wait_until(answers, 5, "the host answers") < 1.0 * SLOWNESS
    assert rig.dut.attached() == {}
    assert bpffs() == pinned
    daemon = millraced(rig.dut, "-r", "-i", "d0", attach=then)
    assert not answers()
    daemon.stop()
    assert answers()


@pytest.mark.parametrize("where", ["d0", "d1"])
def test_pair_recreated_at_once_under_the_same_names(rig2, tap, stream, millraced, attach, waiting,
                                                     where):
    """Field case 53: the new device has the old name and is not ours. Exit 1 with its name within
    5 s, everything of the other port released, the newcomer untouched, and a new start works.
    """
    rig = rig2()
    far_end, far_if = (rig.gen, "g0") if where == "d0" else (rig.sink, "s0")
    daemon = millraced(rig.dut, "-l", "-i", "d0", "-i", "d1", attach=attach, waiting=waiting)
    load = stream(tap(rig.gen, "g0"), frames.numbered, 500)
    time.sleep(0.2)
    load.stop()
    far_end.ip("link", "del", far_if)
    rig.join(far_end, far_if, where)
    start = time.monotonic()
    daemon.ended(5 * SLOWNESS, code=1)
    assert time.monotonic() - start < 5 * SLOWNESS
    assert re.search(rf"error: {where}: the device is gone", daemon.stderr), daemon.stderr
    assert rig.dut.attached() == {}
    assert [rig.dut.promiscuity(port) for port in rig.ports] == [0, 0]
    daemon = millraced(rig.dut, "-l", "-i", "d0", "-i", "d1", attach=attach, waiting=waiting)
    assert not BUSY.search(daemon.stderr), daemon.stderr
    near, far = tap(rig.gen, "g0"), tap(rig.sink, "s0")
    sent = [frames.numbered(n) for n in range(200)]
    exchange(near, far, sent, sent)
    exchange(far, near, sent, sent)
    daemon.stop()
