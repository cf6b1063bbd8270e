# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Zero-copy between two cards: every size from 60 to 1514, both ways, once, unchanged, in order."""

import frames
from daemon import program, total
from wire import exchange

NICS = ("igb", "virtio", "virtio-small")
SECONDS = 180


def run(bench):
    near, far = bench.tap("g0"), bench.tap("s0")
    sent = [frames.numbered(n, size) for n, size in
            enumerate(range(frames.MIN_SIZE, frames.MAX_SIZE + 1))]
    for waiting in (["-p"], []):
        daemon = bench.zero_copy("-l", *waiting, "-i", "d0", "-i", "d1")
        exchange(near, far, sent, sent)
        exchange(far, near, sent, sent)
        final = daemon.stop()
        for rx, tx in (("d0", "d1"), ("d1", "d0")):
            assert total(final, "rx_packets", rx) == total(final, "tx_packets", tx) == len(sent)
            assert program(final, rx)["seen"] == len(sent)
