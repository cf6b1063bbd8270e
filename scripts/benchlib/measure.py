# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""One measurement: lab, forwarder, generators, sink, who asks, and the totals of one window."""

import contextlib
import dataclasses
import itertools
import json
import os
import pathlib
import sys
import threading
import time

from benchlib.cells import BURN, BUSY, VLAN, WATCH
from benchlib.lab import READY_S, Failure, Lab, cpu_ns
from benchlib.programs import run_seconds, series_of

WARM_UP_S = 0.5  # the first rounds of a pool touch cold memory; a row that begins later counts
AROUND_S = 1.5  # what a run takes beside warm-up and window: lab, start-up, waiting for lines, end
DISAGREE = 0.02  # totals read at two ends 50 ms apart differ by less than this in a 2 s window
CPU_INTERVAL_S = 0.05
LINE_S = 1  # between two lines of a forwarder
MACS = ("02:00:00:00:00:01", "02:00:00:00:00:02")  # what flood gen sends from and to by itself
SINK_INTERVAL_MS = 50
ASK = pathlib.Path(__file__).with_name("ask.py")
ASKED_OF_ALL = ("status", "stats", "metrics")
ASKED = {"bridge": ("fdb count", "fdb")}
ALL_TAKEN = 0.95  # the generator's rate is its mean over warm-up and window, ours the window's


@dataclasses.dataclass
class Result:
    kpps: float
    far_kpps: float | None  # None: nothing arrives anywhere, or it is what kpps says already
    generator_mpps: float | None  # None: it makes its frames itself
    notes: list
    cpu_ns: float | None = None  # CPU time of the workers, a frame
    handed: float | None = None  # which part of the packets another worker sent
    answers_per_s: float | None = None  # of the control socket

    @property
    def disagrees(self):
        return self.far_kpps is not None and (
            abs(self.far_kpps - self.kpps) > DISAGREE * max(self.kpps, self.far_kpps)
        )

    @property
    def took_all(self):
        made = self.generator_mpps
        return made is not None and self.kpps > ALL_TAKEN * made * 1e3


def run_duration_s(options):
    """Of one measurement, about."""
    return WARM_UP_S + options.seconds + AROUND_S


def sink_series(tool):
    rows = [(arrival, json.loads(line)) for arrival, line in list(tool.lines)]
    return series_of([(at, row["seconds"], row["frames"]) for at, row in rows if "frames" in row])


def reaches(series, when):
    return bool(series) and series[-1][0] >= when


def packets_at(series, when):
    """The total at a time between two lines."""
    for (t0, n0), (t1, n1) in itertools.pairwise(series):
        if t0 <= when <= t1:
            return n0 + (n1 - n0) * (when - t0) / (t1 - t0) if t1 > t0 else n1
    raise Failure("nothing was read near the ends of the window")


def sink_start(lab, options, dev):
    seconds = str(run_seconds(options))
    argv = [options.flood, "sink", "--dev", dev, "--seconds", seconds]
    sink = lab.start(lab.ends, [*argv, "--interval", str(SINK_INTERVAL_MS)])
    sink.wait_for(lambda: sink.lines, "ready")
    return sink


def gen_argv(options, cpu, seconds, dev="g0", tag=False):
    argv = [options.flood, "gen", "--dev", dev, "--cpu", str(cpu)]
    argv += ["--smac", MACS[1], "--dmac", MACS[0]] if dev == "g1" else []
    argv += ["--vlan", str(VLAN)] if tag else []
    return [*argv, "--size", str(options.size), "--seconds", str(seconds)]


def gen_argvs(cell, options):
    """Of each generator of a cell."""
    seconds = run_seconds(options)
    return [
        gen_argv(options, cpu, seconds, dev, cell.tags_at(dev))
        for dev in cell.generators_at
        for cpu in options.places[cell.cores].generators
    ]


def gen_mpps(gen):
    if not gen.lines:
        gen.fail("printed no result")
    return json.loads(gen.lines[-1][1])["pps"] / 1e6


def window(series, forwarder, seconds, line_s):
    """The first and the last line of the window: (seconds, packets) each."""
    begin = time.monotonic() + WARM_UP_S
    deadline = begin + seconds + READY_S
    while True:
        rows = [row for row in series() if row[0] >= begin]
        for row in rows:
            # Half a line's time: a late line does not cost another one.
            if row[0] - rows[0][0] >= seconds - line_s / 2:
                return rows[0], row
        if forwarder.process.poll() is not None:
            forwarder.fail(f"ended with {forwarder.process.returncode}")
        if time.monotonic() > deadline:
            forwarder.fail("no statistics on its standard output")
        time.sleep(0.05)


def far_packets(sinks, begin, end):
    """What all of them have counted in the window."""
    packets = 0
    for sink in sinks:
        sink.wait_for(lambda one=sink: reaches(sink_series(one), end), "a line after the window")
        series = sink_series(sink)
        packets += packets_at(series, end) - packets_at(series, begin)
    return packets


