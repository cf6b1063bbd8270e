# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Zero-copy on one card: every size comes back with its MAC addresses swapped, spinning and in poll."""

import frames
from daemon import total
from wire import exchange

NICS = ("igb", "virtio")
SECONDS = 180
ZERO_COPY = True


def run(bench):
    wire = bench.tap("g0")
    sent = [frames.numbered(n, size, dst=bench.macs["d0"]) for n, size in
            enumerate(range(frames.MIN_SIZE, frames.MAX_SIZE + 1))]
    for waiting in (["--wait=spin"], []):
        daemon = bench.zero_copy("-l", *waiting, "-i", "d0")
        exchange(wire, wire, sent, [frames.swapped(frame) for frame in sent])
        final = daemon.stop()
        assert total(final, "rx_packets") == total(final, "tx_packets") == len(sent)
        assert total(final, "rx_bytes") == total(final, "tx_bytes") == sum(map(len, sent))
