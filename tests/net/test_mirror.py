"""Frames that the host and the wire both need: router advertisements, MLD, DHCP replies, ARP for
others. The XDP program gives them to the host, and copies cross the patch: each once, unchanged, in
order."""

import contextlib
import os
import signal
import socket
import struct
import time

import frames
import pytest
from appliance import forward, port
from control import millracectl, result
from frames import ALICE, BROADCAST, IPV4
from lab import SLOWNESS, wait_until
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from test_opener import helper_of
from test_steering import Session, nd_for
from wire import Taker, exchange

IPV6, ICMPV6 = 0x86DD, 58
ADDRESSES = {"g0": "10.76.0.1/24", "d0": "10.76.0.2/24", "s0": "10.76.0.3/24"}
RATE, BURST = 1000, 128  # of src/mirror.h
ALL_NODES, ALL_NODES_MAC = "ff02::1", bytes.fromhex("333300000001")
TAGS = {"untagged": (), "one tag": ((frames.VLAN, 0x6064),), "priority": ((frames.VLAN, 0xA000),),
        "two tags": ((frames.QINQ, 7), (frames.VLAN, 8))}


@pytest.fixture
def sock(file):
    return file.sock


@pytest.fixture
def rig(rig2):
    """Only the dut's d0 has addresses of both kinds, and nobody speaks unasked."""
    rig = rig2(addresses=ADDRESSES)
    rig.dut.write_sysctl("net.ipv6.conf.d0.accept_ra", 0)
    rig.dut.write_sysctl("net.ipv6.conf.d0.accept_dad", 0)
    rig.dut.write_sysctl("net.ipv6.conf.d0.disable_ipv6", 0)
    rig.dut.ip("address", "add", "2001:db8::2/64", "dev", "d0", "nodad")
    return rig


@pytest.fixture
def patch(millraced, rig, file, attach):
    """Starts a patch of d0 and d1 from a file; what `keys` say is of both ports."""
    def start(*flags, **keys):
        file.write(*sections(attach, **keys))
        return millraced(rig.dut, "--config", file.path, *flags)
    return start


def sections(attach, **keys):
    return [port("wan", "d0", attach=attach, **keys), port("lan", "d1", attach=attach, **keys),
            forward("wire", "patch", "wan lan")]


def ipv6(src, dst, payload, hop_by_hop=b""):
    following = 0 if hop_by_hop else ICMPV6
    return struct.pack("!IHBB", 6 << 28, len(hop_by_hop + payload), following, 255) + \
        socket.inet_pton(socket.AF_INET6, src) + socket.inet_pton(socket.AF_INET6, dst) + \
        hop_by_hop + payload


def icmpv6(kind, body, hop_by_hop=b""):
    src = "fe80::aa"
    packet = struct.pack("!BBH", kind, 0, 0) + body
    pseudo = socket.inet_pton(socket.AF_INET6, src) + socket.inet_pton(socket.AF_INET6, ALL_NODES)
    total = frames.checksum(pseudo + struct.pack("!II", len(packet), ICMPV6) + packet)
    packet = packet[:2] + struct.pack("!H", total) + packet[4:]
    return frames.ethernet(ALL_NODES_MAC, ALICE, IPV6, ipv6(src, ALL_NODES, packet, hop_by_hop))


def arp(number, sender="10.76.0.1"):
    """A question for somebody else, each for another one."""
    return frames.arp(1, ALICE, sender, f"10.77.{number >> 8}.{number & 0xff}")


def router_advertisement(number):
    return icmpv6(134, struct.pack("!BBHII", 64, 0, 0, number, 0))


def mld_query(number):
    return icmpv6(130, struct.pack("!HH", number & 0x7fff, 0) + bytes(16),
                  bytes.fromhex("3a00050200000100"))


def dhcp_reply(number):
    return frames.ethernet(BROADCAST, ALICE, IPV4, frames.udp(
        "10.76.0.1", "255.255.255.255", 67, 68, struct.pack("!I", number) + bytes(296)))


