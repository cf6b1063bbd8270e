# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the places of a ring's indices, flags and entries are worth when two threads on two CPUs hand
descriptors over it: tests/tools/ring_layout.c, no traffic."""

import statistics

from benchlib import tool

ROUNDS = 40
MS = 10  # of a measurement
PROGRAM = "ring_layout"

# Bytes at which the producer's index, the consumer's, the flags and the entries begin.
LAYOUTS = {
    "indices on one line": (0, 4, 8, 64),
    "lines of 64 bytes": (0, 64, 128, 192),
    "producer, consumer 128 apart": (0, 128, 192, 256),
    "flags beside the consumer": (0, 128, 132, 384),
    "all 128 apart": (0, 128, 256, 384),
}
DEFAULT = "all 128 apart"  # src/fwd/handover.c
KINDS = {64: "bursts of 64", 1: "bursts of 1", 0: "one, and the next when it is taken"}
CACHED = {1: "remembered", 0: "looked at"}
SURE = 0.01  # of all differences that are said, one in a hundred times one is none


def cells():
    """(kind, cached, layout); layouts last, so that what is compared is near in time."""
    return [(kind, cached, name) for kind in KINDS for cached in CACHED for name in LAYOUTS]


def measure(folder, cpus, rounds, say):
    """{cell: [(ns, wall by CPU) of each round]}"""
    program = tool.Tool(folder / PROGRAM, *cpus)
    try:
        return tool.rounds_of(
            cells(), rounds, lambda cell: program.ask(*LAYOUTS[cell[2]], cell[1], cell[0], MS), say
        )
    finally:
        program.close()


def verdict(ratios, chance, comparisons):
    """Bonferroni: there are many comparisons, and one of them is always the luckiest."""
    if chance * comparisons > SURE:
        return "no difference seen"
    change = statistics.median(ratios) - 1
    return f"{abs(change):.1%} {'slower' if change > 0 else 'faster'}"


def lines(results):
    """A line for each cell: its ns, and its layout against the default one in the same rounds."""
    comparisons = len(results) - len(KINDS) * len(CACHED)
    yield (f"{'index of the other':<18} {'layout':<28} {'ns: median':>10} {'min':>7} {'max':>7} "
           f"{'ratio':>6} {'p':>8}  against {DEFAULT}")
    shown = None
    for (kind, cached, name), rounds in results.items():
        if kind != shown:
            yield f"{KINDS[kind]}:"
            shown = kind
        ns = [one for one, _ in rounds]
        base = [one for one, _ in results[kind, cached, DEFAULT]]
        ratios = [one / other for one, other in zip(ns, base)]
        told = (f"{CACHED[cached]:<18} {name:<28} {statistics.median(ns):>10.2f} {min(ns):>7.2f} "
                f"{max(ns):>7.2f}")
        if name != DEFAULT:
            chance = tool.signed_rank([one - other for one, other in zip(ns, base)])
            told += (f" {statistics.median(ratios):>6.3f} {chance:>8.1g}  "
                     f"{verdict(ratios, chance, comparisons)}")
        yield told + (" *" if tool.disturbed([wall for _, wall in rounds]) else "")
    yield ("ns of wall time a descriptor. p: Wilcoxon's signed-rank test over the rounds; a difference is said "
           f"if p is below {SURE} / {comparisons} comparisons.")
    if any(tool.disturbed([wall for _, wall in rounds]) for rounds in results.values()):
        yield tool.DISTURBED


def report(folder, cpus, rounds, say):
    yield from lines(measure(folder, cpus, rounds, say))
