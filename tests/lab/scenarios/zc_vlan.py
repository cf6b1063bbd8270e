# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Tags through zero-copy: the card's stripping is switched off while it runs and put back, tags stay."""

import frames
from bench import Skip
from wire import exchange

NICS = ("igb", "virtio")
SECONDS = 120
ZERO_COPY = True
TAGS = ([(frames.VLAN, 100)], [(frames.VLAN, 0xFFFE)], [(frames.QINQ, 200), (frames.VLAN, 100)])


def run(bench):
    before = {port: bench.feature(port, "rx-vlan-offload") for port in ("d0", "d1")}
    if "on" not in before["d0"] and bench.nic == "igb":
        raise Skip(f"the driver strips no tags: {before}")
    near, far = bench.tap("g0"), bench.tap("s0")
    daemon = bench.zero_copy("-l", "-p", "-i", "d0", "-i", "d1")
    during = {port: bench.feature(port, "rx-vlan-offload") for port in ("d0", "d1")}
    assert all(text.startswith("off") for text in during.values()), during
    sent = [frames.tagged(frames.numbered(size, size), *tags)
            for tags in TAGS for size in (60, 64, 500, 1500)]
    sent = [frame for frame in sent if len(frame) <= 1518]
    exchange(near, far, sent, sent)
    exchange(far, near, sent, sent)
    daemon.stop()
    after = {port: bench.feature(port, "rx-vlan-offload") for port in ("d0", "d1")}
    assert after == before, f"{before} became {after}"