KINDS = {"ARP": arp, "RA": router_advertisement, "MLD": mld_query, "DHCP": dhcp_reply}


def copies(sock, name="wan"):
    return next(one["copies"] for one in result(sock, "ports")["ports"] if one["port"] == name)


def settled(sock, count, name="wan"):
    """The counts once they account for `count` frames, and what they are."""
    wait_until(lambda: sum(copies(sock, name).values()) >= count, 10 * SLOWNESS,
               f"{count} frames copied or not, {copies(sock, name)}", step=0.06)
    return copies(sock, name)


def nothing(tap):
    got = tap.frames(1, 0.1)
    assert not got, f"{tap.where}: a frame nobody sent: {got[0].hex()}"


@pytest.mark.parametrize("tags", TAGS.values(), ids=TAGS.keys())
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
def test_both_have_it_once_and_unchanged(rig, patch, tap, sock, kind, tags):
    gen, sink = tap(rig.gen, "g0"), tap(rig.sink, "s0")
    daemon = patch()
    host = tap(rig.dut, "d0")
    sent = [frames.tagged(kind(number), *tags) for number in range(100)]
    exchange(gen, sink, sent, sent)
    assert host.frames(len(sent), 0.2) == sent
    nothing(host)
    assert settled(sock, 100) == {"copied": 100, "dropped": 0, "failed": 0}
    assert copies(sock, "lan") == {"copied": 0, "dropped": 0, "failed": 0}
    daemon.stop()


def test_they_stay_in_order(rig, patch, tap, sock):
    gen, sink = tap(rig.gen, "g0"), tap(rig.sink, "s0")
    daemon = patch()
    sent = [kind(number) for number in range(100) for kind in KINDS.values()]
    for at in range(0, len(sent), 40):  # 40 every 50 ms: below the rate
        exchange(gen, sink, sent[at:at + 40], sent[at:at + 40])
        time.sleep(0.05)
    assert settled(sock, 400) == {"copied": 400, "dropped": 0, "failed": 0}
    daemon.stop()


def number_of_arp(frame):
    return frame[40] << 8 | frame[41]


def test_too_many_are_dropped_and_counted(rig, patch, tap, sock):
    """Flood far beyond the rate: the host has them all, and each is copied or counted."""
    gen, sink = tap(rig.gen, "g0"), tap(rig.sink, "s0")
    daemon = patch()
    host = tap(rig.dut, "d0")
    sent = [arp(number) for number in range(4000)]
    began = time.monotonic()
    gen.send_all(sent)
    counts = settled(sock, len(sent))
    took = time.monotonic() - began
    got = sink.drain()
    assert host.drain() == sent
    assert sum(counts.values()) == len(sent) and counts["failed"] == 0, counts
    assert len(got) == counts["copied"] >= BURST and counts["dropped"] > 0, counts
    assert counts["copied"] <= BURST + RATE * took + 1, (counts, took)
    numbers = [number_of_arp(frame) for frame in got]
    assert numbers == sorted(set(numbers)) and got == [sent[number] for number in numbers]
    assert len(daemon.warnings("d0: more frames come that the host and the wire both need")) == 1
    _, out, _ = millracectl(sock, "stats")
    assert "PORT  COPIED  TOO-MANY  NOT-SENT\n" in out, out
    metrics = {(sample.name, sample.labels.get("port")): sample.value
               for family in text_string_to_metric_families(result(sock, "metrics")["text"])
               for sample in family.samples}
    assert metrics["millrace_copied_packets_total", "wan"] == counts["copied"]
    assert metrics["millrace_copies_dropped_packets_total", "wan"] == counts["dropped"]
    assert metrics["millrace_copies_failed_packets_total", "wan"] == 0
    # The bucket fills again.
    time.sleep(0.3)
    exchange(gen, sink, sent[:BURST], sent[:BURST])
    daemon.stop()


