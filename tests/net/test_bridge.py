"""mode = bridge, and the host behind a port of its own (host-port), among three stations."""

import itertools
import os
import re
import signal
import socket
import struct
import time

from appliance import forward, port
from control import millracectl
from daemon import balanced, drops, no_drops_but, total
from frames import BROADCAST, ethernet, tagged
from lab import SLOWNESS, wait_until
from test_mirror import icmpv6
from wire import carried

HOST_IP = "10.7.0.9"
# Of no router by default: a prefix, on the link and for addresses, for an hour.
PREFIX_ADVERTISED = icmpv6(134, struct.pack("!BBHII", 64, 0, 0, 0, 0) +
                           struct.pack("!BBBBIII", 3, 4, 64, 0xc0, 3600, 3600, 0) +
                           socket.inet_pton(socket.AF_INET6, "2001:db8:7::"))
IPS = {"a": "10.7.0.1", "b": "10.7.0.2", "c": "10.7.0.3"}


def mac(number, at=0):
    return bytes([2, 0, 0, 7, at, number])


def frame(src, dst, fill=b"bridge", size=60):
    return ethernet(dst, src, 0x88B5, fill, size)


def ports(attach, **keys):
    return [port(name, f"d{i}", attach=attach, **keys) for i, name in enumerate(("p0", "p1", "p2"))]


def ping(namespace, ip, count=2):
    out = namespace.run("ping", "-c", count, "-i", 0.05, "-W", 2, ip)
    assert f"{count} received" in out, out


def tcp(closing, server_at, ip, client_at):
    """Some KB each way; TCP does not connect where checksums are left to a device."""
    payload = os.urandom(100_000)
    with server_at.entered():
        server = closing(socket.create_server((ip, 0)))
    server.settimeout(10)
    with client_at.entered():
        client = closing(socket.create_connection((ip, server.getsockname()[1]), 10))
    peer = closing(server.accept()[0])
    for one, other in ((client, peer), (peer, client)):
        one.settimeout(10)
        other.settimeout(10)
        sent, got = 0, b""
        while len(got) < len(payload):
            if sent < len(payload):
                sent += one.send(payload[sent:sent + 10_000])
            got += other.recv(1 << 16)
        assert got == payload


def test_stations_and_the_host_reach_each_other(star, millraced, file, closing, attach):
    """ARP, ping and TCP between all of them; a move; the far end is removed at the end."""
    rig = star()
    file.write(*ports(attach), forward("br", "bridge", "p0 p1 p2", host_port="host0"))
    daemon = millraced(rig.dut, "--config", file.path, json_lines=True, attach="auto")
    rig.dut.ip("address", "add", f"{HOST_IP}/24", "dev", "host0")
    everyone = {**{ip: rig.station[name] for name, ip in IPS.items()}, HOST_IP: rig.dut}
    for own, namespace in everyone.items():
        for ip in everyone:
            if ip != own:
                ping(namespace, ip, 1)
    tcp(closing, rig.dut, HOST_IP, rig.station["a"])
    tcp(closing, rig.station["b"], IPS["b"], rig.dut)
    tcp(closing, rig.station["c"], IPS["c"], rig.station["a"])
    # a's address and MAC turn up at b's cable: found there by the first frame that it sends.
    rig.station["a"].link_down("a0")
    rig.station["b"].ip("link", "set", "b0", "down")
    rig.station["b"].ip("link", "set", "b0", "address", rig.macs["a0"].hex(":"))
    rig.station["b"].ip("address", "add", f"{IPS['a']}/24", "dev", "b0")
    rig.station["b"].link_up("b0")
    rig.station["b"].run("ping", "-c", 1, "-W", 2, "-I", IPS["a"], IPS["c"])
    ping(rig.station["c"], IPS["a"])
    wait_until(lambda: "moved from port p0 to p1" in daemon.stderr, 5 * SLOWNESS, "the move told")
    final = daemon.stop()
    assert balanced(final), final
    assert no_drops_but(final, "link_down"), final
    assert "host0" not in rig.dut.links() and "mr-host0" not in rig.dut.links()


