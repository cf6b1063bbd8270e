# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What each way to wait costs and gives: a patch between two veths, idle and at rates from a frame a second to as
many as one thread sends (tests/tools/delay.c), on a CPU of its own and on the sender's."""

import os
import statistics
import time

from benchlib.lab import Failure, Lab, cpu_ns

ROUNDS = 5
BUSY_POLL = "busy-poll"
WAITS = {"adaptive": [], "spin": ["--wait=spin"], "poll": ["-p"], BUSY_POLL: ["-B"]}
IDLE_S = {"adaptive": 60}  # the default, which is to take nothing for so long
IDLE_OTHERS_S = 5
WARM_UP_S = 0.5
NOT_EFFECTIVE = "busy-poll not effective"  # what millraced warns of
# {name: (frames a second, seconds, every which frame is timed)}; none: nothing is sent
LOADS = {
    "idle": None,
    "1/s": (1, 10, 1),
    "10 k/s": (10_000, 2, 1),
    "100 k/s": (100_000, 2, 10),
    "all": (0, 2, 100),
}
LONE = ("two", "1/10 s", "adaptive")  # of --all, once
LOADS_ALL = {**LOADS, LONE[1]: (0.1, 1000, 1)}
CORES = {"two": list(LOADS), "one": ["all"]}


def cells(waits):
    return [(cores, load, wait) for cores, loads in CORES.items() for load in loads for wait in waits]


class Bench:
    def __init__(self, millraced, delay):
        self.millraced, self.delay = str(millraced), str(delay)
        cpus = sorted(os.sched_getaffinity(0))
        self.first, self.last = cpus[0], cpus[-1]

    def start(self, lab, wait):
        argv = [self.millraced, "-l", "-i", "d0", "-i", "d1", "-N", "-c", "-Q",
                f"--cpus={self.last}", *WAITS[wait]]
        daemon = lab.start(lab.mid, argv)
        daemon.wait_for(lambda: lab.attached("d0") and lab.attached("d1"), "attached")
        time.sleep(WARM_UP_S)
        return daemon

    def busy_poll_effective(self):
        """By what millraced says of it when frames have come."""
        with Lab((1, 1), busy_poll=True) as lab:
            daemon = self.start(lab, BUSY_POLL)
            self.send(lab, self.first, 1000, 1.5, 1)
            time.sleep(1.5)
            daemon.stop()
            daemon.stderr.seek(0)
            return NOT_EFFECTIVE not in daemon.stderr.read()

    def measure(self, cell):
        """CPU share; and of what was sent: frames a second that came, median, 99th percentile, longest (us)."""
        cores, load, wait = cell
        with Lab((1, 1), busy_poll=wait == BUSY_POLL) as lab:
            daemon = self.start(lab, wait)
            sender = self.first if cores == "two" else self.last
            before, start = cpu_ns(daemon.process.pid), time.monotonic()
            if LOADS_ALL[load]:
                rate, seconds, sample = LOADS_ALL[load]
                numbers = self.send(lab, sender, rate, seconds, sample)
            else:
                time.sleep(IDLE_S.get(wait, IDLE_OTHERS_S))
                seconds, numbers = None, None
            share = (cpu_ns(daemon.process.pid) - before) / 1e9 / (time.monotonic() - start)
            if daemon.stop(patience_s=10) != 0:
                daemon.fail("did not end as it should")
        if numbers is None:
            return (share,)
        sent, awaited, came, *took = numbers
        return (share, sent / seconds * came / awaited, *(ns / 1e3 for ns in took), came / awaited)

    def send(self, lab, cpu, rate, seconds, sample):
        tool = lab.start(lab.ends, [self.delay, "g0", "g1", str(cpu), str(rate), str(seconds), str(sample)])
        tool.process.wait(seconds + 30)
        tool.reader.join(1)
        if tool.process.returncode or not tool.lines:
            tool.fail(f"ended with {tool.process.returncode}")
        numbers = [float(word) for word in tool.lines[-1][1].split()]
        if not numbers[1] or not numbers[2]:
            raise Failure(f"delay: of {numbers[1]:.0f} frames that were awaited {numbers[2]:.0f} came")
        return numbers


def spread(values, form):
    median = format(statistics.median(values), form)
    return median if len(values) == 1 else f"{median} ({format(min(values), form)}-{format(max(values), form)})"


def row(cell, rounds):
    cores, load, wait = cell
    head = f"{cores:<5} {load:<8} {wait:<9} {spread([100 * one[0] for one in rounds], '.2f'):>20}"
    if LOADS_ALL[load] is None:
        return head
    rates, medians, tails, came = ([one[i] for one in rounds] for i in (1, 2, 3, 5))
    return (f"{head} {spread([rate / 1e3 for rate in rates], '.3g'):>20} {spread(medians, '.0f'):>20} "
            f"{spread(tails, '.0f'):>22} {statistics.median(came):>6.2f}")


def report(millraced, delay, rounds, lone, say):
    """Yields the lines of the table. `lone`: with the frames that come after 10 s of silence."""
    bench, results = Bench(millraced, delay), {}
    effective = bench.busy_poll_effective()
    order = cells([wait for wait in WAITS if wait != BUSY_POLL or effective])
    yield (f"{'cores':<5} {'load':<8} {'wait':<9} {'CPU %':>20} {'kframes/s':>20} {'us: median':>20} "
           f"{'us: 99 %':>22} {'came':>6}")
    if lone:
        yield row(LONE, [bench.measure(LONE)])
        say("lone frames")
    for number in range(rounds):
        for cell in order if number % 2 == 0 else order[::-1]:
            results.setdefault(cell, []).append(bench.measure(cell))
        say(f"round {number + 1} of {rounds}")
    yield from (row(cell, results[cell]) for cell in order)
    yield ("CPU: of all threads of millraced, in parts of one core. Medians over the rounds, and in parentheses the "
           "least and the most. A delay begins before the sender's system call.")
    if not effective:
        yield ("busy-poll: not measured, for it is not effective here: this kernel gives a copy mode socket on "
               "a veth no NAPI to poll.")