@pytest.mark.parametrize("attach", ["native"], indirect=True)
def test_a_stop_under_flood_is_clean(rig, patch, tap, stream, sock):
    sink = tap(rig.sink, "s0")
    daemon = patch()
    running = stream(tap(rig.gen, "g0"), arp, 3000)
    time.sleep(1.5)
    daemon.stop()
    running.stop()
    numbers = [number_of_arp(frame) for frame in sink.drain()]
    assert numbers == sorted(set(numbers)) and len(numbers) > RATE
    assert not rig.dut.attached()
    assert "d0: of the frames that the host and the wire both needed" in daemon.stderr


def test_no_address_no_copies(rig2, millraced, file, sock, tap, attach):
    """Nothing is the host's then, and the sockets of AF_XDP have it all."""
    rig = rig2()
    file.write(*sections(attach))
    daemon = millraced(rig.dut, "--config", file.path)
    gen, sink, host = tap(rig.gen, "g0"), tap(rig.sink, "s0"), tap(rig.dut, "d0")
    sent = [kind(number) for number in range(15) for kind in KINDS.values()]
    exchange(gen, sink, sent, sent)
    nothing(host)
    assert copies(sock) == copies(sock, "lan") == {"copied": 0, "dropped": 0, "failed": 0}
    # The host comes to have one: from then on it gets them as well.
    rig.dut.ip("address", "add", "10.76.0.2/24", "dev", "d0")
    time.sleep(0.5 * SLOWNESS)
    sent = [arp(number) for number in range(50)]
    exchange(gen, sink, sent, sent)
    assert host.frames(50, 0.2) == sent
    assert settled(sock, 50)["copied"] == 50
    daemon.stop()


def test_what_the_host_sends_is_not_copied(rig, patch, tap):
    gen, sink = tap(rig.gen, "g0"), tap(rig.sink, "s0")
    daemon = patch()
    rig.dut.run("ping", "-c", 1, "-W", 0.3, "10.76.0.99", check=False)
    asked = [frame for frame in gen.drain() if frame[12:14] == b"\x08\x06"]
    assert asked, "the host asked for nobody"
    nothing(sink)
    daemon.stop()


def test_rules_for_both_hold_both_ways(rig2, millraced, tap, sock, attach):
    """From flags, without an address anywhere."""
    rig = rig2()
    daemon = millraced(rig.dut, "-l", "-i", "d0", "-i", "d1", "--control-socket", sock,
                       "--pass", "both ethertype 0x88b5", attach=attach)
    gen, sink = tap(rig.gen, "g0"), tap(rig.sink, "s0")
    wan, lan = tap(rig.dut, "d0"), tap(rig.dut, "d1")
    sent = [frames.tagged(frames.numbered(number, 60 + number * 14), (frames.VLAN, 9))
            for number in range(100)]
    exchange(gen, sink, sent, sent)
    exchange(sink, gen, sent, sent)
    assert wan.frames(100, 0.2) == lan.frames(100, 0.2) == sent
    assert settled(sock, 100, "d0") == settled(sock, 100, "d1")
    assert settled(sock, 100, "d1") == {"copied": 100, "dropped": 0, "failed": 0}
    daemon.stop()


def test_what_cannot_be_sent_is_counted(rig, patch, tap, sock):
    """The egress is down, or has a smaller MTU; the ingress goes down and comes back."""
    gen, sink = tap(rig.gen, "g0"), tap(rig.sink, "s0")
    daemon = patch()
    rig.dut.link_down("d1")
    gen.send_all([arp(number) for number in range(10)])
    assert settled(sock, 10) == {"copied": 0, "dropped": 0, "failed": 10}
    rig.dut.link_up("d1")
    wait_until(lambda: rig.dut.link("d1")["operstate"] == "UP", 5, "d1 up")
    sink.drain()
    sent = [arp(number) for number in range(10, 20)]
    exchange(gen, sink, sent, sent)
    rig.dut.ip("link", "set", "d1", "mtu", 1000)
    large = frames.ethernet(BROADCAST, ALICE, IPV4, frames.udp(
        "10.76.0.1", "255.255.255.255", 67, 68, bytes(1400)))
    gen.send_all([large, *sent])
    assert sink.frames(10) == sent
    assert settled(sock, 31) == {"copied": 20, "dropped": 0, "failed": 11}
    rig.dut.link_down("d0")
    rig.dut.link_up("d0")
    wait_until(lambda: rig.gen.link("g0")["operstate"] == "UP", 5, "g0 up")
    gen.drain()
    exchange(gen, sink, sent, sent)
    assert settled(sock, 41) == {"copied": 30, "dropped": 0, "failed": 11}
    daemon.stop()


