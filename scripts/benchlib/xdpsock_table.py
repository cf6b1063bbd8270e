# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The kernel community's table of AF_XDP figures: modes across, programs and cores down, a block for each
way to attach and to wait; then the targets, each with what came out."""

import dataclasses
import importlib.util
import itertools
import statistics

from benchlib.cells import CORES, MODES, Cell
from benchlib.programs import Xdpsock
from benchlib.report import aligned, ratios

BATCH = 64
OTHER_BURSTS = (32, 256)  # of testpmd, whose best one counts
DEFAULT_WAIT = "adaptive"  # millraced's; a peer's own default is to spin


class SpinningXdpsock(Xdpsock):
    """Its default is to spin, and has one row here."""

    def suits(self, cell):
        return cell.wait != DEFAULT_WAIT and super().suits(cell)


@dataclasses.dataclass(frozen=True)
class Block:
    name: str
    attach: str
    wait: str


BLOCKS = (
    Block("defaults: millraced adaptive, others spinning", "native", DEFAULT_WAIT),
    Block("native copy, spinning", "native", "spin"),
    Block("native copy, poll()", "native", "poll"),
    Block("native copy, busy-poll", "native", "busy-poll"),
    Block("skb, spinning", "skb", "spin"),
)


@dataclasses.dataclass(frozen=True)
class Target:
    """millraced by a peer, in one cell of each round; the peer is its best, if it has several."""

    what: str
    cores: tuple
    modes: tuple
    attaches: tuple
    wait: str
    peers: tuple  # the beginnings of their names
    peer_wait: str
    least: float


TARGETS = (
    Target("one shared core, defaults", ("one",), ("rxdrop",), ("native",), DEFAULT_WAIT, ("xdpsock",), "spin", 5.0),
    Target("one shared core, defaults", ("one",), ("l2fwd",), ("native",), DEFAULT_WAIT, ("xdpsock",), "spin", 1.7),
    Target("two cores", ("two",), ("l2fwd", "patch"), ("native",), "spin", ("xdpsock", "xsk_fwd"), "spin", 1.15),
    Target("two cores, its best burst", ("two",), ("patch",), ("native",), "spin", ("testpmd",), "spin", 1.0),
    Target("two cores, same flags", ("two",), ("rxdrop", "txpush"), ("native", "skb"), "spin", ("xdpsock",), "spin",
           1.0),
)
ADAPTIVE_LEAST = 0.95  # of the best fixed way to wait, in each cell


def cells(options):
    """Every block; txpush has no generator to share a core with."""
    return [Cell(mode, block.attach, block.wait, cores, BATCH)
            for block, cores, mode in itertools.product(BLOCKS, options.cores, options.modes)
            if mode != "txpush" or cores == "two"]


def rounds_of(results, cell, name):
    return results.get((cell, name), [])


def median_mpps(rounds):
    good = [one.kpps / 1e3 for one in rounds if one]
    return statistics.median(good) if good else None


def peer_cell(block, name, cell):
    """Where a program was measured whose own default is another's row."""
    if block.wait == DEFAULT_WAIT and name != "millraced":
        return dataclasses.replace(cell, wait="spin")
    return cell


def entry(results, block, cores, mode, name):
    """A median in M frames/s, and beside a peer's the median over the rounds of ours by theirs."""
    cell = Cell(mode, block.attach, block.wait, cores, BATCH)
    theirs = rounds_of(results, peer_cell(block, name, cell), name)
    middle = median_mpps(theirs)
    if middle is None:
        return "failed" if theirs else "-"
    shared = ratios(rounds_of(results, cell, "millraced"), theirs) if name != "millraced" else []
    return f"{middle:.2f}" + (f" (x{statistics.median(shared):.2f})" if shared else "")


def block_rows(results, block, names):
    for cores in CORES:
        for name in names:
            texts = [entry(results, block, cores, mode, name) for mode in MODES]
            if any(text != "-" for text in texts):
                yield [f"{cores} core{'s' if cores == 'two' else ''}", name, *texts]


