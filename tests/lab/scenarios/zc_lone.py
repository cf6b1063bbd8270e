# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Zero-copy, lone frames after silence: each is forwarded at once, spinning and in poll."""

import statistics
import time

import frames
from lab import SLOWNESS

NICS = ("igb", "virtio")
SECONDS = 120
ZERO_COPY = True
SILENCE = 0.25  # longer than the 100 ms that a poll may sleep
LIMIT = 0.010 * SLOWNESS


def one_way(sender, receiver, frame):
    before = time.time()
    assert sender.send(frame)
    got = receiver.receive(2 * SLOWNESS)
    assert got, f"a lone frame never came to {receiver.where}"
    assert got[0] == frame, f"want {frame.hex()}\nhave {got[0].hex()}"
    return got[1] - before


def run(bench):
    near, far = bench.tap("g0"), bench.tap("s0")
    for waiting in (["-p"], ["--wait=spin"], []):
        daemon = bench.zero_copy("-l", *waiting, "-i", "d0", "-i", "d1")
        took = []
        for n in range(20):
            time.sleep(SILENCE)
            took.append(one_way(near, far, frames.numbered(n, 60 + n)))
            took.append(one_way(far, near, frames.numbered(n, 1514 - n)))
        daemon.stop()
        assert statistics.median(took) < LIMIT, sorted(took)
