# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What is told of the results: where they come from, a table, a CSV file."""

import csv
import datetime
import os
import pathlib
import platform
import shlex
import statistics

from benchlib.cells import COLUMNS
from benchlib.lab import run
from benchlib.measure import gen_argv, measure_generator, run_duration_s
from benchlib.programs import run_seconds

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


def provenance(options, programs, cells):
    runs = options.rounds * sum(p.suits(cell) for p in programs for cell in cells)
    yield f"duration   {duration(runs, options)}: {runs} runs of {run_duration_s(options):.1f} s"
    yield f"date       {datetime.datetime.now().astimezone().isoformat(timespec='seconds')}"
    yield f"tree       {tree()}"
    yield f"kernel     {kernel()}"
    yield f"CPU        {cpu_model()}, {os.cpu_count()} online"
    yield (
        f"cores      forwarder on {options.cpu_forward}; generator on {options.cpu_generate} "
        f"(two) or {options.cpu_forward} (one)"
    )
    yield f"load       {os.getloadavg()[0]:.2f} before the first round: others here make noise"
    yield (
        f"method     {options.rounds} interleaved rounds, window {options.seconds} s, "
        f"frames of {options.size} bytes without FCS, one queue, copy mode, veth"
    )
    if "busy-poll" in options.wait:
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
        shown = set()  # one command line a mode
        for cell in cells:
            if program.suits(cell) and cell.mode not in shown:
                shown.add(cell.mode)
                yield f"           {shlex.join(program.argv(cell))}"


def ratios(ours, theirs):
    """One a round where both were measured."""
    return [a.kpps / b.kpps for a, b in zip(ours, theirs) if a and b and b.kpps]


HEADS = (*COLUMNS, "program", "kpps", "min", "max", "spread", "far end", "gen M/s", "ratio", "")
LEFT_ALIGNED = len(COLUMNS) + 1


def numbers(name, rounds, ours):
    """The texts of a row behind the program's name."""
    good = [r for r in rounds if r]
    if not good:
        return ["failed"]
    kpps = [r.kpps for r in good]
    middle = statistics.median(kpps)
    spread = (max(kpps) - min(kpps)) / middle if middle else 0
    far = [r.far_kpps for r in good if r.far_kpps is not None]
    made = [r.generator_mpps for r in good if r.generator_mpps is not None]
    marks = "!" if any(r.disagrees for r in good) else ""
    took = "*" if sum(r.took_all for r in good) * 2 > len(good) else ""
    shared = ratios(ours, rounds) if name != "millraced" else []
    remarks = f"{min(shared):.2f} to {max(shared):.2f}" if len(shared) > 1 else ""
    if len(good) < len(rounds):
        remarks += f"{'; ' if remarks else ''}{len(rounds) - len(good)} failed"
    return [
        f"{middle:.0f}",
        f"{min(kpps):.0f}",
        f"{max(kpps):.0f}",
        f"{spread:.0%}",
        f"{statistics.median(far):.0f}{marks}" if far else "-",
        f"{statistics.median(made):.1f}{took}" if made else "-",
        f"{statistics.median(shared):.2f}" if shared else "",
        remarks,
    ]


def table(cells, programs, results):
    """results: {(cell, program name): [Result or None, one a round]}"""
    rows = [list(HEADS)]
    for cell in cells:
        ours = results.get((cell, "millraced"), [])
        for program in programs:
            rounds = results.get((cell, program.name))
            if rounds:
                rows.append([*cell.values, program.name, *numbers(program.name, rounds, ours)])
    widths = [max(len(row[i]) for row in rows if i < len(row)) for i in range(len(HEADS))]
    for row in rows:
        texts = [
            text.ljust(width) if i < LEFT_ALIGNED or i == len(HEADS) - 1 else text.rjust(width)
            for i, (text, width) in enumerate(zip(row, widths))
        ]
        yield "  ".join(texts).rstrip()
    everything = [r for rounds in results.values() for r in rounds if r]
    if any(row[LEFT_ALIGNED + 6 :][:1] not in ([], [""]) for row in rows[1:]):
        yield "ratio: median over the rounds of millraced's rate by theirs, and its range"
    if any(r.disagrees for r in everything):
        yield "! In a round its own totals and the sink's differ by more than 2 %."
    if any(r.took_all for r in everything):
        yield "* It took all that was made: the limit is the generator's CPU, which also runs the"
        yield "  XDP program of the forwarder and the copy into its socket."


class CsvFile:
    """One row a round, cell and program, written when the cell's programs have all had their turn,
    so that a run that is broken off leaves what it has measured."""

    RESULTS = ("kpps", "far_kpps", "generator_mpps", "ratio", "problem")
    ORIGIN = ("tree", "kernel", "cpu", "version", "compiler", "path", "command", "generator")

    def __init__(self, path, options):
        self.options = options
        self.origin = [tree(), kernel(), cpu_model()]
        self.file = open(path, "w", newline="", encoding="utf-8")
        self.out = csv.writer(self.file)
        heads = ("date", "round", *COLUMNS, "size", "program", *self.RESULTS, *self.ORIGIN)
        self.out.writerow(heads)
        self.file.flush()

    def add(self, number, cell, outcomes):
        """outcomes: [(program, Result or None, what is wrong)] of one round"""
        now = datetime.datetime.now().astimezone().isoformat(timespec="seconds")
        ours = [result for program, result, _ in outcomes if program.name == "millraced"]
        generator = ""
        if cell.generated:
            generator = shlex.join(gen_argv(self.options, cell.cores, run_seconds(self.options)))
        for program, result, problem in outcomes:
            values = [None] * 3
            if result:
                values = [result.kpps, result.far_kpps, result.generator_mpps]
            shared = ratios(ours, [result]) if program.name != "millraced" else []
            texts = ["" if v is None else f"{v:.3f}" for v in (values + (shared or [None]))]
            command = shlex.join(program.argv(cell))
            origin = [*self.origin, program.version, program.compiler, program.path]
            row = [now, number, *cell.values, self.options.size, program.name, *texts, problem]
            self.out.writerow([*row, *origin, command, generator])
        self.file.flush()

    def close(self):
        self.file.close()