def test_a_reload_ends_and_begins_them(rig, patch, tap, file, sock, attach):
    gen, sink, host = tap(rig.gen, "g0"), tap(rig.sink, "s0"), tap(rig.dut, "d0")
    daemon = patch()
    sent = [arp(number) for number in range(60)]
    exchange(gen, sink, sent, sent)
    assert host.frames(60, 0.2) == sent and settled(sock, 60)["copied"] == 60
    file.take(*sections(attach, **{"pass": "none"}))
    assert copies(sock) is None and copies(sock, "lan") is None
    exchange(gen, sink, sent, sent)
    nothing(host)
    file.take(*sections(attach, **{"pass": "default, both udp dport 9"}))
    exchange(gen, sink, sent, sent)
    assert host.frames(60, 0.2) == sent
    assert settled(sock, 60) == {"copied": 60, "dropped": 0, "failed": 0}
    # Another mode starts the forward anew.
    file.take(port("wan", "d0", attach=attach), forward("wire", "rxdrop", "wan"))
    assert copies(sock) is None
    file.take(*sections(attach))
    exchange(gen, sink, sent, sent)
    assert settled(sock, 60) == {"copied": 60, "dropped": 0, "failed": 0}
    daemon.stop()


def test_a_checksum_that_is_left_to_a_card_stays_so(rig, patch, sock, closing):
    """A stack over a veth leaves it undone: the far stack must still take the copy for right."""
    daemon = patch()
    with rig.sink.entered():
        client = closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    with rig.gen.entered():
        server = closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    with rig.dut.entered():
        host = closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    for one, name in ((client, b"s0"), (server, b"g0"), (host, b"d0")):
        one.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, name)
        one.settimeout(2)
    client.bind(("", 68))
    host.bind(("", 68))
    server.bind(("", 67))
    for number in range(20):
        said = struct.pack("!I", number) * (1 + number * 15)
        server.sendto(said, ("255.255.255.255", 68))
        assert client.recv(4096) == host.recv(4096) == said
    assert settled(sock, 20)["copied"] == 20
    daemon.stop()


@pytest.mark.parametrize("offloads", ["on", "off"])
def test_tcp_that_the_host_may_see_still_works(rig, patch, closing, task, sock, offloads):
    """Frames put together by the stack, or left to be cut into pieces, cross as they are."""
    rig.offloads_off("s0")
    rig.gen.ethtool_set("g0", "tx", offloads, "gso", offloads, "tso", offloads)
    daemon = patch(**{"pass": "default, both tcp dport 5001"})
    with rig.sink.entered():
        server = closing(socket.create_server(("10.76.0.3", 5001)))
    server.settimeout(20)
    said = bytes(range(256)) * 800

    def take():
        connection, _ = server.accept()
        with connection:
            connection.settimeout(20)
            got = b""
            while chunk := connection.recv(1 << 16):
                got += chunk
            return got

    taking = task(take)
    with rig.gen.entered():
        client = closing(socket.create_connection(("10.76.0.3", 5001), 20))
    client.sendall(said)
    client.shutdown(socket.SHUT_WR)
    assert taking.result(30) == said
    assert copies(sock)["copied"] > 2
    daemon.stop()


