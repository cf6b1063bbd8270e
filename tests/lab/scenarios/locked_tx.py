# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""One queue for two CPUs, which the stack sends on too: both ways nothing is lost or doubled."""

import os

import frames
from daemon import total
from lab import SLOWNESS, Task
from wire import Stream, Wire

NICS = ("virtio",)
SECONDS = 240
COUNT, WINDOW = 2000, 32
STACK = bytes.fromhex("020c0c0c0c03")


def kernel_log():
    """What the kernel has logged since it started."""
    lines = []
    fd = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
    try:
        while True:
            lines.append(os.read(fd, 8192).decode(errors="replace"))
    except BlockingIOError:
        return "".join(lines)
    finally:
        os.close(fd)


def of_the_stack(seq):
    return frames.numbered(seq, 60 + seq % 1400, src=STACK)


class End:
    """A tap that tells forwarded frames from those of the stack."""

    def __init__(self, wire):
        self.wire = wire
        self.forwarded, self.stack = [], []

    def take(self, seconds):
        item = self.wire.receive(seconds)
        if item:
            (self.stack if item[0][6:12] == STACK else self.forwarded).append(item[0])
        return item


def run(bench):
    near, far = bench.tap("g0"), bench.tap("s0")
    sent = [frames.numbered(n, 60 + n % 1455) for n in range(COUNT)]
    ways = [["-N", "-c"]] + ([["-z"]] if bench.zero_copy_ports else [])
    for waiting in (["--wait=spin"], []):
        for way in ways:
            daemon = bench.millraced("-l", *way, *waiting, "-i", "d0", "-i", "d1")
            assert len(daemon.bound) == 2 and os.cpu_count() == 2, daemon.stderr
            assert "locked tx mode" in kernel_log(), "the driver has a TX queue for each CPU"
            load = [Stream(Task, bench.keep(Wire(bench.dut, port)), of_the_stack, 300)
                    for port in ("d0", "d1")]
            ends = [End(near), End(far)]
            for start in range(0, COUNT, WINDOW):
                part = sent[start:start + WINDOW]
                for end in ends:
                    end.wire.send_all(part)
                for end in ends:
                    while len(end.forwarded) < start + len(part) and end.take(SLOWNESS):
                        pass
                    assert len(end.forwarded) == start + len(part), (
                        f"{end.wire.where}: {len(end.forwarded)} of {start + len(part)}")
            for stream in load:
                stream.stop()
            for end, stream in zip(ends, load):
                while end.take(0.5):
                    pass
                assert end.forwarded == sent, f"{end.wire.where}: not in order, or not the same"
                assert stream.given > 100, "the stack sent next to nothing"
                assert len(end.stack) == stream.given - stream.refused, "frames of the stack"
                assert len(set(end.stack)) == len(end.stack) and all(
                    frame == of_the_stack(frames.number_of(frame)) for frame in end.stack)
            final = daemon.stop()
            for rx, tx in (("d0", "d1"), ("d1", "d0")):
                assert total(final, "rx_packets", rx) == total(final, "tx_packets", tx) == COUNT
