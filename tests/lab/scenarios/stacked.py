# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Bonds, VLAN devices and macvlans, and the cards below them: each forwards exactly or says why not."""

import contextlib

import frames
from daemon import program, total
from lab import SLOWNESS, wait_until
from wire import WINDOW, Wire, exchange

NICS = ("igb", "virtio", "e1000e")
SECONDS = 240
TAG = [(frames.VLAN, 100)]


@contextlib.contextmanager
def added(bench, name, *how):
    """A device of the dut within the block, up."""
    bench.dut.ip("link", "add", *how)
    try:
        bench.dut.link_up(name)
        yield
    finally:
        bench.dut.ip("link", "del", name)


def wait_up(bench, name):
    wait_until(lambda: bench.dut.link(name)["operstate"] == "UP", 10 * SLOWNESS, f"{name} up")


def one_line(bench, *flags):
    """The only line that is said of a refusal."""
    lines = bench.refused(*flags).split("\n")
    assert len(lines) == 1, lines
    assert bench.dut.attached() == {}
    return lines[0]


def bond(bench):
    """Receiving on a bond is refused, and on its members; sending on it works."""
    wire = bench.tap("g0")
    with added(bench, "bond0", "bond0", "type", "bond", "mode", "active-backup", "miimon", 100):
        for port in ("d0", "d1"):
            bench.dut.link_down(port)
            bench.dut.ip("link", "set", port, "master", "bond0")
        bench.wait_links()
        wait_up(bench, "bond0")
        for flags in (["-r"], ["-l", "-S"]):
            said = one_line(bench, *flags, "-i", "bond0")
            assert "bond0: a bond receives through its members" in said, said
        for flags in (["-r"], ["-l"], ["-t"]):
            said = one_line(bench, *flags, "-i", "d0")
            assert "d0: is a member of bond bond0" in said, said
        wire.drain()
        # Natively igb would take its links down just when the first frames leave.
        daemon = bench.millraced("-t", "-S", "-i", "bond0", "-C", 100, "-p", "--pps=500",
                                 wait_links=False)
        daemon.ended(20 * SLOWNESS)
        got = wire.drain(1.0)
        assert len(got) == 100, f"{len(got)} frames of 100 left the active member"
    for port in ("d0", "d1"):
        bench.dut.link_up(port)
    bench.wait_links()


def carried(sender, receiver, sent, wanted):
    """Everything comes, unchanged and once, in any order.

    In bursts into an igb that its own stack serves QEMU delivers, now and then, a frame just before
    those that it had queued.
    """
    for start in range(0, len(sent), WINDOW):
        part = wanted[start:start + WINDOW]
        sender.send_all(sent[start:start + WINDOW])
        got = receiver.frames(len(part), 5.0)
        assert sorted(got) == sorted(part), f"{len(got)} frames of {len(part)}, or not the same ones"
    assert receiver.drain() == [], "a frame nobody sent"


def vlan_device(bench):
    """A VLAN device forwards what has its tag, which is gone within and there again outside."""
    near, far = bench.tap("g0"), bench.tap("s0")
    sent = [frames.numbered(size, size) for size in range(60, 1514, 7)]
    tagged = [frames.tagged(frame, *TAG) for frame in sent]
    with added(bench, "v0", "link", "d0", "name", "v0", "type", "vlan", "id", 100):
        wait_up(bench, "v0")
        daemon = bench.millraced("-l", "-p", "-i", "v0", "-i", "d1")
        assert {one["attach"] for (name, _), one in daemon.bound.items() if name == "v0"} == {"skb"}
        carried(near, far, tagged, sent)
        carried(far, near, sent, tagged)
        final = daemon.stop()
        assert total(final, "rx_packets", "v0") == total(final, "tx_packets", "v0") == len(sent)
        assert bench.dut.promiscuity("d0") == 0, "the card below is promiscuous still"


def on_top(bench, kind, *how):
    """What stands on a card is named, its frames are forwarded; afterwards it has them again."""
    near, far = bench.tap("g0"), bench.tap("s0")
    sent = [frames.tagged(frames.numbered(size, size), *TAG) for size in range(60, 1500, 17)]
    with added(bench, "t0", "link", "d0", "name", "t0", "type", kind, *how):
        wait_up(bench, "t0")
        daemon = bench.millraced("-l", "-p", "-q", "all", "-i", "d0", "-i", "d1")
        assert len(daemon.warnings("d0: t0 stands on it")) == 1, daemon.stderr
        exchange(near, far, sent, sent)
        exchange(far, near, sent, sent)
        final = daemon.stop()
        assert program(final, "d0")["passed"] == 0, final
        bench.wait_links()
        frame = frames.numbered(1, 100, dst=bench.dut.mac("t0"))
        with contextlib.closing(Wire(bench.dut, "t0")) as above:
            near.send_all([frames.tagged(frame, *TAG) if kind == "vlan" else frame] * 3)
            got = [one for one in above.drain(1.0) if one == frame]
        assert len(got) == 3, f"{kind}: {len(got)} frames of 3 come up again"


def run(bench):
    for module in ("bonding", "8021q", "macvlan", "bridge"):
        bench.load(module)
    bond(bench)
    vlan_device(bench)
    on_top(bench, "vlan", "id", 100)
    on_top(bench, "macvlan", "mode", "bridge")
    with added(bench, "br0", "br0", "type", "bridge", "forward_delay", 0):
        bench.dut.ip("link", "set", "d0", "master", "br0")
        said = one_line(bench, "-l", "-i", "d0", "-i", "d1")
        assert "d0: is a port of bridge br0" in said, said
