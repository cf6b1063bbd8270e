# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A host with the package installed and the service enabled: it forwards after boot, restart, reboot.

All in zero-copy, every frame once, unchanged, in order. What is in /etc/millrace is systemd.conf.
"""

import json
import time

import frames
import lab
from lab import SLOWNESS
from wire import exchange

NICS = ("igb", "virtio")
SECONDS = 600
MACHINE = "installed"
ZERO_COPY = True
LONG = True
FRAMES = 300
NO_CAPABILITY = "0" * 16


def forwards(host, near, far):
    """The service is up, both cards are bound in zero-copy, and frames cross both ways."""
    host.wait_active(20 * SLOWNESS)
    host.wait_links()
    status = json.loads(lab.run("millracectl", "-j", "status"))
    queues = [queue for port in status["ports"] for queue in port["queues"]]
    assert len(queues) >= 2 and all(queue["zero_copy"] for queue in queues), queues
    assert {port["attach"] for port in status["ports"]} == {"native"}, status["ports"]
    assert host.attached() == {"d0", "d1"}
    sent = [frames.numbered(n, 60 + n) for n in range(FRAMES)]
    exchange(near, far, sent, sent)
    exchange(far, near, sent, sent)


def confined(host):
    """The process that touches frames has nothing: systemd started it as it did in tests/service."""
    with open(f"/proc/{host.show('MainPID')[0]}/status", encoding="ascii") as file:
        state = dict(line.rstrip("\n").split(":\t", 1) for line in file)
    assert set(state["Uid"].split()) == {lab.run("id", "-u", "millrace").strip()}
    assert (state["CapPrm"], state["CapEff"]) == (NO_CAPABILITY, NO_CAPABILITY)
    assert (state["NoNewPrivs"], state["Seccomp"]) == ("1", "2")


def restarts(host, near, far):
    before = host.show("MainPID")
    begun = time.monotonic()
    lab.run("systemctl", "restart", "millraced", timeout=30 * SLOWNESS)
    host.say(f"restart: {time.monotonic() - begun:.1f} s, of which the start took {host.started()[1]:.1f} s")
    assert host.show("MainPID") != before
    forwards(host, near, far)


def stops(host):
    """Nothing is left, and nothing was asked for that the filters do not have."""
    lab.run("systemctl", "stop", "millraced")
    assert host.attached() == set()
    assert host.refusals() == []


def run(host):
    near, far = host.tap("g0"), host.tap("s0")
    forwards(host, near, far)
    after, took = host.started()
    host.say(f"boot {host.boots}: millraced is active {after:.1f} s after the kernel began, "
             f"and took {took:.1f} s of that")
    confined(host)
    if host.boots == 1:
        restarts(host, near, far)
        host.reboot()
    restarts(host, near, far)
    stops(host)
