# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the forwarding database takes a frame, beside the same with other layouts and beside liburcu's
hash table: programs of tests/tools, no traffic."""

import statistics
import subprocess

ROUNDS = 30
MS = 10  # of a measurement, or as long as all stations take once
COUNT_MS = 1000  # a tick: what is counted is what there is in a second

TABLE = "fdb_time"
PROGRAMS = {
    TABLE: "millrace",
    "fdb_time_always": "every frame renews",
    "fdb_time_near": "stamp on lookup line",
    "fdb_time_near_always": "both",
    "fdb_time_urcu": "liburcu's lfht",
}
COUNTED = [name for name in PROGRAMS if name != "fdb_time_urcu"]
SIZES = [16, 4096, 65_536, 1_000_000]
FULLEST = [3686, 58_982, 943_718]  # 90 % of 4,096, 65,536 and 1,048,576 slots
KINDS = {"hit": (1, 2), "miss": (1, 2), "full": (1,)}


class Tool:
    def __init__(self, path):
        self._process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def close(self):
        self._process.stdin.close()
        self._process.wait(30)

    def ask(self, stations, threads, kind, ms):
        """[ns of CPU time a frame and thread, wall by CPU time, stores a million frames to lines that
        lookups read, to others]"""
        self._process.stdin.write(f"{stations} {threads} {kind} {ms}\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline().split()
        if len(answer) != 4:
            raise RuntimeError(f"{self._process.args[0]} ended at {stations} {threads} {kind} {ms}")
        return [float(word) for word in answer]


def cells(programs):
    """(program, stations, kind, threads); threads last, so that the two of a ratio are near in time"""
    for stations in [*SIZES, *FULLEST]:
        for kind, threads in KINDS.items():
            for program in programs:
                if stations in FULLEST and program != TABLE:
                    continue  # their buckets have another size: it would be another load
                if kind == "full" and program == "fdb_time_urcu":
                    continue  # it has no limit
                for count in threads:
                    yield program, stations, kind, count


def measure(folder, programs, rounds, say):
    """{cell: [(ns, wall by CPU) of each round]}; every other round the other way round."""
    tools = {program: Tool(f"{folder}/{program}") for program in programs}
    results, order = {}, list(cells(programs))
    try:
        for number in range(rounds):
            for cell in order if number % 2 == 0 else order[::-1]:
                program, stations, kind, threads = cell
                answer = tools[program].ask(stations, threads, kind, MS)
                results.setdefault(cell, []).append(answer[:2])
            say(f"round {number + 1} of {rounds}")
    finally:
        for tool in tools.values():
            tool.close()
    return results


def count(folder):
    """{(program, stations): (stores a million frames to lines that lookups read, to others)}"""
    results = {}
    for program in COUNTED:
        tool = Tool(f"{folder}/{program}_counted")
        try:
            for stations in SIZES:
                results[program, stations] = tool.ask(stations, 1, "tick", COUNT_MS)[2:]
        finally:
            tool.close()
    return results


def _numbers(rounds):
    ns = [one for one, _ in rounds]
    return f"{statistics.median(ns):>6.1f} {min(ns):>6.1f} {max(ns):>6.1f}"


def _scale(one, two):
    ratios = [2 * a / b for (a, _), (b, _) in zip(one, two)]
    return f"{statistics.median(ratios):>6.2f} {min(ratios):>5.2f} {max(ratios):>5.2f}"


def _disturbed(rounds):
    return sum(wall > 1.25 for _, wall in rounds) * 2 > len(rounds)


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
        yield "* In most rounds its CPU was taken away for more than a fifth of the time."


def count_table(counts):
    yield f"{'stations':>9} {'program':<20} {'lookup lines':>12} {'other lines':>12}"
    for (program, stations), (lookup, other) in sorted(counts.items(), key=lambda item: item[0][1]):
        yield f"{stations:>9} {PROGRAMS[program]:<20} {lookup:>12.1f} {other:>12.1f}"
