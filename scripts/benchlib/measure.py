# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""One measurement: a lab, a forwarder, a generator, a sink, and the totals of one window."""

import dataclasses
import itertools
import json
import time

from benchlib.lab import READY_S, Failure, Lab
from benchlib.programs import run_seconds, series_of

WARM_UP_S = 0.5  # the first rounds of a pool touch cold memory; a row that begins later counts
AROUND_S = 1.5  # what a run takes beside warm-up and window: lab, start-up, waiting for lines, end
DISAGREE = 0.02  # totals read at two ends 50 ms apart differ by less than this in a 2 s window
LINE_S = 1  # between two lines of a forwarder
SINK_INTERVAL_MS = 50
ALL_TAKEN = 0.95  # the generator's rate is its mean over warm-up and window, ours the window's


@dataclasses.dataclass
class Result:
    kpps: float
    far_kpps: float | None  # None: nothing arrives anywhere, or it is what kpps says already
    generator_mpps: float | None  # None: it makes its frames itself
    notes: list

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
    raise Failure("flood sink has no line near the ends of the window")


def sink_start(lab, options, dev):
    seconds = str(run_seconds(options))
    argv = [options.flood, "sink", "--dev", dev, "--seconds", seconds]
    sink = lab.start(lab.ends, [*argv, "--interval", str(SINK_INTERVAL_MS)])
    sink.wait_for(lambda: sink.lines, "ready")
    return sink


def gen_argv(options, cores, seconds):
    cpu = options.cpu_forward if cores == "one" else options.cpu_generate
    argv = [options.flood, "gen", "--dev", "g0", "--cpu", str(cpu)]
    return [*argv, "--size", str(options.size), "--seconds", str(seconds)]


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


def far_kpps(sink, begin, end):
    sink.wait_for(lambda: reaches(sink_series(sink), end), "a line after the window")
    series = sink_series(sink)
    return (packets_at(series, end) - packets_at(series, begin)) / (end - begin) / 1e3


def first_frame(sink, forwarder):
    """An attached program forwards when it has started the rest of itself, too."""

    def arrived():
        series = sink_series(sink)
        return series and series[-1][1]

    forwarder.wait_for(arrived, "a frame at the far end")


def measure(program, cell, options):
    with Lab(len(cell.ports), cell.attach == "skb", cell.wait == "busy-poll") as lab:
        sink = sink_start(lab, options, cell.sink_at) if cell.sink_at else None
        forwarder = lab.start(lab.mid, program.argv(cell))
        for port in cell.ports:
            forwarder.wait_for(lambda dev=port: lab.attached(dev), f"attach to {port}")
        gen = None
        if cell.generated:
            gen = lab.start(lab.ends, gen_argv(options, cell.cores, run_seconds(options)))
        far = None
        if program.at_sink:
            first_frame(sink, forwarder)
            (t0, n0), (t1, n1) = window(
                lambda: sink_series(sink), forwarder, options.seconds, SINK_INTERVAL_MS / 1e3
            )
        else:
            (t0, n0), (t1, n1) = window(
                lambda: program.series(forwarder, cell), forwarder, options.seconds, LINE_S
            )
            far = far_kpps(sink, t0, t1) if sink else None
        generator_mpps = None
        if gen:
            gen.stop()
            generator_mpps = gen_mpps(gen)
        program.stop(forwarder)
        notes = sorted(set(program.complaints(forwarder)))
        return Result((n1 - n0) / (t1 - t0) / 1e3, far, generator_mpps, notes)


def measure_generator(options):
    """Into a program that only counts: what the generator can do by itself."""
    with Lab(1) as lab:
        sink = lab.start(lab.mid, [options.flood, "sink", "--dev", "d0"])
        sink.wait_for(lambda: sink.lines, "ready")
        gen = lab.start(lab.ends, gen_argv(options, "two", 1))
        gen.process.wait(1 + READY_S)
        gen.reader.join(1)
        return gen_mpps(gen)
