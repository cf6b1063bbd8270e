# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a scenario is given: emulated cards in three namespaces, and daemons on them.

    gen(g0) <-> dut(d0), dut(d1) <-> sink(s0)        as RIG-2 of tests/net, with cards for veths

d0 and d1 are the cards under test. g0 and s0 are virtio cards on the other end of each wire, taken
by the kernel's own stack and promiscuous, so that a tap sees every frame.
"""

import pathlib
import re

from control import Folder
from daemon import Daemon
from lab import SLOWNESS, Rig, run, wait_until
from wire import Wire

LINK_SECONDS = 4  # igb takes its link down and up when a program is attached


class Skip(Exception):
    """The scenario cannot say anything here; the text says why."""


class Bench(Rig):
    """One per boot. `clean` after each scenario, whatever came of it."""

    def __init__(self, plan):
        self.kernel, self.nic = plan["kernel"], plan["nic"]
        self.zero_copy_expected = plan["zero_copy"]
        self._ports = plan["ports"]
        self._open = []
        super().__init__()

    # Rig's part

    def _build(self):
        self.gen, self.dut = self._namespace("gen"), self._namespace("dut")
        self.sink = self._namespace("sink")
        by_address = {path.joinpath("address").read_text().strip(): path.name
                      for path in pathlib.Path("/sys/class/net").iterdir()}
        for name, address in self._ports.items():
            owner = self._owner(name)
            run("ip", "link", "set", by_address[address], "netns", owner.name, "name", name)
            self.macs[name] = bytes.fromhex(address.replace(":", ""))
            if name[0] in "gs":
                owner.ip("link", "set", name, "promisc", "on")
                # It holds frames back for a moment, and so changes their order.
                owner.ethtool_set(name, "gro", "off")
            owner.link_up(name)
        self.wait_links()

    # For scenarios

    def wait_links(self):
        """Every card has its link."""
        for name in self._ports:
            owner = self._owner(name)
            wait_until(lambda: owner.link(name)["operstate"] in ("UP", "UNKNOWN"),
                       LINK_SECONDS * SLOWNESS, f"link of {name}", step=0.1)

    def tap(self, ifname):
        return self._keep(Wire(self._owner(ifname), ifname))

    def folder(self):
        """A folder for a configuration file and a control socket."""
        return self._keep(Folder())

    def millraced(self, *flags, wait_links=True, **options):
        """A daemon that is ready and, unless told otherwise, whose links are up again."""
        daemon = Daemon(self.dut, *flags, **options)
        self._open.append(daemon)
        daemon.wait_ready()
        if wait_links:
            self.wait_links()
        return daemon

    def queues_of(self, ifname):
        """Queue pairs of a card that are active."""
        said = self.dut.run("ethtool", "-l", ifname)
        return int(re.findall(r"^Combined:\s+(\d+)", said, re.M)[-1])

    def refused(self, *flags):
        """What a daemon says that must not start."""
        daemon = Daemon(self.dut, *flags)
        self._open.append(daemon)
        return daemon.fails(timeout=10 * SLOWNESS)

    def zero_copy(self, *flags, **options):
        """A daemon with -z (unless the flags name a file), and every socket says zero-copy."""
        forced = [] if any(str(flag).startswith("--config") for flag in flags) else ["-z"]
        daemon = self.millraced(*forced, *flags, **options)
        assert daemon.bound, f"no line a queue at start: {daemon}"
        assert {one["copy"] for one in daemon.bound.values()} == {"zero-copy"}, daemon.stderr
        return daemon

    def _keep(self, thing):
        self._open.append(thing)
        return thing

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
