# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Zero-copy, 20 starts on end: stopped or killed, also under load; nothing stays, the next one works."""

import signal

import frames
from lab import Task, wait_until
from wire import Stream, exchange

NICS = ("igb", "virtio")
SECONDS = 400
LONG = True
ZERO_COPY = True
STARTS = 20


def run(bench):
    near, far = bench.tap("g0"), bench.tap("s0")
    sent = [frames.numbered(n, 60 + n) for n in range(200)]
    for start in range(STARTS):
        daemon = bench.zero_copy("-l", "-p", "-i", "d0", "-i", "d1")
        exchange(near, far, sent, sent)
        load = Stream(Task, near, frames.numbered, 500) if start % 4 > 1 else None
        if load:
            wait_until(lambda: load.given > 50, 10, "load")
        if start % 2:
            daemon.kill()
            assert daemon.process.returncode == -signal.SIGKILL, f"ended before: {daemon}"
        else:
            daemon.stop()
        if load:
            load.stop()
        wait_until(lambda: bench.dut.attached() == {}, 5, "no program")
        assert [bench.dut.promiscuity(port) for port in ("d0", "d1")] == [0, 0]
        bench.wait_links()
        far.drain(0.3)
        near.drain(0.1)
