# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Bridge of three cards, zero-copy where they have it: each frame once, unchanged, where it belongs, counted.

Everything that is sent is written down by what a bridge makes of it: frames and bytes that each port
receives and sends, and copies. At the end the daemon's counts must be these, and nothing is left.
"""

import collections

import appliance
import frames
import mixed
import sockets
from daemon import balanced, no_drops_but, program, total
from lab import SLOWNESS, wait_until

NICS = ("igb", "virtio", "mixed")
SECONDS = 300
MACHINE = "three"
PORTS = ("d0", "d1", "d2")
EVERYONE = range(len(PORTS))
WINDOW = 32
GROUP = bytes.fromhex("01005e000001")
MODES = ("access 10", "trunk 10,20", "trunk 20 native 10")  # of d0, d1, d2
FLOWS = 48


def mac(number):
    return bytes([2, 0, 0, 7, 0, number])


def numbered(src, dst, sizes):
    return [frames.numbered(number, size, dst, src) for number, size in enumerate(sizes)]


def flows(src, dst):
    """Spread by address over the queues of a card that has several."""
    return [frames.ethernet(dst, src, frames.IPV4,
                            frames.udp(f"198.18.0.{n}", "198.18.1.1", 1024, 9, bytes([n])))
            for n in range(1, FLOWS + 1)]


class Expected:
    """Sends frames and takes them where they come out; knows what the counts must be."""

    def __init__(self, taps):
        self.taps = taps
        self.rx, self.tx = (collections.Counter() for _ in range(2))
        self.rx_bytes, self.tx_bytes = (collections.Counter() for _ in range(2))
        self.copies = 0

    def carries(self, sender, sent, wanted, ordered=True):
        """What one sends comes out as `wanted`, {receiver: frames}, and nowhere else."""
        for start in range(0, len(sent), WINDOW):
            self.taps[sender].send_all(sent[start:start + WINDOW], burst=WINDOW)
            for receiver, theirs in wanted.items():
                part = theirs[start:start + WINDOW]
                got = self.taps[receiver].frames(len(part), 5.0)
                same = got == part if ordered else sorted(got) == sorted(part)
                assert same, (f"{sender} to {receiver}, from {start} on: {len(got)} frames of "
                              f"{len(part)}, or not the same ones")
        self.rx[sender] += len(sent)
        self.rx_bytes[sender] += sum(map(len, sent))
        self.copies += len(sent) * max(0, len(wanted) - 1)
        for receiver, theirs in wanted.items():
            self.tx[receiver] += len(theirs)
            self.tx_bytes[receiver] += sum(map(len, theirs))
        for one in EVERYONE:
            extra = self.taps[one].drain(0.02)
            assert not extra, f"{one} has a frame of {sender} too: {extra[0].hex()}"

    def floods(self, sender, sent, ordered=True):
        self.carries(sender, sent, {one: sent for one in EVERYONE if one != sender}, ordered)

    def are_in(self, final):
        for number, name in enumerate(PORTS):
            got = {key: total(final, key, name)
                   for key in ("rx_packets", "rx_bytes", "tx_packets", "tx_bytes")}
            assert got == {"rx_packets": self.rx[number], "rx_bytes": self.rx_bytes[number],
                           "tx_packets": self.tx[number], "tx_bytes": self.tx_bytes[number]}, (
                               f"{name}: {got}")
            assert program(final, name)["seen"] == self.rx[number], final
        assert total(final, "copies") == self.copies, final
        assert balanced(final) and no_drops_but(final), final


def started(bench, conf, wait, ports, **keys):
    """A bridge of the three cards that waits so, each as it must be."""
    sections = [appliance.port(name, name, **ports[name],
                               **({"zero_copy": "require"} if name in bench.zero_copy_ports else {}))
                for name in PORTS]
    path = conf.write(*sections, appliance.forward("br", "bridge", " ".join(PORTS), wait=wait, **keys))
    daemon = bench.millraced(f"--config={path}")
    assert {(port, said["copy"] == "zero-copy") for (port, _), said in daemon.bound.items()} == {
        (name, name in bench.zero_copy_ports) for name in PORTS}, daemon.stderr
    mixed.check_registrations(bench, daemon, PORTS)
    return daemon


def stations(conf):
    """{MAC: port}"""
    return {one["mac"]: one["port"] for one in conf.ask("fdb")["entries"]}


def move(expected, conf, daemon, station, homes):
    """It is found where it last spoke, from the first frame on."""
    asker = next(one for one in EVERYONE if one not in homes)
    for home in homes:
        expected.floods(home, numbered(mac(station), frames.BROADCAST, [60]))
        sent = numbered(mac(asker), mac(station), range(60, 1515, 291))
        expected.carries(asker, sent, {home: sent})
        assert stations(conf)[mac(station).hex(":")] == PORTS[home]
    wait_until(lambda: f"station {mac(station).hex(':')} moved from port" in daemon.stderr,
               5 * SLOWNESS, "the move told")


def tags_as_they_are(bench, conf, taps, wait, first, **keys):
    """A bridge whose ports do not look at tags; every size over both runs, by `first`."""
    daemon, expected = started(bench, conf, wait, {name: {} for name in PORTS}, **keys), Expected(taps)
    sizes = range(frames.MIN_SIZE + first, frames.MAX_SIZE + 1, 6)
    for one in EVERYONE:
        for dst in (frames.BROADCAST, GROUP, mac(99)):
            expected.floods(one, numbered(mac(one), dst, range(60 + first, 1515, 97)))
    assert stations(conf) == {mac(one).hex(":"): PORTS[one] for one in EVERYONE}
    for one in EVERYONE:
        for other in EVERYONE:
            if other == one:
                continue
            sent = numbered(mac(one), mac(other), sizes)
            expected.carries(one, sent, {other: sent})
            sent = flows(mac(one), mac(other))
            expected.carries(one, sent, {other: sent}, ordered=False)
        sent = [frames.tagged(frame, (frames.QINQ, 200), (frames.VLAN, 0xE064))
                for frame in numbered(mac(one), frames.BROADCAST, range(60, 1507, 201))]
        expected.floods(one, sent)
        expected.floods(one, flows(mac(one), frames.BROADCAST), ordered=False)
    move(expected, conf, daemon, 0, (2, 0))
    final = daemon.stop()
    expected.are_in(final)
    queues = [one for one in final["sockets"] if not one["rx_packets"]]
    assert not queues, f"a queue had no traffic: {queues}"


def tags_by_port(bench, conf, taps, first):
    """Frames grow and shrink in the cards' memory: an access port, a trunk, a trunk with a native VLAN."""
    daemon = started(bench, conf, "poll", {name: {"vlan_mode": mode}
                                           for name, mode in zip(PORTS, MODES)})
    expected = Expected(taps)
    sizes = range(frames.MIN_SIZE + first, frames.MAX_SIZE + 1, 11)

    def tag(sent, vlan):
        return [frames.tagged(frame, (frames.VLAN, vlan)) for frame in sent]

    plain = numbered(mac(0), frames.BROADCAST, sizes)
    expected.carries(0, plain, {1: tag(plain, 10), 2: plain})
    plain = numbered(mac(1), frames.BROADCAST, sizes)
    expected.carries(1, tag(plain, 10), {0: plain, 2: plain})
    expected.carries(1, tag(plain, 20), {2: tag(plain, 20)})
    plain = numbered(mac(2), mac(0), sizes)
    expected.carries(2, plain, {0: plain})
    plain = numbered(mac(2), mac(1), sizes)
    expected.carries(2, plain, {1: tag(plain, 10)})
    expected.carries(2, tag(plain, 20), {1: tag(plain, 20)})
    expected.are_in(daemon.stop())


def run(bench):
    taps = [bench.tap(name) for name in ("g0", "s0", "s1")]
    conf = bench.file()
    before = {name: bench.feature(name, "rx-vlan-offload") for name in PORTS}
    # Small rings the second time: their frames go round several times.
    tags_as_they_are(bench, conf, taps, "poll", 0)
    tags_as_they_are(bench, conf, taps, "spin", 3, ring_size=64)
    tags_by_port(bench, conf, taps, 0)
    assert {name: bench.feature(name, "rx-vlan-offload") for name in PORTS} == before
    assert [bench.dut.promiscuity(name) for name in PORTS] == [0, 0, 0]
    if mixed.told_by_kernel(bench):
        assert sockets.bound(bench.dut) == [], "a socket is left"
