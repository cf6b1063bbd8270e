# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""An interface that is shared through libxdp's dispatcher: somebody else's program on it, and its pins."""

import pathlib

import frames
from lab import SLOWNESS, wait_until

TOOL = "/millrace/build/tests/tools/beside"
METHOD = "--attach-method=dispatcher"
PINS = pathlib.Path("/bpf/xdp")  # LIBXDP_BPFFS of init.py
DROPPED = 0x88b6  # BESIDE_DROPS
DEFAULT_PRIORITY = 50
JOIN_SECONDS = 5  # each time a program joins or leaves, libxdp loads and links all of them anew


def dropped(seq, dst=frames.BOB):
    """A frame that the other program drops."""
    return frames.ethernet(dst, frames.ALICE, DROPPED, seq.to_bytes(4, "big"), frames.MIN_SIZE)


class Other:
    """Somebody else's program in the dispatcher of an interface of the dut."""

    def __init__(self, bench, ifname, mode, priority, *words):
        self._tool = lambda *argv: bench.dut.run(TOOL, ifname, *argv, timeout=20 * SLOWNESS)
        self.id = int(self._tool("join", mode, priority, *words))

    def leave(self):
        self._tool("leave", self.id)

    @property
    def count(self):
        return int(self._tool("count", self.id))


def order(bench, ifname):
    """The names of the programs in the dispatcher, as they are run; [] without one."""
    said = bench.dut.run(TOOL, ifname, "list", timeout=20 * SLOWNESS)
    return [line.split()[1] for line in said.splitlines()]


def id_of_ours(bench, ifname):
    said = bench.dut.run(TOOL, ifname, "list", timeout=20 * SLOWNESS)
    return next(int(line.split()[0]) for line in said.splitlines() if line.split()[1] == "millrace")


def wait_order(bench, ifname, *names):
    wait_until(lambda: order(bench, ifname) == [*names], JOIN_SECONDS * SLOWNESS,
               f"{names} on {ifname}, where there is {order(bench, ifname)}", step=0.1)


def pins():
    return sorted(PINS.iterdir()) if PINS.exists() else []
