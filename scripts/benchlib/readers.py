# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What it takes to read a record that is seldom replaced, by what keeps readers and writer apart:
tests/tools/readers.c, no traffic."""

import statistics

from benchlib import tool

ROUNDS = 30
MS = 100  # of a measurement: one replacement comes in each
PROGRAM = "readers"

WAYS = {
    "none": "a copy of its own",
    "rwlock": "pthread_rwlock_t",
    "seqlock": "seqlock",
    "pointer": "snapshot by pointer",
}
THREADS = (1, 2)


def cells():
    return [(way, threads) for way in WAYS for threads in THREADS]


def measure(folder, cpus, rounds, say):
    """{(way, threads): [(ns, wall by CPU, replacements, retries a million readings)]}"""
    program = tool.Tool(folder / PROGRAM, *cpus)
    try:
        return tool.rounds_of(cells(), rounds, lambda cell: program.ask(*cell, MS), say)
    finally:
        program.close()


def lines(results):
    yield (f"{'way':<22} {'readers':>7} {'ns: median':>10} {'min':>7} {'max':>7} {'by 1 reader':>11} "
           f"{'by a copy':>9} {'replaced':>8} {'again, in a million':>19}")
    for (way, threads), rounds in results.items():
        ns = [one[0] for one in rounds]
        alone = statistics.median(a[0] / b[0] for a, b in zip(rounds, results[way, 1]))
        copy = statistics.median(a[0] / b[0] for a, b in zip(rounds, results["none", threads]))
        replaced = sum(one[2] for one in rounds)
        again = sum(one[3] for one in rounds) / len(rounds)
        mark = " *" if tool.disturbed([one[1] for one in rounds]) else ""
        yield (f"{WAYS[way]:<22} {threads:>7} {statistics.median(ns):>10.2f} {min(ns):>7.2f} {max(ns):>7.2f} "
               f"{alone:>11.2f} {copy:>9.2f} {replaced:>8.0f} {again:>19.3f}{mark}")
    yield ("ns of CPU time a reading and thread, the conversion of a time stamp included. Ratios are medians of "
           "those of each round.")
    if any(tool.disturbed([one[1] for one in rounds]) for rounds in results.values()):
        yield tool.DISTURBED


def report(folder, cpus, rounds, say):
    yield from lines(measure(folder, cpus, rounds, say))