def test_four_stations_are_one_network(star, millraced, file, closing, tap, attach):
    """ARP, ping and TCP between each two; what is for one is sent to one, also right after it has moved."""
    rig = star(stations="abcd")
    names = [f"p{number}" for number in range(4)]
    file.write(*(port(name, f"d{i}", attach=attach) for i, name in enumerate(names)),
               forward("br", "bridge", " ".join(names)))
    daemon = millraced(rig.dut, "--config", file.path, json_lines=True)
    ips = {name: f"10.7.0.{number}" for number, name in enumerate("abcd", 1)}
    for one, other in itertools.permutations("abcd", 2):
        ping(rig.station[one], ips[other], 1)
    for one, other in itertools.combinations("abcd", 2):
        tcp(closing, rig.station[one], ips[one], rig.station[other])
    rig.silence()
    a, b, c, d = (tap(rig.station[name], f"{name}0") for name in "abcd")
    to_b, rest = frame(mac(1), mac(2)), (a, c, d)
    a.send(to_b)  # not known: to all others
    assert [one.receive(2 * SLOWNESS)[0] for one in (b, c, d)] == [to_b] * 3
    for home in (b, d, c, b):  # it is found where it last was, from the first frame on
        home.send(frame(mac(2), mac(1)))
        assert a.receive(2 * SLOWNESS)[0] == frame(mac(2), mac(1))
        a.send(to_b)
        assert home.receive(2 * SLOWNESS)[0] == to_b
    assert [one.drain() for one in (b, *rest)] == [[]] * 4
    metrics = file.ask("metrics")["text"]
    for name, moves in zip(names, (0, 1, 1, 1)):
        assert re.search(rf'learned_frames_total{{port="{name}",.*result="moved"}} {moves}\n', metrics)
        assert re.search(rf'bridge_stations{{port="{name}",.*}} [1-9]', metrics), metrics
    final = daemon.stop()
    assert balanced(final) and no_drops_but(final), final


def test_a_patch_with_a_host_port(star, millraced, file, closing, attach):
    """A wire between d0 and d1, reserved addresses too, that the host is on as well."""
    rig = star()
    file.write(*ports(attach)[:2], forward("wire", "patch", "p0 p1", host_port="host0"))
    daemon = millraced(rig.dut, "--config", file.path, json_lines=True)
    rig.dut.ip("address", "add", f"{HOST_IP}/24", "dev", "host0")
    ping(rig.station["a"], IPS["b"])
    for name in "ab":
        ping(rig.station[name], HOST_IP)
        ping(rig.dut, IPS[name])
    tcp(closing, rig.dut, HOST_IP, rig.station["b"])
    tcp(closing, rig.station["a"], IPS["a"], rig.dut)
    final = daemon.stop()
    assert balanced(final) and no_drops_but(final), final
    assert "host0" not in rig.dut.links()


