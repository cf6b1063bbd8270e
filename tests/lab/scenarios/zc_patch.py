# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Zero-copy between two cards: every frame arrives once, unchanged, in order, both ways."""

import frames
from daemon import program, total
from wire import exchange

NICS = ("igb", "virtio")
SECONDS = 120


def run(bench):
    near, far = bench.tap("g0"), bench.tap("s0")
    daemon = bench.zero_copy("-l", "-p", "-i", "d0", "-i", "d1")
    there = [frames.numbered(n, size) for n, size in enumerate(range(60, 1515, 7))]
    exchange(near, far, there, there)
    exchange(far, near, there, there)
    final = daemon.stop()
    for rx, tx in (("d0", "d1"), ("d1", "d0")):
        assert total(final, "rx_packets", rx) == total(final, "tx_packets", tx) == len(there)
        assert program(final, rx)["seen"] == len(there)
