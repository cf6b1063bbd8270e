# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Zero-copy, a link that goes down and comes back: the daemon stays, and nothing is lost afterwards."""

import time

import frames
from lab import Task
from wire import Stream, exchange

NICS = ("igb", "virtio")
SECONDS = 180
ZERO_COPY = True


def run(bench):
    near, far = bench.tap("g0"), bench.tap("s0")
    sent = [frames.numbered(n, 60 + n) for n in range(500)]
    daemon = bench.zero_copy("-l", "-p", "-i", "d0", "-i", "d1")
    for where in ("d0", "d1"):
        load = Stream(Task, near, frames.numbered, 500)
        time.sleep(0.5)
        bench.dut.link_down(where)
        time.sleep(1)
        bench.dut.link_up(where)
        bench.wait_links()
        load.stop()
        assert daemon.running, str(daemon)
        # What was sent into the gap and comes out after it must be whole.
        for frame in far.drain(1.0):
            assert frame == frames.numbered(frames.number_of(frame), len(frame)), frame.hex()
        exchange(near, far, sent, sent)
        exchange(far, near, sent, sent)
    daemon.stop()