def test_frames_exactly(star, millraced, file, tap, attach):
    """Where each goes, byte for byte; what is bad is counted by name; 2,000 random stations."""
    rig = star()
    rig.silence()
    file.write(*ports(attach), forward("br", "bridge", "p0 p1 p2", fdb_size=1024))
    daemon = millraced(rig.dut, "--config", file.path, json_lines=True)
    a, b, c = (tap(rig.station[name], f"{name}0") for name in "abc")
    cases = [
        # sender, frame, where it comes out
        (a, frame(mac(1), mac(2)), (b, c)),
        (b, frame(mac(2), mac(1)), (a,)),
        (a, frame(mac(1), mac(2), size=1514), (b,)),
        (c, frame(mac(3), BROADCAST), (a, b)),
        (c, frame(mac(3), bytes.fromhex("01005e000001")), (a, b)),
        (c, tagged(frame(mac(3), mac(1)), (0x8100, 7)), (a, b)),
        (a, tagged(frame(mac(1), mac(3)), (0x8100, 7)), (c,)),
        (a, frame(mac(4), mac(1)), ()),
        (a, frame(bytes(6), mac(2)), ()),
        (a, frame(b"\3" + bytes(5), mac(2)), ()),
        (a, frame(rig.macs["d2"], mac(2)), ()),
        (a, tagged(frame(mac(1), mac(2)), (0x8100, 4095)), ()),
        (a, frame(mac(1), bytes.fromhex("0180c2000000")), (b, c)),
        (a, frame(mac(1), bytes.fromhex("0180c2000001")), ()),
        (a, frame(mac(1), bytes.fromhex("0180c200000e")), ()),
    ]
    carried((a, b, c), [(sender, one, dict.fromkeys(to, one)) for sender, one, to in cases])
    assert drops(daemon.quiet_record()) == {
        "same_port": 1, "source_zero": 1, "source_group": 1, "source_own": 1,
        "vlan_reserved": 1, "reserved": 2}
    # More stations than there is room for: the rest is flooded, and those that are known stay so.
    a.send_all([frame(mac(n % 256, 16 + n // 256), mac(2)) for n in range(2000)])
    assert len(b.frames(2000)) == 2000
    b.send(frame(mac(2), mac(0, 16)))
    assert a.receive(2 * SLOWNESS)
    assert c.drain() == []
    final = daemon.stop()
    assert balanced(final), final


def test_what_ports_and_the_bridge_are_told(star, millraced, file, tap, attach):
    """hairpin, isolated and forward-reserved, and a tag that the frame's end cuts off."""
    rig = star()
    rig.silence()
    file.write(port("p0", "d0", attach=attach, hairpin="yes"),
               *(port(f"p{i}", f"d{i}", attach=attach, isolated="yes") for i in (1, 2)),
               forward("br", "bridge", "p0 p1 p2", forward_reserved="yes"))
    daemon = millraced(rig.dut, "--config", file.path, json_lines=True)
    a, b, c = taps = [tap(rig.station[name], f"{name}0") for name in "abc"]
    reserved = [bytes.fromhex(f"0180c20000{last:02x}") for last in range(16)]
    cases = [
        # sender, frame, where it comes out
        (b, frame(mac(2), BROADCAST), (a,)),
        (c, frame(mac(3), BROADCAST), (a,)),
        (c, frame(mac(3), mac(2)), ()),
        (a, frame(mac(1), BROADCAST), (a, b, c)),
        (a, frame(mac(4), mac(1)), (a,)),
        (a, frame(mac(1), mac(2)), (b,)),
        *((a, frame(mac(1), address), (a, b, c) if last != 1 else ())
          for last, address in enumerate(reserved)),
        (a, frame(mac(1), mac(2))[:12] + b"\x81\0\0\7", ()),
    ]
    carried(taps, [(sender, one, dict.fromkeys(to, one)) for sender, one, to in cases])
    assert drops(daemon.quiet_record()) == {"isolated": 1, "reserved": 1, "tag_cut": 1}
    final = daemon.stop()
    assert balanced(final), final


def test_sixteen_ports(star, millraced, file, tap):
    """What is for all reaches fifteen others, once; what is for one, one."""
    names = "abcdefghijklmnop"
    rig = star(stations=names)
    rig.silence()
    file.write(*(port(f"p{i}", f"d{i}", attach="native") for i in range(16)),
               forward("br", "bridge", " ".join(f"p{i}" for i in range(16)), ring_size=256))
    daemon = millraced(rig.dut, "--config", file.path, json_lines=True)
    taps = [tap(rig.station[name], f"{name}0") for name in names]
    for_all = [frame(mac(number), BROADCAST) for number in range(16)]
    for_one = [frame(mac(number), mac(15 - number)) for number in range(16)]
    carried(taps, [(sender, one, {other: one for other in taps if other is not sender})
                   for sender, one in zip(taps, for_all)])
    carried(taps, [(sender, one, {taps[15 - number]: one})
                   for number, (sender, one) in enumerate(zip(taps, for_one))])
    final = daemon.stop()
    assert total(final, "copies") == 16 * 14, final
    assert balanced(final) and no_drops_but(final), final


def test_host_port_names(star, millraced, file):
    """In use, kept, and removed also after a SIGKILL."""
    rig = star()
    sections = ports("native")[:2]
    rig.dut.ip("link", "add", "taken", "type", "veth", "peer", "name", "other")
    file.write(*sections, forward("wire", "patch", "p0 p1", host_port="taken"))
    said = millraced(rig.dut, "--config", file.path, ready=False).fails()
    assert "host-port taken: an interface of that name is there already" in said, said
    file.write(*sections, forward("wire", "patch", "p0 p1", host_port="kept", keep_host_port="yes"))
    for _ in range(2):  # the second time it is taken over
        daemon = millraced(rig.dut, "--config", file.path, json_lines=True)
        rig.dut.ip("address", "replace", f"{HOST_IP}/24", "dev", "kept")
        ping(rig.station["a"], HOST_IP, 1)
        daemon.stop()
        assert "kept" in rig.dut.links()
    file.write(*sections, forward("wire", "patch", "p0 p1", host_port="kept"))
    daemon = millraced(rig.dut, "--config", file.path, json_lines=True)
    # Another name: the new one is made, with what now is the smallest MTU, and the old one goes.
    rig.dut.ip("link", "set", "d1", "mtu", 1400)
    file.take(*sections, forward("wire", "patch", "p0 p1", host_port="next"))
    assert {"next", "mr-next"} <= set(rig.dut.links()) and "kept" not in rig.dut.links()
    for name in ("next", "mr-next"):
        assert " mtu 1400 " in rig.dut.ip("link", "show", "dev", name)
    daemon.send(signal.SIGKILL)
    daemon.wait(5)
    wait_until(lambda: "next" not in rig.dut.links(), 5 * SLOWNESS, "the helper removes it")


def test_a_host_port_deleted_by_hand(star, millraced, file, tap, attach):
    """The port is gone, which is told; the others go on; a reload makes it anew. A router's advertisement gives
    the far end an address, as it would a card."""
    rig = star()
    sections = [*ports(attach)[:2], forward("br", "bridge", "p0 p1", host_port="host0")]
    file.write(*sections)
    daemon = millraced(rig.dut, "--config", file.path, json_lines=True)

    def state():
        return next(one["state"] for one in file.ask("status")["ports"] if one["device"] == "mr-host0")

    ping(rig.station["a"], IPS["b"])
    rig.dut.ip("link", "del", "host0")
    wait_until(lambda: state() == "gone", 2 * SLOWNESS, "gone")
    assert daemon.said("port host0: gone: deleted"), daemon.stderr
    ping(rig.station["a"], IPS["b"])
    assert file.reload()[0] == 0
    wait_until(lambda: state() == "up", 2 * SLOWNESS, "up")
    rig.dut.ip("address", "add", f"{HOST_IP}/24", "dev", "host0")
    ping(rig.station["a"], HOST_IP)
    for end in ("host0", "mr-host0"):
        rig.dut.write_sysctl(f"net.ipv6.conf.{end}.disable_ipv6", 0)
    tap(rig.station["b"], "b0").send(PREFIX_ADVERTISED)
    wait_until(lambda: "2001:db8:7:" in rig.dut.ip("address", "show", "dev", "host0"), 5 * SLOWNESS,
               "an address of that prefix")
    assert "inet" not in rig.dut.ip("address", "show", "dev", "mr-host0"), "the near end has none"
    final = daemon.stop()
    assert balanced(final), final
    assert no_drops_but(final, "link_down"), final


def test_a_storm_is_cut_off(star, millraced, file, tap, attach):
    """Of what one port sends to all others a limit goes on; what is for one station is not touched."""
    rig = star()
    sections = [port("p0", "d0", attach=attach, storm_broadcast=100, storm_unknown=50),
                *ports(attach)[1:]]
    file.write(*sections, forward("br", "bridge", "p0 p1 p2"))
    daemon = millraced(rig.dut, "--config", file.path, json_lines=True)
    a, b, c = (tap(rig.station[name], f"{name}0") for name in "abc")
    b.send(frame(mac(2), BROADCAST))
    c.receive(2 * SLOWNESS)
    for fill in range(200):
        a.send(frame(mac(1), BROADCAST, bytes([fill])))
        a.send(frame(mac(1), mac(9), bytes([fill])))
        a.send(frame(mac(1), mac(2), bytes([fill])))
    daemon.quiet_record()
    final = daemon.stop()
    storm = next(one["drops"] for one in final["sockets"] if one["interface"] == "d0")
    # A tenth of a second's number at once, and as many as the time it took allows.
    assert 0 < storm["storm_broadcast"] <= 190 and 0 < storm["storm_unknown"] <= 195, storm
    assert storm["storm_multicast"] == 0, storm
    assert sum(one == frame(mac(1), mac(2), one[14:15]) for one in b.drain()) == 200
    assert balanced(final) and no_drops_but(final, "storm_broadcast", "storm_unknown"), final


def test_a_loop_is_told_within_a_second_and_cut(star, millraced, file, tap, attach):
    """Case 62: a bridge of the kernel's joins two of three ports, and one broadcast goes round."""
    rig = star()
    for name in "ab":  # a0 and b0 are the two ends of a cable now
        rig.station[name].link_down(f"{name}0")
    far = rig.station["a"]
    rig.station["b"].ip("link", "set", "b0", "netns", far.name)
    far.ip("address", "flush", "dev", "a0")
    far.run("sh", "-c", "echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6; "
            "ip link add loop type bridge stp_state 0 mcast_snooping 0; ip link set loop up; "
            "for one in a0 b0; do ip link set $one master loop; ip link set $one up; done")
    file.write(*ports(attach), forward("br", "bridge", "p0 p1 p2", loop_block="1s"))
    daemon = millraced(rig.dut, "--config", file.path, json_lines=True)
    c = tap(rig.station["c"], "c0")
    begin = time.monotonic()
    c.send(frame(mac(3), BROADCAST))
    wait_until(lambda: "port p1 is blocked for 1 s" in daemon.stderr, 5 * SLOWNESS, "the alarm")
    assert time.monotonic() - begin < SLOWNESS, daemon.stderr
    assert "loop-suspected: stations flap between ports p0 and p1" in daemon.stderr
    states = {one["port"]: one for one in file.ask("ports")["ports"]}
    assert states["p2"]["state"] == "up", states
    status, metrics, _ = millracectl(file.sock, "metrics")
    assert status == 0
    for name, loop in (("p0", 1), ("p1", 1), ("p2", 0)):
        assert re.search(rf'millrace_port_loop_suspected{{port="{name}".*}} {loop}\n', metrics)
    for name in ("p0", "p1"):
        assert states[name]["state"] == "degraded", states
        assert states[name]["reason"].startswith("loop-suspected:"), states
    c.drain()
    assert c.drain() == []  # the storm is over
    wait_until(lambda: "port p1 is not blocked any more" in daemon.stderr, 6 * SLOWNESS, "its end")
    final = daemon.stop()
    assert balanced(final), final
