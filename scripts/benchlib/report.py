# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What is told of the results: where they come from, a table, a CSV file."""

import csv
import datetime
import os
import pathlib
import platform
import shlex
import statistics

from benchlib.cells import ALL_COLUMNS, COLUMNS
from benchlib.lab import run
from benchlib.measure import gen_argvs, measure_generator, run_duration_s

ROOT = pathlib.Path(__file__).resolve().parents[2]


def cpu_model():
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
        for line in file:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.machine()


def kernel():
    return f"{platform.release()} {platform.machine()}"


def tree():
    told = run("git", "-C", str(ROOT), "describe", "--always", "--dirty", check=False).strip()
    return told or "no commit"


def duration(runs, options):
    minutes = runs * run_duration_s(options) / 60
    told = f"{minutes:.0f} minutes" if minutes < 90 else f"{minutes / 60:.1f} hours"
    return f"about {told if minutes >= 1.5 else 'a minute'}"


def what_cores_mean(options, cells):
    """What the cells' places are on this machine, and what cannot be seen on it."""
    shared = False
    for cores in dict.fromkeys(cell.cores for cell in cells):
        place = options.places[cores]
        both = set(place.generators) & set(place.pollers)
        shared = shared or (both and cores != "one")
        told = "".join(f", both on {cpu}" for cpu in sorted(both))
        yield f"{cores}: {place}{told}"
    if shared:
        yield "generator and workers share CPUs: a worker on a second CPU takes from the generator"
        yield "there what it gives, and cannot show how much faster two CPUs of their own would be"
    if any(cell.asking for cell in cells):
        yield f"who asks and the daemon's main thread, which answers: on {options.cpu_ask}"
        if options.cpu_ask in options.places["two"].generators:
            yield "there the generator runs, too, and what they take from it lowers the rate;"
            yield "a loop in their place shows how much of that is not asking. What the workers"
            yield "spend is CPU ns"


def host():
    yield f"date       {datetime.datetime.now().astimezone().isoformat(timespec='seconds')}"
    yield f"tree       {tree()}"
    yield f"kernel     {kernel()}"
    yield f"CPU        {cpu_model()}, {os.cpu_count()} online"


def provenance(options, programs, cells):
    runs = options.rounds * sum(p.suits(cell) for p in programs for cell in cells)
    yield f"duration   {duration(runs, options)}: {runs} runs of {run_duration_s(options):.1f} s"
    yield from host()
    for i, line in enumerate(what_cores_mean(options, cells)):
        yield f"{'' if i else 'cores':<10} {line}"
    yield f"load       {os.getloadavg()[0]:.2f} before the first round: others here make noise"
    yield (
        f"method     {options.rounds} interleaved rounds, window {options.seconds} s, "
        f"frames of {options.size} bytes without FCS, copy mode, veth"
    )
    if options.group in ("modes", "bridge", "xdpsock-table"):
        yield "           one queue"
    if options.group == "bridge":
        yield "           a generator and a sink at either end, each sending to the other's address"
    if any(cell.wait == "busy-poll" for cell in cells):
        yield "           busy-poll: napi_defer_hard_irqs 2, gro_flush_timeout 200000 ns"
    alone = measure_generator(options)
    yield f"generator  {alone:.1f} M frames/s alone (flood gen into flood sink)"
    for program in programs:
        compiler = f"; {program.compiler}" if program.compiler else ""
        yield f"{program.name:<10} {program.version}{compiler}"
        if not all(program.suits(cell) for cell in cells):
            yield f"           only {program.limits}: left out of the other cells"
        if program.at_sink:
            yield "           counted by the sink at the far end"
        shown = set()  # one command line a mode and shape
        for cell in cells:
            shape = (cell.mode, cell.widths, cell.cores if options.group != "modes" else "")
            if program.suits(cell) and shape not in shown:
                shown.add(shape)
                yield f"           {shlex.join(program.argv(cell))}"


def ratios(ours, theirs, field="kpps"):
    """Of this field of the results, one a round where both were measured."""
    pairs = [(getattr(a, field), getattr(b, field)) for a, b in zip(ours, theirs) if a and b]
    return [a / b for a, b in pairs if a is not None and b]


HEADS = ["program", "kpps", "min", "max", "spread", "far end", "gen M/s", "ratio"]
CPU_HEADS = ["CPU ns", "CPU ratio"]


def median_of(results, field, form):
    values = [getattr(r, field) for r in results if getattr(r, field) is not None]
    return form.format(statistics.median(values)) if values else ""


def ratio_text(shared):
    return f"{statistics.median(shared):.2f}" if shared else ""


def numbers(rounds, shared):
    """The texts of a row behind the program's name. shared: the ratios of its rounds."""
    good = [r for r in rounds if r]
    if not good:
        return ["failed"]
    kpps = [r.kpps for r in good]
    middle = statistics.median(kpps)
    spread = (max(kpps) - min(kpps)) / middle if middle else 0
    marks = "!" if any(r.disagrees for r in good) else ""
    took = "*" if sum(r.took_all for r in good) * 2 > len(good) else ""
    return [
        f"{middle:.0f}",
        f"{min(kpps):.0f}",
        f"{max(kpps):.0f}",
        f"{spread:.0%}",
        median_of(good, "far_kpps", "{:.0f}" + marks) or "-",
        median_of(good, "generator_mpps", "{:.1f}" + took) or "-",
        ratio_text(shared),
    ]


def span(shared):
    return f"{min(shared):.2f} to {max(shared):.2f}" if len(shared) > 1 else ""


