# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Zero-copy, the driver is unbound under load: exit 1 naming the card; bound again, it works again."""

import time

import frames
from lab import SLOWNESS, Task
from wire import Stream, exchange

NICS = ("igb", "virtio")
SECONDS = 180
ZERO_COPY = True


def run(bench):
    near, far = bench.tap("g0"), bench.tap("s0")
    for where in ("d1", "d0"):
        daemon = bench.zero_copy("-l", "-p", "-i", "d0", "-i", "d1")
        load = Stream(Task, near, frames.numbered, 500)
        time.sleep(1)
        with bench.unbound(where):
            code, _ = daemon.wait(10 * SLOWNESS)
            assert code == 1 and where in daemon.stderr, str(daemon)
        load.stop()
        far.drain(0.5)
        near.drain(0.1)
        sent = [frames.numbered(n, 60 + n) for n in range(100)]
        daemon = bench.zero_copy("-l", "-p", "-i", "d0", "-i", "d1")
        exchange(near, far, sent, sent)
        exchange(far, near, sent, sent)
        daemon.stop()
