# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What can be measured: one cell is one way to run a forwarder, a group the cells of one figure."""

import collections.abc
import dataclasses
import itertools

MODES = ("rxdrop", "txpush", "l2fwd", "patch")
ALL_MODES = (*MODES, "bridge")  # the last has a figure of its own
ATTACHES = ("native", "skb")
WAITS = ("adaptive", "spin", "poll", "busy-poll")
CORES = ("two", "one")
BATCHES = (32, 64, 256)

# Who asks on the control socket meanwhile.
NOBODY = "nobody"  # the socket is there
BURN = "a loop"  # nor does this, but it takes as much CPU time as it gets
WATCH = "stats -i 1"  # millracectl stats -i 1
BUSY = "without pause"  # a client that sends the next request when it has the answer

WIDE = 4  # queues of the wide port of the hand-over

# vlan-mode of the two ports of a bridge; none: tags are data.
VLANS = {
    "none": (),
    "access": ("access 10", "access 10"),
    "trunk": ("trunk 10", "trunk 10"),
    "access-trunk": ("access 10", "trunk 10"),
}
VLAN = 10

COLUMNS = ("mode", "attach", "wait", "cores", "batch")
ALL_COLUMNS = (*COLUMNS, "queues", "workers", "asking", "vlans")


@dataclasses.dataclass(frozen=True)
class Cell:
    mode: str
    attach: str
    wait: str
    cores: str  # a key of places_of()
    batch: int
    widths: tuple = (1, 1)  # queues of each port
    asking: str = ""  # "": there is no socket to ask at
    base: "Cell | None" = dataclasses.field(default=None, compare=False)  # what it is held against
    both: bool = False  # traffic both ways between two ports, each end sending to the other's MAC
    vlans: str = "none"  # a key of VLANS

    @property
    def ports(self):
        return ["d0", "d1"] if self.mode in ("patch", "bridge") else ["d0"]

    @property
    def key(self):
        """The total that is the work of this mode."""
        return "rx" if self.mode == "rxdrop" else "tx"

    @property
    def sinks_at(self):
        if self.both:
            return ["g0", "g1"]
        return {"rxdrop": [], "patch": ["g1"], "bridge": ["g1"]}.get(self.mode, ["g0"])

    @property
    def generators_at(self):
        return (["g0", "g1"] if self.both else ["g0"]) if self.generated else []

    @property
    def vlan_modes(self):
        return VLANS[self.vlans]

    def tags_at(self, dev):
        """Whether what is sent from this end has a tag, as its port wants it."""
        modes = dict(zip(("g0", "g1"), self.vlan_modes))
        return modes.get(dev, "").startswith("trunk")

    @property
    def generated(self):
        """Whether the frames come from a generator; txpush makes its own."""
        return self.mode != "txpush"

    @property
    def port_widths(self):
        return self.widths[: len(self.ports)]

    @property
    def hands_over(self):
        return len(set(self.port_widths)) > 1

    @property
    def queues(self):
        return ":".join(map(str, self.port_widths))

    @property
    def workers(self):
        """One a queue number, on every port of the forward."""
        return max(self.port_widths)

    def values(self, columns):
        return [str(getattr(self, column)) for column in columns]

    def __str__(self):
        parts = self.values(COLUMNS)
        parts += [self.queues] if max(self.widths) > 1 else []
        parts += [f"asking {self.asking}"] if self.asking else []
        parts += [f"VLANs {self.vlans}"] if self.vlan_modes else []
        return " ".join(parts)


@dataclasses.dataclass(frozen=True)
class Place:
    """CPUs. A veth puts what XDP redirects into it on the RX queue number CPU modulo queues: to
    reach several queues takes a generator on several CPUs."""

    generators: tuple
    pollers: tuple

    def __str__(self):
        def listed(cpus):
            return ",".join(map(str, cpus))

        return f"generator on {listed(self.generators)}, workers on {listed(self.pollers)}"


