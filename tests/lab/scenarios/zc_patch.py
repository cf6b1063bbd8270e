# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Zero-copy between two cards: every size from 60 to 1514, both ways, once, unchanged, in order."""

import frames

NICS = ("igb", "virtio", "virtio-small")
SECONDS = 180
ZERO_COPY = True


def run(bench):
    near, far = bench.tap("g0"), bench.tap("s0")
    sent = [frames.numbered(n, size) for n, size in
            enumerate(range(frames.MIN_SIZE, frames.MAX_SIZE + 1))]
    for waiting in (["-p"], ["--wait=spin"], []):
        daemon = bench.zero_copy("-l", *waiting, "-i", "d0", "-i", "d1")
        bench.patches_both_ways(daemon, near, far, sent)
