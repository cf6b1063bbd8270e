# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Zero-copy receive: every frame and byte of 20,000 is counted, more than the memory holds."""

import frames
from daemon import explained, program, total

NICS = ("igb", "virtio")
SECONDS = 120
ZERO_COPY = True
COUNT = 20000


def run(bench):
    wire = bench.tap("g0")
    daemon = bench.zero_copy("-r", "-p", "-i", "d0")
    sizes = [60 + n % 1455 for n in range(COUNT)]
    wire.send_all(frames.numbered(n, size, dst=bench.macs["d0"]) for n, size in enumerate(sizes))
    record = daemon.quiet_record()
    final = daemon.stop()
    assert program(record, "d0")["seen"] == COUNT, record
    assert program(record, "d0")["passed"] == 0
    assert explained(record, "d0") == COUNT
    assert total(final, "rx_packets") == COUNT, str(final)
    assert total(final, "rx_bytes") == sum(sizes)
    assert wire.drain() == [], "rxdrop sent something"
