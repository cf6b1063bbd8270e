"""A bridge that has VLANs: an access port, a trunk and a trunk with a native VLAN, byte for byte."""

from appliance import forward, port
from daemon import balanced, drops, total
from frames import BROADCAST, ethernet, tagged
from lab import SLOWNESS
from wire import carried

MODES = ("access 10", "trunk 10,20", "trunk 20,30 native 10")
C, S = 0x8100, 0x88A8


def mac(number):
    return bytes([2, 0, 0, 8, 0, number])


def frame(src, dst, *tags, size=60):
    return tagged(ethernet(mac(dst) if dst else BROADCAST, mac(src), 0x88B5, b"vlan", size), *tags)


def test_frames_exactly(star, millraced, file, tap, attach):
    """Each tag on each mode; the largest frame of the MTU grows; what is dropped has its name."""
    rig = star()
    rig.silence()
    ports = [port(f"p{i}", f"d{i}", attach=attach, vlan_mode=mode) for i, mode in enumerate(MODES)]
    file.write(*ports, forward("br", "bridge", "p0 p1 p2"))
    daemon = millraced(rig.dut, "--config", file.path, json_lines=True)
    # Otherwise their own sockets would see tags beside the frames, not in them.
    for name in "abc":
        rig.station[name].ethtool_set(f"{name}0", "rxvlan", "off", "txvlan", "off")
    a, b, c = taps = [tap(rig.station[name], f"{name}0") for name in "abc"]
    cases = [
        # sender, station, destination (0: all), tags, size; what comes out where
        (a, 1, 0, (), 60, {b: [(C, 10)], c: []}),
        (a, 1, 0, (), 1514, {b: [(C, 10)], c: []}),
        (a, 1, 0, ((C, 0xE000),), 60, {b: [(C, 0xE00A)], c: []}),
        (a, 1, 0, ((S, 20),), 60, {b: [(C, 10), (S, 20)], c: [(S, 20)]}),
        (a, 1, 0, ((C, 20),), 60, {}),
        (b, 2, 0, ((C, 0xA00A),), 1514, {a: [], c: []}),
        (b, 2, 0, ((C, 10),), 56, {a: [], c: []}),  # 60 bytes, and 56 without: nobody pads it
        (b, 2, 0, ((C, 20),), 60, {c: [(C, 20)]}),
        (b, 2, 0, (), 60, {}),
        (b, 2, 0, ((C, 30),), 60, {}),
        (c, 3, 2, (), 60, {b: [(C, 10)]}),
        (c, 3, 1, (), 60, {a: []}),
        (c, 3, 0, ((C, 30),), 60, {}),
        (c, 3, 0, ((C, 4095),), 60, {}),
        (a, 1, 2, (), 1514, {b: [(C, 10)]}),
    ]
    carried(taps, [(sender, frame(src, dst, *tags, size=size),
                    {receiver: frame(src, dst, *want, size=size) for receiver, want in to.items()})
                   for sender, src, dst, tags, size, to in cases])
    final = daemon.stop()
    assert drops(final) == {
        "tagged_on_access": 1, "no_native_vlan": 1, "vlan_not_member": 1, "vlan_filtered": 1,
        "vlan_reserved": 1}
    assert balanced(final), final


def test_the_host_is_in_vlans(star, millraced, file, tap):
    """host-vlan-mode: in one without a tag, in another with; and which tag a probe has."""
    rig = star(stations="ab")
    rig.station["b"].ip("address", "flush", "dev", "b0")
    rig.station["b"].ethtool_set("b0", "rxvlan", "off", "txvlan", "off")
    file.write(port("p0", "d0", attach="native", vlan_mode="access 10"),
               port("p1", "d1", attach="native", vlan_mode="trunk 10,20"),
               forward("br", "bridge", "p0 p1", host_port="host0",
                       host_vlan_mode="trunk 20 native 10", loop_probe="60s"))
    a, b = (tap(rig.station[name], f"{name}0") for name in "ab")
    daemon = millraced(rig.dut, "--config", file.path, json_lines=True)
    # The first frames there are, for nobody speaks: without a tag, and with that of the first VLAN.
    for one, tag in ((a, b""), (b, b"\x81\0\0\x0a")):
        got, _ = one.receive(2 * SLOWNESS)
        assert got[12:-46] == tag + b"\x88\xb5" and got[-46:-38] == b"millrace", got.hex()
    rig.dut.ip("address", "add", "10.7.0.9/24", "dev", "host0")
    assert "1 received" in rig.dut.run("ping", "-c", 1, "-W", 2, "10.7.0.1")
    rig.dut.ip("address", "flush", "dev", "host0")
    rig.station["a"].ip("address", "flush", "dev", "a0")
    host = tap(rig.dut, "host0")
    for one in (a, b, host):
        one.drain()
    cases = [
        (host, 9, (), {a: [], b: [(C, 10)]}),
        (host, 9, ((C, 20),), {b: [(C, 20)]}),
        (b, 2, ((C, 20),), {host: [(C, 20)]}),
        (b, 2, ((C, 10),), {a: [], host: []}),
        (a, 1, (), {b: [(C, 10)], host: []}),
        (host, 9, ((C, 30),), {}),
    ]
    carried((a, b, host), [(sender, frame(src, 0, *tags),
                            {receiver: frame(src, 0, *want) for receiver, want in to.items()})
                           for sender, src, tags, to in cases])
    final = daemon.stop()
    assert total(final, "probes") == 3, final
    assert drops(final)["vlan_not_member"] == 1, final
    assert balanced(final), final
