# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a scenario is given: emulated cards in three namespaces, and daemons on them.

    gen(g0) <-> dut(d0), dut(d1) <-> sink(s0)        as RIG-2 of tests/net, with cards for veths
                         dut(d2) <-> sink(s1)        where the machine has three wires

d0, d1 and d2 are the cards under test. g0, s0 and s1 are virtio cards on the other end of each wire,
taken by the kernel's own stack and promiscuous, so that a tap sees every frame.
"""

import contextlib
import pathlib
import re

import appliance
import kmod
from control import Folder
from daemon import Daemon, program, total
from lab import SLOWNESS, Rig, run, wait_until
from wire import Wire, exchange

LINK_SECONDS = 4  # igb takes its link down and up when a program is attached


class Skip(Exception):
    """The scenario cannot say anything here; the text says why."""


class Bench(Rig):
    """One per boot. `clean` after each scenario, whatever came of it.

    `say` tells a line of text to whoever runs the lab.
    """

    def __init__(self, plan, say):
        self.say = say
        self.kernel, self.nic = plan["kernel"], plan["nic"]
        self.zero_copy_ports = plan["zero_copy"]  # those of d0, d1 and d2 that must have it
        self._plan = plan
        self._ports = plan["ports"]
        self._open = []
        super().__init__()

    # Rig's part

    def _build(self):
        self.gen, self.dut = self._namespace("gen"), self._namespace("dut")
        self.sink = self._namespace("sink")
        for name, address in self._ports.items():
            self._place(name, self._cards()[address])
        self.wait_links()

    @staticmethod
    def _cards():
        """{MAC address: name} of the interfaces that are in no namespace of ours."""
        return {path.read_text().strip(): path.parent.name
                for path in pathlib.Path("/sys/class/net").glob("*/address")}

    def _place(self, ifname, found_as):
        """Put a card into its namespace, under its name, up."""
        owner = self._owner(ifname)
        run("ip", "link", "set", found_as, "netns", owner.name, "name", ifname)
        self.macs[ifname] = bytes.fromhex(self._ports[ifname].replace(":", ""))
        if ifname[0] in "gs":
            owner.ip("link", "set", ifname, "promisc", "on")
            # It holds frames back for a moment, and so changes their order.
            owner.ethtool_set(ifname, "gro", "off")
        owner.link_up(ifname)

    # For scenarios

    def wait_links(self):
        """Every card has its link."""
        for name in self._ports:
            owner = self._owner(name)
            wait_until(lambda: owner.link(name)["operstate"] in ("UP", "UNKNOWN"),
                       LINK_SECONDS * SLOWNESS, f"link of {name}", step=0.1)

    def load(self, module):
        """A kernel module that is not a card's driver."""
        if not kmod.available(self._plan, module):
            raise Skip(f"{self.kernel} has no module {module}")
        kmod.load(self._plan, module)

    def tap(self, ifname):
        return self.keep(Wire(self._owner(ifname), ifname))

    @contextlib.contextmanager
    def veth(self, far, near):
        """A pair to the dut within the block, named as RIG-2 names its ends: ("s2", "d2")."""
        self.join(self._owner(far), far, near)
        try:
            yield
        finally:
            self.dut.ip("link", "del", near)

    def file(self):
        """A configuration file, with a control socket."""
        folder = self.keep(Folder())
        return appliance.File(folder.path / "conf", folder.socket)

    def daemon(self, *flags, **options):
        """A daemon as it starts; ended with the scenario at the latest."""
        daemon = Daemon(self.dut, *flags, **options)
        self._open.append(daemon)
        return daemon

    def millraced(self, *flags, wait_links=True, **options):
        """A daemon that is ready and, unless told otherwise, whose links are up again."""
        daemon = self.daemon(*flags, **options).wait_ready()
        if wait_links:
            self.wait_links()
        return daemon

    def feature(self, ifname, name):
        """What `ethtool -k` says of an offload: on, off, off [fixed]."""
        said = self.dut.run("ethtool", "-k", ifname)
        return re.search(rf"^{name}: (.*)$", said, re.M)[1].strip()

    @contextlib.contextmanager
    def unbound(self, ifname):
        """The card has no driver within the block; bound again it is where and what it was."""
        link = self.dut.link(ifname)
        bus, name = link["parentbus"], link["parentdev"]
        driver = pathlib.Path(f"/sys/bus/{bus}/devices/{name}/driver").resolve()
        (driver / "unbind").write_text(name)
        try:
            yield
        finally:
            (driver / "bind").write_text(name)
            address = self._ports[ifname]
            wait_until(lambda: address in self._cards(), 10 * SLOWNESS, f"{ifname} is back")
            self._place(ifname, self._cards()[address])
            self.wait_links()

    def queues_of(self, ifname):
        """Queue pairs of a card that are active."""
        said = self.dut.run("ethtool", "-l", ifname)
        return int(re.findall(r"^Combined:\s+(\d+)", said, re.M)[-1])

    def refused(self, *flags):
        """What a daemon says that must not start."""
        return self.daemon(*flags).fails(timeout=10 * SLOWNESS)

    def zero_copy(self, *flags, **options):
        """A daemon with -z (unless the flags name a file), and every socket says zero-copy."""
        forced = [] if any(str(flag).startswith("--config") for flag in flags) else ["-z"]
        daemon = self.millraced(*forced, *flags, **options)
        assert daemon.bound, f"no line a queue at start: {daemon}"
        assert {one["copy"] for one in daemon.bound.values()} == {"zero-copy"}, daemon.stderr
        return daemon

    def virtio_feature(self, ifname, bit):
        """Whether driver and device have agreed on a feature of virtio's."""
        link = self.dut.link(ifname)
        assert link["parentbus"] == "virtio", link
        return pathlib.Path(f"/sys/bus/virtio/devices/{link['parentdev']}/features"
                            ).read_text()[bit] == "1"

    def keep(self, thing):
        """It is closed with the scenario."""
        self._open.append(thing)
        return thing

    def patches_both_ways(self, daemon, near, far, sent):
        """The same frames go each way, once, unchanged, in order; then it is stopped, and counted them."""
        exchange(near, far, sent, sent)
        exchange(far, near, sent, sent)
        final = daemon.stop()
        for rx, tx in (("d0", "d1"), ("d1", "d0")):
            assert total(final, "rx_packets", rx) == total(final, "tx_packets", tx) == len(sent)
            assert program(final, rx)["seen"] == len(sent)

    def check_left_nothing(self):
        """A scenario ends its daemons itself, so that each had its audit."""
        left = [one for one in self._open if isinstance(one, Daemon) and one.running]
        assert not left, f"the scenario left a daemon running: {left[0]}"
        assert self.dut.attached() == {}, "an XDP program is still attached"

    def clean(self):
        while self._open:
            thing = self._open.pop()
            if isinstance(thing, Daemon):
                thing.kill()
            else:
                thing.close()
        self.wait_links()
