# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the forwarding database takes a frame, beside the same with other layouts and beside liburcu's
hash table: programs of tests/tools, no traffic."""

import statistics

from benchlib import tool

ROUNDS = 30
MS = 10  # of a measurement, or as long as all stations take once
COUNT_MS = 1000  # a tick: what is counted is what there is in a second

PROGRAM = "fdb_time"
PROGRAMS = {
    PROGRAM: "millrace",
    "fdb_time_always": "every frame renews",
    "fdb_time_near": "stamp on lookup line",
    "fdb_time_near_always": "both",
    "fdb_time_urcu": "liburcu's lfht",
}
COUNTED = [name for name in PROGRAMS if name != "fdb_time_urcu"]
SIZES = [16, 4096, 65_536, 1_000_000]
FULLEST = [3686, 58_982, 943_718]  # 90 % of 4,096, 65,536 and 1,048,576 slots
KINDS = {"hit": (1, 2), "miss": (1, 2), "full": (1,)}


def cells(programs):
    """(program, stations, kind, threads); threads last, so that the two of a ratio are near in time"""
    for stations in [*SIZES, *FULLEST]:
        for kind, threads in KINDS.items():
            for program in programs:
                if stations in FULLEST and program != PROGRAM:
                    continue  # their buckets have another size: it would be another load
                if kind == "full" and program == "fdb_time_urcu":
                    continue  # it has no limit
                for count in threads:
                    yield program, stations, kind, count


def measure(folder, programs, rounds, say):
    """{cell: [(ns of CPU time a frame and thread, wall by CPU time) of each round]}"""
    tools = {program: tool.Tool(folder / program) for program in programs}

    def ask(cell):
        program, stations, kind, threads = cell
        return tools[program].ask(stations, threads, kind, MS)[:2]

    try:
        return tool.rounds_of(list(cells(programs)), rounds, ask, say)
    finally:
        for one in tools.values():
            one.close()


def count(folder):
    """{(program, stations): (stores a million frames to lines that lookups read, to others)}"""
    results = {}
    for program in COUNTED:
        one = tool.Tool(folder / f"{program}_counted")
        try:
            for stations in SIZES:
                results[program, stations] = one.ask(stations, 1, "tick", COUNT_MS)[2:]
        finally:
            one.close()
    return results


def _numbers(rounds):
    ns = [one for one, _ in rounds]
    return f"{statistics.median(ns):>6.1f} {min(ns):>6.1f} {max(ns):>6.1f}"


def _scale(one, two):
    ratios = [2 * a / b for (a, _), (b, _) in zip(one, two)]
    return f"{statistics.median(ratios):>6.2f} {min(ratios):>5.2f} {max(ratios):>5.2f}"


def _disturbed(rounds):
    return tool.disturbed([wall for _, wall in rounds])


def time_table(results):
    """Lines. Of each size and kind each program's ns by one thread and by two, and what two do together
    of what one does."""
    yield (f"{'':<30} {'':<20} {'1 thread, ns':^20} {'2 threads, ns each':^20} "
           f"{'2 threads : 1':^18}")
    heads = f"{'median':>6} {'min':>6} {'max':>6} "
    yield f"{'stations':>9} {'kind':<20} {'program':<20} {heads * 2}{'median':>6} {'min':>5} {'max':>5}"
    for program, stations, kind, threads in results:
        if threads != 1:
            continue
        one = results[program, stations, kind, 1]
        two = results.get((program, stations, kind, 2))
        told = f"{kind}, 90 % load" if stations in FULLEST else kind
        mark = " *" if _disturbed(one) or (two and _disturbed(two)) else ""
        rest = f" {_numbers(two)} {_scale(one, two)}" if two else ""
        yield f"{stations:>9} {told:<20} {PROGRAMS[program]:<20} {_numbers(one)}{rest}{mark}"
    if any(_disturbed(rounds) for rounds in results.values()):
        yield tool.DISTURBED


def count_table(counts):
    yield f"{'stations':>9} {'program':<20} {'lookup lines':>12} {'other lines':>12}"
    for (program, stations), (lookup, other) in sorted(counts.items(), key=lambda item: item[0][1]):
        yield f"{stations:>9} {PROGRAMS[program]:<20} {lookup:>12.1f} {other:>12.1f}"


def report(folder, programs, rounds, say):
    yield from time_table(measure(folder, programs, rounds, say))
    yield ""
    yield "Stores a million frames in a second's steady traffic, counted by instrumented builds: this"
    yield "is not read from the hardware."
    yield from count_table(count(folder))
