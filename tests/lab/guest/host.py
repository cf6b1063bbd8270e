# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A guest that systemd has booted: what its scenario sees, on each boot anew.

Runs as a service of the guest. d0 and d1 are the host's own; g0 and s0, on the other end of each wire,
are in namespaces.

    gen(g0) <-> d0, d1 <-> sink(s0)
"""

import json
import os
import pathlib
import re
import sys
import time
import traceback

HOME = pathlib.Path("/millrace")
NOTES = HOME / "notes.json"  # on the disk: it is there after a reboot
sys.path[:0] = [str(HOME / folder) for folder in
                ("tests/lab/guest", "tests/lab/scenarios", "tests/net")]
# What the helpers read when they are imported.
os.environ.update(MILLRACE_SLOWNESS="5", PATH="/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL="C")

from bench import Skip  # noqa: E402
from init import Report  # noqa: E402
from lab import SLOWNESS, Rig, run, wait_until  # noqa: E402
from wire import Wire  # noqa: E402


class Rebooting(Exception):
    """The scenario goes on after the next boot."""


class Host(Rig):
    """One a boot. `boots` counts them; `notes` are kept over them."""

    def __init__(self, plan, notes, say):
        self.say, self.notes, self.boots = say, notes, notes["boots"]
        self._ports = plan["ports"]
        super().__init__()

    def _build(self):
        self.gen, self.sink = self._namespace("gen"), self._namespace("sink")
        for name, owner in (("g0", self.gen), ("s0", self.sink)):
            run("ip", "link", "set", name, "netns", owner.name)
            owner.ip("link", "set", name, "promisc", "on")
            owner.ethtool_set(name, "gro", "off")  # it changes the order of frames
            owner.link_up(name)

    def tap(self, ifname):
        return Wire({"g0": self.gen, "s0": self.sink}[ifname], ifname)

    def links(self):
        return {link["ifname"]: link for link in json.loads(run("ip", "-d", "-j", "link", "show"))}

    def wait_links(self):
        """The host's cards have their link: a card may take it down and up at attach."""
        wait_until(lambda: all(self.links()[name]["operstate"] == "UP" for name in ("d0", "d1")),
                   10 * SLOWNESS, "links of d0 and d1", step=0.1)

    def attached(self):
        return {name for name, link in self.links().items() if "xdp" in link}

    def show(self, *names):
        text = run("systemctl", "show", "millraced", *(f"-p{name}" for name in names))
        values = dict(line.split("=", 1) for line in text.splitlines())
        return [values[name] for name in names]

    def wait_active(self, seconds):
        """The service is up; it fails at once where it has given up."""
        def active():
            state, result = self.show("ActiveState", "Result")
            assert result == "success", f"{state}: {result}\n{self.journal()}"
            return state == "active"
        try:
            wait_until(active, seconds, "millraced.service is active", step=0.2)
        except AssertionError as why:
            raise AssertionError(f"{why}; {self.journal()}") from why

    @staticmethod
    def journal():
        return run("journalctl", "-b", "-u", "millraced", "-o", "cat", "-n", "30")

    def wait_said(self, text):
        wait_until(lambda: text in self.journal(), 20 * SLOWNESS, f"{text!r} in the journal", step=0.5)

    @staticmethod
    def refusals():
        """Calls that a seccomp filter has refused since the boot, the service's own or the unit's."""
        return [line for line in run("dmesg").splitlines() if "type=1326" in line]

    def started(self):
        """Seconds from the kernel's start until the service had started, and its own start took."""
        active, inactive = self.show("ActiveEnterTimestampMonotonic", "InactiveExitTimestampMonotonic")
        return int(active) / 1e6, (int(active) - int(inactive)) / 1e6

    def reboot(self):
        """Does not return: `run` of the scenario is called again by the next boot."""
        NOTES.write_text(json.dumps(self.notes))
        run("systemctl", "reboot", "--no-block")
        raise Rebooting


def read_notes():
    if NOTES.exists():
        notes = json.loads(NOTES.read_text())
    else:
        notes = {"boots": 0, "begun": time.time()}
    notes["boots"] += 1
    NOTES.write_text(json.dumps(notes))
    return notes


def main():
    plan, report, notes = json.loads((HOME / "plan.json").read_text()), Report(), read_notes()
    name = plan["scenarios"][0]
    outcome, why = "pass", ""
    try:
        __import__(name).run(Host(plan, notes, lambda text: report(say=text)))
    except Rebooting:
        return
    except Skip as reason:
        outcome, why = "skip", str(reason)
    except BaseException as error:  # whoever runs the lab must hear of it
        traceback.print_exc()
        print(*Host.journal().splitlines()[-10:], *Host.refusals()[-5:], sep="\n", flush=True)
        lines = str(error).strip().splitlines() or [""]
        outcome, why = "fail", f"{type(error).__name__}: {lines[0][:400]}"
    report(end=name, result=outcome, reason=why, seconds=time.time() - notes["begun"])
    report(done=True)


if __name__ == "__main__":
    main()