def remarks(rounds, spans):
    good = [r for r in rounds if r]
    told = [
        spans,
        median_of(good, "handed", "{:.0%} handed over"),
        median_of(good, "answers_per_s", "{:.0f} answers/s"),
        f"{len(rounds) - len(good)} failed" if good and len(good) < len(rounds) else "",
    ]
    return "; ".join(filter(None, told))


def row_of(cell, name, results):
    """Of a cell that is held against another, or that others are held against."""
    rounds = results[cell, name]
    base = results.get((cell.base, name), []) if cell.base else []
    if cell.base and not base:  # it cannot do what the base does
        return row_beside_peers(cell, name, results, 2)
    shared, cpu = ratios(rounds, base), ratios(rounds, base, "cpu_ns")
    told = numbers(rounds, shared)
    if len(told) == 1:
        return told
    if not cell.base:
        told[-1] = "base"
    told += [median_of([r for r in rounds if r], "cpu_ns", "{:.0f}") or "-", ratio_text(cpu)]
    spans = f"{span(shared)}, CPU {span(cpu)}" if len(shared) > 1 and len(cpu) > 1 else ""
    return [*told, remarks(rounds, spans)]


def row_beside_peers(cell, name, results, more=0):
    """`more`: columns that have nothing to say of a peer."""
    rounds = results[cell, name]
    shared = ratios(results.get((cell, "millraced"), []), rounds) if name != "millraced" else []
    told = numbers(rounds, shared)
    told += ["-"] * more
    return [*told, remarks(rounds, span(shared))] if len(told) > 1 + more else told


def aligned(heads, rows, left_aligned):
    """The first columns to the left, and the last, which is text, too."""
    lines = [heads, *rows]
    widths = [max(len(row[i]) for row in lines if i < len(row)) for i in range(len(heads))]
    for row in lines:
        texts = [
            text.ljust(width) if i < left_aligned or i == len(heads) - 1 else text.rjust(width)
            for i, (text, width) in enumerate(zip(row, widths))
        ]
        yield "  ".join(texts).rstrip()


def table(cells, programs, results, columns=COLUMNS):
    """results: {(cell, program name): [Result or None, one a round]}"""
    based = any(cell.base for cell in cells)
    heads = [*columns, *HEADS, *(CPU_HEADS if based else []), ""]
    row = row_of if based else row_beside_peers
    rows = [
        [*cell.values(columns), program.name, *row(cell, program.name, results)]
        for cell in cells
        for program in programs
        if results.get((cell, program.name))
    ]
    yield from aligned(heads, rows, len(columns) + 1)
    everything = [r for rounds in results.values() for r in rounds if r]
    ratio_at = len(columns) + len(HEADS) - 1
    if based:
        yield "ratio: median over the rounds, to the base above, and its range; CPU ratio likewise"
        if any((c.base, p.name) not in results for c in cells if c.base for p in programs):
            yield "  (of a program that has no base: of millraced's rate by theirs in the same cell)"
        yield "CPU ns: CPU time of all worker threads, a frame. It does not depend on how much of"
        yield "  a CPU the scheduler gives to the generator; but who spins spends it idle, too."
    elif any(row[ratio_at : ratio_at + 1] not in ([], [""]) for row in rows):
        yield "ratio: median over the rounds of millraced's rate by theirs, and its range"
    if any(r.disagrees for r in everything):
        yield "! In a round its own totals and the sink's differ by more than 2 %."
    if any(r.took_all for r in everything):
        yield "* It took all that was made: the limit is the generator's CPU, which also runs the"
        yield "  XDP program of the forwarder and the copy into its socket."


class CsvFile:
    """One row a round, cell and program, written when the cell's programs have all had their turn,
    so that a run that is broken off leaves what it has measured."""

    MORE = ("cpu_ns", "handed", "answers_per_s")
    # ratio is millraced's rate by theirs in the same cell, also where cells have a base.
    RESULTS = ("kpps", "far_kpps", "generator_mpps", *MORE, "ratio", "problem")
    ORIGIN = ("tree", "kernel", "cpu", "version", "compiler", "path", "command", "generator")

    def __init__(self, path, options):
        self.options = options
        self.origin = [tree(), kernel(), cpu_model()]
        self.file = open(path, "w", newline="", encoding="utf-8")
        self.out = csv.writer(self.file)
        heads = ("date", "round", *ALL_COLUMNS, "size", "program", *self.RESULTS, *self.ORIGIN)
        self.out.writerow(heads)
        self.file.flush()

    def add(self, number, cell, outcomes):
        """outcomes: [(program, Result or None, what is wrong)] of one round"""
        now = datetime.datetime.now().astimezone().isoformat(timespec="seconds")
        ours = [result for program, result, _ in outcomes if program.name == "millraced"]
        generator = ""
        if cell.generated:
            generator = "; ".join(map(shlex.join, gen_argvs(cell, self.options)))
        for program, result, problem in outcomes:
            values = [getattr(result, field, None) for field in self.RESULTS[:-2]]
            shared = ratios(ours, [result]) if program.name != "millraced" else []
            texts = ["" if v is None else f"{v:.3f}" for v in (values + (shared or [None]))]
            command = shlex.join(program.argv(cell))
            origin = [*self.origin, program.version, program.compiler, program.path]
            row = [now, number, *cell.values(ALL_COLUMNS), self.options.size, program.name]
            self.out.writerow([*row, *texts, problem, *origin, command, generator])
        self.file.flush()

    def close(self):
        self.file.close()
