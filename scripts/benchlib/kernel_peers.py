# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the kernel itself can do in place of a patch: its bridge, tc's mirred, a redirect by XDP.

They have no thread and wait for nothing: what comes in on a veth is worked on where its sender runs, on one
core and on two alike. Each frame is counted where it arrives.
"""

import os

from benchlib.programs import Program, run_seconds

BRIDGE = "ip link add br0 type bridge stp_state 0; ip link set br0 up; " \
         "for port in d0 d1; do ip link set $port master br0; done; "
MIRRED = "tc qdisc add dev d0 clsact; " \
         "tc filter add dev d0 ingress protocol all u32 match u32 0 0 action mirred egress redirect dev d1; "


class KernelPatch(Program):
    """One shell line, then sleep until it is ended."""

    at_sink = True
    attaches = False
    limits = "patch, native"

    def __init__(self, options, name, line):
        super().__init__("/bin/sh", options, name)
        self.line = line
        self.compiler = ""

    def suits(self, cell):
        return (cell.mode, cell.attach, cell.wait) == ("patch", "native", "spin") and not cell.both

    def argv(self, cell):
        return [self.path, "-c", f"set -e; {self.line}exec sleep {run_seconds(self.options)}"]

    def has_taken(self, lab, dev):
        return lab.in_bridge(dev) or bool(lab.filters("d0"))

    def read_version(self):
        return os.uname().release


class XdpRedirect(KernelPatch):
    """flood's smallest program: bpf_redirect_map() from one device to the other."""

    attaches = True

    def __init__(self, options, name):
        super().__init__(options, name, "")

    def argv(self, cell):
        return [self.options.flood, "redirect", "--dev", "d0", "--to", "d1"]

    def has_taken(self, lab, dev):
        return dev == "d1" or lab.attached(dev)


def programs(options):
    return [KernelPatch(options, "linux bridge", BRIDGE), KernelPatch(options, "tc mirred", MIRRED),
            XdpRedirect(options, "xdp redirect")]
