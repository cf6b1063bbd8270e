# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Zero-copy, asked to end while a link is down or under load: status 0 in time, every frame back."""

import time

import frames
from lab import Task
from wire import Stream

NICS = ("igb", "virtio")
SECONDS = 120
ZERO_COPY = True


def run(bench):
    near = bench.tap("g0")
    for where in (None, "d0", "d1"):
        daemon = bench.zero_copy("-l", "-p", "-i", "d0", "-i", "d1")
        load = Stream(Task, near, frames.numbered, 500)
        time.sleep(1)
        if where:
            bench.dut.link_down(where)
            time.sleep(0.5)
        daemon.stop()
        load.stop()
        if where:
            bench.dut.link_up(where)
        bench.wait_links()
