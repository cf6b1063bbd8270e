# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the kernel itself can do in place of a patch: its bridge, tc's mirred, a redirect by XDP.

They have no thread and wait for nothing: what comes in on a veth is worked on where its sender runs, on one
core and on two alike.
"""

from benchlib.programs import InKernel, LinuxBridge


class InPlaceOfPatch:
    """Measured once, beside the patch that spins."""

    limits = "patch, native"

    def suits(self, cell):
        return (cell.mode, cell.attach, cell.wait) == ("patch", "native", "spin") and not cell.both


class Bridge(InPlaceOfPatch, LinuxBridge):
    def __init__(self, options):
        super().__init__(options, "linux bridge", steered=False)


class Mirred(InPlaceOfPatch, InKernel):
    def __init__(self, options):
        super().__init__(options, "tc mirred")

    def set_up(self, cell):
        return ("tc qdisc add dev d0 clsact; tc filter add dev d0 ingress protocol all "
                "u32 match u32 0 0 action mirred egress redirect dev d1; ")

    def has_taken(self, lab, dev):
        return bool(lab.filters("d0"))


class XdpRedirect(InPlaceOfPatch, InKernel):
    """flood's smallest program: bpf_redirect_map() from one device to the other."""

    attaches = True

    def __init__(self, options):
        super().__init__(options, "xdp redirect")
        self.path = options.flood

    def argv(self, cell):
        return [self.path, "redirect", "--dev", "d0", "--to", "d1"]

    def has_taken(self, lab, dev):
        return dev == "d1" or lab.attached(dev)


def programs(options):
    return [Bridge(options), Mirred(options), XdpRedirect(options)]