def test_a_device_that_comes_back_has_copies_again(rig, patch, tap, sock):
    gen, sink = tap(rig.gen, "g0"), tap(rig.sink, "s0")
    daemon = patch()
    sent = [arp(number) for number in range(30)]
    exchange(gen, sink, sent, sent)
    rig.gen.ip("link", "del", "g0")
    wait_until(lambda: copies(sock) is None, 5 * SLOWNESS, "no copies of a port that is gone")
    assert copies(sock, "lan") is not None
    rig.join(rig.gen, "g0", "d0")
    rig.dut.ip("address", "add", ADDRESSES["d0"], "dev", "d0")
    wait_until(lambda: copies(sock) is not None, 5 * SLOWNESS, "copies of the device that is back")
    time.sleep(0.5 * SLOWNESS)  # its address is learnt
    gen, host = tap(rig.gen, "g0"), tap(rig.dut, "d0")
    gen.drain(), host.drain(), sink.drain()
    exchange(gen, sink, sent, sent)
    assert host.frames(len(sent), 0.2) == sent
    assert settled(sock, 30) == {"copied": 30, "dropped": 0, "failed": 0}
    daemon.stop()


@pytest.mark.parametrize("attach", ["native"], indirect=True)
def test_they_outlive_the_helper_process(rig, patch, tap, stream, file, sock, attach):
    """Which opened their sockets, and is needed again only for new ones."""
    gen, sink, host = tap(rig.gen, "g0"), tap(rig.sink, "s0"), tap(rig.dut, "d0")
    daemon = patch()
    running = stream(gen, arp, 500)
    time.sleep(0.2)
    os.kill(helper_of(daemon), signal.SIGKILL)
    wait_until(lambda: "helper process" in daemon.stderr, 5 * SLOWNESS, "message")
    time.sleep(0.2)
    running.stop()
    sent = [arp(number) for number in range(running.given)]
    assert settled(sock, len(sent)) == {"copied": len(sent), "dropped": 0, "failed": 0}
    assert sink.drain() == host.drain() == sent
    # Parameters of what runs: the sockets stay.
    file.take(*sections(attach, **{"pass": "default, both udp dport 9"}))
    exchange(gen, sink, sent[:50], sent[:50])
    assert host.frames(50, 0.2) == sent[:50]
    # Given up, they cannot be had again, and the wire has what both need.
    file.take(*sections(attach, **{"pass": "none"}))
    file.take(*sections(attach))
    assert copies(sock) is None and copies(sock, "lan") is None
    for name in ("d0", "d1"):
        assert len(daemon.warnings(f"{name}: frames that the host and the wire both need are "
                                   "forwarded, and the host does not get them: EPIPE")) == 1
    exchange(gen, sink, sent[:50], sent[:50])
    nothing(host)
    daemon.stop()


# Everything at once

ASKER6, HOST6 = "2001:db8::1", "2001:db8::2"


class Crowd:
    """What one wire carries at once: frames for the far side, frames for both, questions to the host."""

    def __init__(self, rig):
        mac = rig.macs["g0"]
        solicitation = nd_for(HOST6, rig, src=ASKER6)
        kinds = {**KINDS, "ARP": lambda number: arp(number, "10.76.0.9")}  # gen's own is the session's
        self._builds = [
            *kinds.values(),
            *[frames.numbered] * 4,
            lambda number: frames.arp(1, mac, f"10.76.0.{100 + number % 100}", "10.76.0.2"),
            lambda number: solicitation,
        ]

    def build(self, number):
        return self._builds[number % len(self._builds)](number)

    def sent(self, count):
        """{class: its frames in order} of the first `count`."""
        classes = {name: [] for name in (*KINDS, "wire", "ask", "solicit")}
        names = [*KINDS, *["wire"] * 4, "ask", "solicit"]
        for number in range(count):
            classes[names[number % len(names)]].append(self.build(number))
        return classes


def in_order(wanted, got):
    """Those of `got` that are wanted; none twice and none before one that was sent earlier."""
    place = {frame: at for at, frame in enumerate(wanted)}
    found = [place[frame] for frame in got if frame in place]
    assert all(one < other for one, other in zip(found, found[1:])), "a frame twice, or overtaken"
    return len(found)


