# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Zero-copy with other chunks, rings and batches, -M and -m; -F and -u where the driver takes them."""

import re

import frames
from daemon import READY
from lab import SLOWNESS, wait_until
from wire import exchange

NICS = ("igb", "virtio")
SECONDS = 240
ZERO_COPY = True
MUST = (["-f", "2048"], ["-m"], ["-b", "1"], ["-b", "256"], ["--ring-size=64"], ["-M"])
MAY = (["-F"], ["-u", "-f", "3000"])


def run(bench):
    near, far = bench.tap("g0"), bench.tap("s0")
    sent = [frames.numbered(n, 60 + n % 1455) for n in range(600)]
    for shape in (*MUST, *MAY):
        daemon = bench.daemon("-z", "-l", "-p", "-i", "d0", "-i", "d1", *shape)
        wait_until(lambda: READY in daemon.stderr or not daemon.running, 20 * SLOWNESS, "start")
        if READY not in daemon.stderr:
            said = daemon.fails(timeout=10 * SLOWNESS)
            assert shape in MAY, f"{shape}: {said}"
            assert re.search(r"d0( q0)?: .*(zero-copy|multi-buffer|unaligned)", said), said
            print(f"   {' '.join(shape)}: refused: {said.splitlines()[-1]}", flush=True)
            continue
        assert {one["copy"] for one in daemon.bound.values()} == {"zero-copy"}, daemon.stderr
        bench.wait_links()
        exchange(near, far, sent, sent, window=32)
        exchange(far, near, sent, sent, window=32)
        daemon.stop()