def best_of_peers(results, target, mode, attach, cores):
    """(name, ratios of the rounds) of the peer that leaves ours the least."""
    ours = rounds_of(results, Cell(mode, attach, target.wait, cores, BATCH), "millraced")
    theirs = Cell(mode, attach, target.peer_wait, cores, BATCH)
    found = [(name, ratios(ours, rounds)) for (cell, name), rounds in results.items()
             if cell == theirs and name.startswith(target.peers)]
    found = [(name, shared) for name, shared in found if shared]
    return min(found, key=lambda one: statistics.median(one[1]), default=None)


def judged(what, against, shared, least):
    middle = statistics.median(shared)
    span = f"{min(shared):.2f} to {max(shared):.2f}"
    return [what, against, f"{least:.2f}", f"{middle:.2f}", span, "reached" if middle >= least else "missed"]


def target_rows(results):
    for target in TARGETS:
        for cores, mode, attach in itertools.product(target.cores, target.modes, target.attaches):
            what = f"{target.what}, {mode}" + (f", {attach}" if len(target.attaches) > 1 else "")
            if found := best_of_peers(results, target, mode, attach, cores):
                yield judged(what, found[0], found[1], target.least)
            elif mode != "patch" or "xdpsock" not in target.peers:
                yield [what, "/".join(target.peers), f"{target.least:.2f}", "-", "", "not measured"]


def best_fixed(results, cell):
    """One figure a round: the best of the fixed ways to wait."""
    fixed = [rounds_of(results, dataclasses.replace(cell, wait=block.wait), "millraced")
             for block in BLOCKS if block.attach == cell.attach and block.wait != DEFAULT_WAIT]
    for number in zip(*(rounds for rounds in fixed if rounds)):
        yield max((one for one in number if one), key=lambda one: one.kpps, default=None)


def adaptive_rows(results):
    for (cell, name), rounds in results.items():
        if name == "millraced" and cell.wait == DEFAULT_WAIT:
            shared = ratios(rounds, list(best_fixed(results, cell)))
            if shared:
                cores = "two cores" if cell.cores == "two" else "one core"
                yield judged(f"{cores}, adaptive, {cell.mode}", "its best fixed", shared, ADAPTIVE_LEAST)


def report(programs, results):
    names = [program.name for program in programs]
    for block in BLOCKS:
        if rows := list(block_rows(results, block, names)):
            yield ""
            yield f"{block.name}: M frames/s, in brackets millraced's rate by theirs"
            yield from aligned(["", "", *MODES], rows, 2)
    yield ""
    yield "zero-copy, zero-copy with poll(): no device here has it; the cards of scripts/lab do, under emulation, whose"
    yield "  rates say nothing"
    yield "txpush has no generator: what it sends is received on its own core in either case"
    yield ""
    rows = [*target_rows(results), *adaptive_rows(results)]
    yield from aligned(["target", "against", "least", "median", "rounds", ""], rows, 2)


def can_plot():
    return importlib.util.find_spec("pygal") is not None


def plot(results, path):
    """Bars of the medians, a group for each block, mode and number of cores."""
    pygal = importlib.import_module("pygal")  # only who asks for a plot needs it
    names = list(dict.fromkeys(name for _, name in results))
    places = [(block, cores, mode) for block, cores, mode in itertools.product(BLOCKS, CORES, MODES)
              if entry(results, block, cores, mode, "millraced") not in ("-", "failed")]
    chart = pygal.HorizontalBar(title="AF_XDP over veth: M frames/s, medians", height=60 + 60 * len(places),
                                js=[], legend_at_bottom=True, truncate_label=-1)
    chart.x_labels = [f"{block.attach} {block.wait}, {cores}, {mode}" for block, cores, mode in places]
    for name in names:
        cells_of_name = [peer_cell(block, name, Cell(mode, block.attach, block.wait, cores, BATCH))
                         for block, cores, mode in places]
        chart.add(name, [median_mpps(rounds_of(results, cell, name)) for cell in cells_of_name])
    chart.render_to_file(path)