@contextlib.contextmanager
def crowded(rig, tap, stream, task, *, exact, seconds=0.4):
    """The crowd is on its way meanwhile. `exact`: each frame is where it belongs, once; else once at most."""
    crowd = Crowd(rig)
    with contextlib.closing(tap(rig.gen, "g0")) as near, \
            contextlib.closing(tap(rig.sink, "s0")) as far, \
            contextlib.closing(tap(rig.dut, "d0")) as host:
        takers = [Taker(task, one) for one in (near, far, host)]
        running = stream(near, crowd.build, 700)
        counts = {}
        yield counts
        time.sleep(seconds)
        running.stop()
        time.sleep(0.3 * SLOWNESS)  # for what is on its way; by the session it is never quiet
        back, across, up = [taker.stop(quiet=0) for taker in takers]
    sent = crowd.sent(running.given)
    counts.update(wire=len(sent["wire"]), both=sum(len(sent[name]) for name in KINDS))
    for name in (*KINDS, "wire"):
        passed = in_order(sent[name], across)
        assert not exact or passed == len(sent[name]), f"{name}: {passed} of {len(sent[name])}"
    for name in KINDS:
        had = in_order(sent[name], up)
        assert not exact or had == len(sent[name]), f"{name}, host: {had} of {len(sent[name])}"
    assert not exact or not in_order(sent["wire"], up), "the host has what is the wire's"
    asked = {*sent["ask"], *sent["solicit"]}
    assert not exact or not asked.intersection(across), "a question to the host crossed"
    replies = sum(one[12:14] == b"\x08\x06" and one[21] == 2 and one[41] >= 100 for one in back)
    advertised = sum(one[12:14] == b"\x86\xdd" and one[54] == 136 for one in back)
    assert (replies, advertised) == (len(sent["ask"]), len(sent["solicit"])) or not exact
    assert replies and advertised, "the host answers, whatever becomes of the daemon"


def test_the_host_keeps_its_own_network(rig, millraced, file, sock, tap, stream, task, closing,
                                        attach):
    """TCP with the host, ARP and ND for it and for others, DHCP and RA, and frames that only cross."""
    rig.offloads_off("g0", "s0", "d0")
    session = Session(rig, closing, host="10.76.0.2")
    beating = True

    def beat():
        beats = 0
        while beating:
            session.beat(1)
            beats += 1
            time.sleep(0.002)
        return beats

    def counted():
        stats = result(sock, "stats")
        return {"both": copies(sock)["copied"],
                "wire": sum(one["tx_packets"] for one in stats["sockets"] if one["port"] == "lan")}

    def crossed():
        """Once it stands: a worker that is kept off its CPU is told as it was last seen."""
        seen = [counted()]

        def stands():
            seen.append(counted())
            return seen[-1] == seen[-3 if len(seen) > 2 else 0] and len(seen) > 2

        wait_until(stands, 5 * SLOWNESS, "counts that stand", step=0.1)
        return seen[-1]

    alive = task(beat)
    file.write(*sections(attach))
    with crowded(rig, tap, stream, task, exact=False):
        daemon = millraced(rig.dut, "--config", file.path)
    before = crossed()
    with crowded(rig, tap, stream, task, exact=True) as sent:
        file.take(*[*sections(attach)[:2], forward("wire", "patch", "wan lan", batch=16)])
    assert {name: count - before[name] for name, count in crossed().items()} == sent
    with crowded(rig, tap, stream, task, exact=False):
        daemon.kill()
        wait_until(lambda: rig.dut.attached() == {}, 5 * SLOWNESS, "program gone")
        daemon = millraced(rig.dut, "--config", file.path)
    before = crossed()
    with crowded(rig, tap, stream, task, exact=True) as sent:
        pass
    assert {name: count - before[name] for name, count in crossed().items()} == sent
    with crowded(rig, tap, stream, task, exact=False):
        daemon.stop()
    beating = False
    assert alive.result(10) > 100, "the session was never interrupted for long"
