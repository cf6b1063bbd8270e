# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What can be measured: one cell is one way to run a forwarder."""

import dataclasses
import itertools

MODES = ("rxdrop", "txpush", "l2fwd", "patch")
ATTACHES = ("native", "skb")
WAITS = ("spin", "poll", "busy-poll")
CORES = ("two", "one")
BATCHES = (32, 64, 256)

COLUMNS = ("mode", "attach", "wait", "cores", "batch")


@dataclasses.dataclass(frozen=True)
class Cell:
    mode: str
    attach: str
    wait: str
    cores: str
    batch: int

    @property
    def ports(self):
        return ["d0", "d1"] if self.mode == "patch" else ["d0"]

    @property
    def key(self):
        """The total that is the work of this mode."""
        return "rx" if self.mode == "rxdrop" else "tx"

    @property
    def sink_at(self):
        return {"rxdrop": None, "patch": "g1"}.get(self.mode, "g0")

    @property
    def generated(self):
        """Whether the frames come from a generator; txpush makes its own."""
        return self.mode != "txpush"

    @property
    def values(self):
        return [str(getattr(self, column)) for column in COLUMNS]

    def __str__(self):
        return f"{self.mode} {self.attach} {self.wait} {self.cores} {self.batch}"


def cells_of(options):
    """Every combination of the lists in options."""
    lists = (options.modes, options.attach, options.wait, options.cores, options.batch)
    cells = [Cell(*values) for values in itertools.product(*lists)]
    # Without a generator there is nothing to share the core with.
    return [cell for cell in cells if cell.generated or cell.cores == "two"]
