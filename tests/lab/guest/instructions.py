# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Guest instructions, read from the clocks of a machine that is "counted" (scripts/lablib/tables.py).

There a nanosecond is an instruction: on the monotonic clock as long as the CPU does not sleep, and in
the scheduler's account of a thread always. A card's NAPI runs in a thread of its own here, so that
what it does is in its account, and not in that of whoever it interrupts.
"""

import ctypes
import mmap
import os
import pathlib
import sys
import time

# The loop's two instructions, `dec %rdi` and `jnz`, as a function of how often.
LOOP = bytes.fromhex("48ffcf" "75fb" "c3")
PASSES = 20_000_000
# Timer ticks fall into the loop as well, about 10,000 instructions in 4,000,000, and the reading itself.
TOLERANCE = 0.03
SET_THREADED = "import sys; open(f'/sys/class/net/{sys.argv[1]}/threaded', 'w').write('1')"


class Undisturbed:
    """Within the block this thread runs whenever it does not sleep, but for hard interrupts."""

    def __enter__(self):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))

    def __exit__(self, *_):
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def of_task(path):
    """Instructions that a thread has executed, its system calls among them."""
    return int((path / "schedstat").read_text().split()[0])


def of_process(pid):
    return sum(map(of_task, pathlib.Path(f"/proc/{pid}/task").iterdir()))


def _own():
    time.sleep(0.001)  # an account is brought up to date when its thread leaves the CPU
    return of_task(pathlib.Path("/proc/thread-self"))


def measured_loop():
    """(by the clock, by the scheduler's account, in truth): instructions of a loop that is known."""
    rights = mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC
    with mmap.mmap(-1, mmap.PAGESIZE, prot=rights) as code:
        code.write(LOOP)
        place = ctypes.c_char.from_buffer(code)
        loop = ctypes.CFUNCTYPE(None, ctypes.c_uint64)(ctypes.addressof(place))
        with Undisturbed():
            task = _own()
            clock = time.monotonic_ns()
            loop(PASSES)
            clock = time.monotonic_ns() - clock
            task = _own() - task
        del loop, place
    return clock, task, 2 * PASSES


def check_clocks():
    """What the two clocks said of a known loop, as ratios; an error when they count something else."""
    clock, task, truth = measured_loop()
    ratios = clock / truth, task / truth
    assert all(abs(ratio - 1) < TOLERANCE for ratio in ratios), (
        f"{truth} instructions are {clock} by the clock, {task} by the scheduler's account")
    return ratios


def interrupts():
    """How many came from devices since boot."""
    rows = pathlib.Path("/proc/interrupts").read_text().splitlines()[1:]
    return sum(int(row.split()[1]) for row in rows if row.split(":")[0].strip().isdigit())


class Napi:
    """The NAPI threads of some cards of a namespace; from now on each has its own."""

    def __init__(self, namespace, *ports):
        for port in ports:
            namespace.run(sys.executable, "-ISc", SET_THREADED, port)
        self._ports = ports

    def instructions(self):
        found = [task.parent for task in pathlib.Path("/proc").glob("[0-9]*/comm")
                 if self._is_ours(task)]
        assert found, f"no NAPI thread of {' '.join(self._ports)}"
        return sum(map(of_task, found))

    def _is_ours(self, path):
        try:
            name = path.read_text()
        except OSError:  # it has ended meanwhile
            return False
        return any(name.startswith(f"napi/{port}-") for port in self._ports)
