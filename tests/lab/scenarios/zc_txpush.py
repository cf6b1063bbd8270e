# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Zero-copy send: exactly as many frames as asked leave, each valid, at once after the start."""

import frames
from daemon import total
from lab import SLOWNESS

NICS = ("igb", "virtio", "virtio-small")
SECONDS = 180
ZERO_COPY = True


def push(bench, wire, count, *flags):
    """A run that ends by itself; the frames that it sent."""
    daemon = bench.zero_copy("-t", "-i", "d0", "-C", count, *flags, wait_links=False)
    final = daemon.ended(10 * SLOWNESS)
    assert total(final, "tx_packets") == count
    got = wire.drain(0.5)
    assert len(got) == count, f"{len(got)} frames of {count} arrived, the tap lost {wire.lost()}"
    for frame in got:
        frames.check_udp(frame)
        assert frame[6:12] == bench.macs["d0"], "source is the card's own"
    return got


def run(bench):
    wire = bench.tap("g0")
    for count, waiting in ((1, []), (1, ["-p"]), (179, []), (179, ["-p"]), (5000, ["-p"])):
        assert {len(frame) for frame in push(bench, wire, count, *waiting)} == {60}
    # As fast as it goes, QEMU may change the order when the far card has no buffers left.
    for flags in (["-p", "--pps=3000"], []):
        lengths = [len(frame) for frame in push(bench, wire, 1455, "--sizes=64-1518", *flags)]
        assert (lengths if flags else sorted(lengths)) == list(range(60, 1515)), lengths