def places_of(cpus):
    """{cores: Place} of those that these CPUs, in ascending order, can do. Numbers are of CPUs with
    a generator + CPUs with workers."""

    def place(generators, count):
        free = [cpu for cpu in cpus if cpu not in generators]
        pollers = [*free[::-1], *generators[::-1]][:count]
        return Place(tuple(generators), tuple(sorted(pollers)))

    places = {"two": Place(cpus[:1], cpus[-1:]), "one": Place(cpus[-1:], cpus[-1:])}
    past_first = [cpu for cpu in cpus if cpu % WIDE]
    if past_first and len(cpus) > 1:  # not on queue 0, which the narrow port has, too
        places["1+1"] = place(past_first[:1], 1)
    other = [cpu for cpu in cpus if cpu % 2 != cpus[0] % 2]
    if other:
        places["2+1"] = place([cpus[0], other[0]], 1)
        places["2+2"] = place([cpus[0], other[0]], 2)
    return places


def mode_cells(options):
    """Every combination of the lists in options."""
    lists = (options.modes, options.attach, options.wait, options.cores, options.batch)
    cells = [Cell(*values) for values in itertools.product(*lists)]
    # Without a generator there is nothing to share the core with.
    return [cell for cell in cells if cell.generated or cell.cores == "two"]


def against_first(*cells):
    return [cells[0], *(dataclasses.replace(cell, base=cells[0]) for cell in cells[1:])]


def worker_cells(options):
    """The same load on one queue with one worker, on two with two on one CPU, and on two CPUs."""
    for attach, wait, batch in itertools.product(options.attach, options.wait, options.batch):
        yield from against_first(
            Cell("patch", attach, wait, "2+1", batch, (1, 1)),
            Cell("patch", attach, wait, "2+1", batch, (2, 2)),
            Cell("patch", attach, wait, "2+2", batch, (2, 2)),
        )


def asking_cells(options):
    lists = (options.modes, options.attach, options.wait, options.cores, options.batch)
    askers = (NOBODY, WATCH, BUSY, BURN)
    for values in itertools.product(*lists):
        yield from against_first(*(Cell(*values, asking=who) for who in askers))


def hand_over_cells(options):
    """All frames on a queue that the narrow port has not, all workers on one CPU: then with and
    without hand-over the same CPU does all. And as the planner spreads the workers, half of the
    frames on such a queue."""
    lists = (options.attach, options.wait, options.batch, ("1+1", "2+2"))
    for attach, wait, batch, cores in itertools.product(*lists):
        yield from against_first(
            Cell("patch", attach, wait, cores, batch, (WIDE, WIDE)),
            Cell("patch", attach, wait, cores, batch, (WIDE, 1)),
        )


def bridge_cells(options):
    """Two ports, traffic both ways: a patch, and a bridge that has learned both ends, without VLANs and
    with."""
    lists = (options.attach, options.wait, options.cores, options.batch)
    for values in itertools.product(*lists):
        yield from against_first(
            Cell("patch", *values, both=True),
            *(Cell("bridge", *values, both=True, vlans=vlans) for vlans in options.vlans),
        )


@dataclasses.dataclass(frozen=True)
class Group:
    cells: collections.abc.Callable
    defaults: dict  # of each list that it takes
    columns: tuple = COLUMNS
    peers: bool = False  # whether other forwarders can do any of its cells


QUEUE_COLUMNS = (*COLUMNS, "queues", "workers")
GROUPS = {
    "modes": Group(
        mode_cells,
        {
            "modes": MODES,
            "attach": ATTACHES,
            "wait": ("spin", "poll"),
            "cores": ("two",),
            "batch": (64,),
        },
        peers=True,
    ),
    "workers": Group(
        worker_cells,
        {"attach": ("native",), "wait": ("spin", "poll"), "batch": (64,)},
        QUEUE_COLUMNS,
    ),
    "asking": Group(
        asking_cells,
        {
            "modes": ("rxdrop", "patch"),
            "attach": ("native",),
            "wait": ("spin", "poll"),
            "cores": ("two",),
            "batch": (64,),
        },
        (*COLUMNS, "asking"),
    ),
    "hand-over": Group(
        hand_over_cells,
        # Four workers that spin on fewer CPUs only take each other's time.
        {"attach": ("native",), "wait": ("poll",), "batch": (64,)},
        QUEUE_COLUMNS,
    ),
    "bridge": Group(
        bridge_cells,
        {
            "attach": ("native",),
            "wait": ("spin", "poll"),
            "cores": CORES,
            "batch": (64,),
            "vlans": ("none",),
        },
        (*COLUMNS, "vlans"),
    ),
}


def cells_of(options):
    return list(GROUPS[options.group].cells(options))