def first_frame(sink, forwarder):
    """An attached program forwards when it has started the rest of itself, too."""

    def arrived():
        series = sink_series(sink)
        return series and series[-1][1]

    forwarder.wait_for(arrived, "a frame at the far end")


class CpuClock:
    """CPU time of the worker threads, which are all threads of a millraced but the main one. Looked
    at from a thread of its own while the block lasts."""

    def __init__(self, pid):
        self.pid, self.series = pid, []
        self.done = threading.Event()
        self.thread = threading.Thread(target=self._watch, daemon=True)

    def _watch(self):
        while not self.done.wait(CPU_INTERVAL_S):
            with contextlib.suppress(OSError):  # it ends
                self.series.append((time.monotonic(), cpu_ns(self.pid, but=[str(self.pid)])))

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *exc):
        self.done.set()
        self.thread.join()

    def used_ns(self, begin, end):
        return packets_at(self.series, end) - packets_at(self.series, begin)


class Asker:
    """Who asks on the control socket, and with what success."""

    def __init__(self, lab, program, cell, options, forwarder):
        # The daemon's main thread, which answers, goes with who asks: the workers have their CPU.
        os.sched_setaffinity(forwarder.process.pid, {options.cpu_ask})
        argv = {
            WATCH: [program.control_client, "-s", options.control, "-j", "stats", "-i", "1"],
            BUSY: [sys.executable, str(ASK), options.control, *ASKED.get(cell.mode, ASKED_OF_ALL)],
            BURN: [sys.executable, "-c", "while True: pass"],
        }.get(cell.asking)
        self.who = cell.asking
        self.start = time.monotonic()
        self.tool = None
        if argv:
            self.tool = lab.start(lab.mid, ["taskset", "-c", str(options.cpu_ask), *argv])

    def answers_per_s(self):
        """Ends it; None if nobody asked."""
        if not self.tool:
            return None
        if self.tool.process.poll() is not None:
            self.tool.fail(f"ended with {self.tool.process.returncode}")
        self.tool.stop()
        self.tool.reader.join(1)
        if self.who == BURN:
            return None
        lines = [line for _, line in self.tool.lines]
        answers = json.loads(lines[-1])["answers"] if lines and self.who == BUSY else len(lines)
        if not answers:
            self.tool.fail("had no answer")
        return answers / (time.monotonic() - self.start)


def measure(program, cell, options):
    gro = cell.attach == "skb" or not program.attaches
    with Lab(cell.port_widths, gro, cell.wait == "busy-poll") as lab:
        sinks = [sink_start(lab, options, dev) for dev in cell.sinks_at]
        forwarder = lab.start(lab.mid, program.argv(cell))
        for port in cell.ports:
            forwarder.wait_for(
                lambda dev=port: program.has_taken(lab, dev), f"attach to {port}"
            )
        gens = [lab.start(lab.ends, argv) for argv in gen_argvs(cell, options)]
        asker = Asker(lab, program, cell, options, forwarder) if cell.asking else None
        far = None
        if program.at_sink:
            for sink in sinks:
                first_frame(sink, forwarder)
            (t0, _), (t1, _) = window(
                lambda: sink_series(sinks[0]), forwarder, options.seconds, SINK_INTERVAL_MS / 1e3
            )
            n0, n1 = 0, far_packets(sinks, t0, t1)
        else:
            with CpuClock(forwarder.process.pid) as clock:
                (t0, n0), (t1, n1) = window(
                    lambda: program.series(forwarder, cell), forwarder, options.seconds, LINE_S
                )
                time.sleep(2 * CPU_INTERVAL_S)  # it has looked past the end of the window, too
            far = far_packets(sinks, t0, t1) / (t1 - t0) / 1e3 if sinks else None
        answers = asker.answers_per_s() if asker else None
        for gen in gens:
            gen.stop()
        generator_mpps = sum(gen_mpps(gen) for gen in gens) if gens else None
        program.stop(forwarder)
        notes = sorted(set(program.complaints(forwarder)))
        result = Result((n1 - n0) / (t1 - t0) / 1e3, far, generator_mpps, notes)
        result.answers_per_s = answers
        if program.has_workers and n1 > n0:
            result.cpu_ns = clock.used_ns(t0, t1) / (n1 - n0)
        if cell.hands_over:
            result.handed = program.handed_share(forwarder)
            notes += [] if result.handed else ["no frame was handed over"]
        return result


def measure_generator(options):
    """Into a program that only counts: what the generator can do by itself."""
    with Lab() as lab:
        sink = lab.start(lab.mid, [options.flood, "sink", "--dev", "d0"])
        sink.wait_for(lambda: sink.lines, "ready")
        gen = lab.start(lab.ends, gen_argv(options, options.places["two"].generators[0], 1))
        gen.process.wait(1 + READY_S)
        gen.reader.join(1)
        return gen_mpps(gen)
