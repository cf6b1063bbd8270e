# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Guest instructions per forwarded frame: copy against zero-copy, and xdpsock where XDPSOCK names it.

Speeds under emulation say nothing, instructions do. The machine counts them (check_clocks() proves
it with a loop of known length), and the scheduler's accounts tell whose they are:

    program   all threads of the forwarder, with their system calls: in copy mode sending is there
    driver    the NAPI threads of the cards under test: receiving, XDP and its copy, and what
              zero-copy sends

Both have the hard interrupts in them that hit them, those of the far ends too; the last column is how
many there were. An emulated card is quicker with them than one of metal: it has sent a frame before
the instruction after the doorbell. Not in it: the sender, the far ends' NAPI, and all that is no
instruction: cache misses, what a card does, how much longer a locked instruction takes.

Frames come in bursts of 64, a NAPI's budget, each of which is over before the next one; so it is the
cost of a frame in a full batch, in poll (-p), where an idle program does nothing. xdpsock asks for
POLLOUT in l2fwd and so never sleeps: it is stopped between the bursts, and its rounds until the card
has sent are in its figure.

No figure is asserted, the accounts are: every frame is forwarded once, unchanged, and counted.
"""

import os
import pathlib
import re
import signal
import subprocess
import time

import frames
import instructions
import memory
from daemon import program, total
from lab import SLOWNESS, wait_until

NICS = ("igb", "virtio")
SECONDS = 420
LONG = True
MACHINE = "counted"
SIZES = (60, 1514)
BURST, BURSTS = 64, 32
COUNT = BURST * BURSTS
# Between two looks at whether a burst is over; as many instructions in millions, if they are there.
STEP_SECONDS = 0.002
FLAGS = {"rxdrop": ["-r"], "l2fwd": ["-l"], "patch": ["-l"], "copy": ["-c"], "zero-copy": ["-z"]}
# Between two lines of counts, which would be counted too; the last one comes at the end.
LINES = "--interval=1000"
XDPSOCK_LINES = "5"  # it ends only when the interval does, so this is no better hidden
XDPSOCK = pathlib.Path("/millrace/build/xdpsock")
HEAD = f"{'':10}{'mode':8}{'copy':10}{'size':>5}{'program':>9}{'driver':>9}{'sum':>9}{'interrupts':>12}"


class Counting:
    def __init__(self, bench):
        self.bench = bench
        self.near, self.far = bench.tap("g0"), bench.tap("s0")
        self.napi = instructions.Napi(bench.dut, "d0", "d1")

    def _read(self, pid):
        return instructions.of_process(pid), self.napi.instructions(), instructions.interrupts()

    def cost(self, pid, sent, receiver=None, wanted=(), sleeps=True):
        """[program, driver, interrupts] a frame. What the receiver gets must be what is wanted.

        A program that never sleeps is stopped (SIGSTOP) before and after, and while nothing is sent.
        """
        now, got = memory.Memory(pid), []
        before, due = self._read(pid), now.produced("rx")
        with instructions.Undisturbed():
            for start in range(0, COUNT, BURST):
                for frame in sent[start:start + BURST]:
                    assert self.near.send(frame), "the far card takes no frame"
                due += BURST
                if sleeps:
                    wait_until(lambda: now.produced("rx") == due, 2 * SLOWNESS, "a burst came in",
                               step=STEP_SECONDS)
                else:
                    os.kill(pid, signal.SIGCONT)
                if receiver:
                    got += receiver.frames(BURST, 5.0)
                if not sleeps:
                    os.kill(pid, signal.SIGSTOP)
        time.sleep(10 * STEP_SECONDS)
        after = self._read(pid)
        assert got == list(wanted), f"{len(got)} frames of {len(wanted)}, or not the same ones"
        return [(new - old) / COUNT for new, old in zip(after, before)]

    def tell(self, who, mode, copy, size, cost):
        driven, driver, interrupts = cost
        self.bench.say(f"{who:10}{mode:8}{copy:10}{size:5}{driven:9.0f}{driver:9.0f}"
                       f"{driven + driver:9.0f}{interrupts:12.2f}")

    def traffic(self, mode, size):
        """(frames to send, who receives them, as what)."""
        sent = [frames.numbered(n, size, dst=self.bench.macs["d0"]) for n in range(COUNT)]
        if mode == "rxdrop":
            return sent, None, ()
        if mode == "patch":
            return sent, self.far, sent
        return sent, self.near, [frames.swapped(frame) for frame in sent]


def count_millraced(counting, mode, copy):
    ports = ["-i", "d0"] + (["-i", "d1"] if mode == "patch" else [])
    daemon = counting.bench.millraced(*FLAGS[mode], *FLAGS[copy], "-p", "-N", LINES, *ports)
    assert {one["copy"] for one in daemon.bound.values()} == {copy}, daemon.stderr
    for size in SIZES:
        counting.tell("millraced", mode, copy, size,
                      counting.cost(daemon.pid, *counting.traffic(mode, size)))
    final = daemon.stop()
    assert program(final, "d0")["seen"] == total(final, "rx_packets", "d0") == COUNT * len(SIZES)
    assert total(final, "rx_bytes", "d0") == COUNT * sum(SIZES), final
    out = {"rxdrop": 0, "l2fwd": COUNT * len(SIZES), "patch": COUNT * len(SIZES)}[mode]
    assert total(final, "tx_packets", "d1" if mode == "patch" else "d0") == out, final


class Xdpsock:
    """A run of it on d0, queue 0."""

    def __init__(self, bench, mode, copy):
        self.sleeps = mode == "rxdrop"
        self._process = subprocess.Popen(
            bench.dut.command(XDPSOCK, *FLAGS[mode], *FLAGS[copy], "-i", "d0", "-q", "0", "-N", "-p",
                              "-n", XDPSOCK_LINES),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.pid = self._process.pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._process.poll() is None:
            self._process.kill()
            self._process.communicate()

    @property
    def running(self):
        return self._process.poll() is None

    def pause(self):
        if not self.sleeps:
            self._process.send_signal(signal.SIGSTOP)

    def received(self, wire, frame):
        """End it; what it says to have received. In poll it sees the end with the next frame only."""
        self._process.send_signal(signal.SIGINT)
        self._process.send_signal(signal.SIGCONT)
        time.sleep(0.1)
        wire.send(frame)
        said, _ = self._process.communicate(timeout=10 * SLOWNESS)
        found = re.findall(r"^rx\s+[\d,]+\s+([\d,]+)", said, re.M)
        assert found, f"xdpsock: {said}"
        return int(found[-1].replace(",", ""))


def count_xdpsock(counting, mode, copy):
    bench = counting.bench

    def attached():
        return "xdp" in bench.dut.link("d0")

    with Xdpsock(bench, mode, copy) as run:
        wait_until(lambda: attached() or not run.running, 10 * SLOWNESS, "xdpsock's program")
        time.sleep(1)
        bench.wait_links()
        run.pause()
        for size in SIZES:
            counting.tell("xdpsock", mode, copy, size, counting.cost(
                run.pid, *counting.traffic(mode, size), sleeps=run.sleeps))
        received = run.received(counting.near, frames.numbered(0, dst=bench.macs["d0"]))
    # The frame that ended it is among them or not.
    assert received - COUNT * len(SIZES) in (0, 1), f"xdpsock received {received}"
    wait_until(lambda: not attached(), 10 * SLOWNESS, "xdpsock's program is gone")
    counting.near.drain()


def run(bench):
    bench.say("a loop of known length: %.4f of it by the clock, %.4f by the scheduler's account"
              % instructions.check_clocks())
    counting = Counting(bench)
    bench.say("guest instructions a frame, bursts of 64, one CPU, poll")
    bench.say(HEAD)
    ways = ["copy", "zero-copy"] if bench.zero_copy_ports else ["copy"]
    for mode in ("rxdrop", "l2fwd", "patch"):
        for copy in ways:
            count_millraced(counting, mode, copy)
    if not XDPSOCK.exists():
        bench.say("xdpsock is not there: XDPSOCK names it")
        return
    for mode in ("rxdrop", "l2fwd"):
        for copy in ways:
            count_xdpsock(counting, mode, copy)
