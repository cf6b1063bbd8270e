# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Copy mode between two cards, natively where the driver can, and skb: every size, both ways."""

import frames

NICS = ("igb", "virtio", "virtio-small", "e1000e")
SECONDS = 240
NATIVE = ("igb", "virtio", "virtio-small")
MERGEABLE = 15  # VIRTIO_NET_F_MRG_RXBUF


def run(bench):
    near, far = bench.tap("g0"), bench.tap("s0")
    if bench.nic == "virtio-small":
        assert [bench.virtio_feature(port, MERGEABLE) for port in ("d0", "d1")] == [False, True]
    sent = [frames.numbered(n, size) for n, size in
            enumerate(range(frames.MIN_SIZE, frames.MAX_SIZE + 1))]
    ways = [("native", ["-N", "-c"])] if bench.nic in NATIVE else []
    for attach, flags in [*ways, ("skb", ["-S"]), ("auto", [])]:
        daemon = bench.millraced("-l", "-p", *flags, "-i", "d0", "-i", "d1")
        if attach != "auto":
            assert {(one["attach"], one["copy"]) for one in daemon.bound.values()} == {
                (attach, "copy")}, daemon.stderr
        elif bench.nic not in NATIVE:
            assert {one["attach"] for one in daemon.bound.values()} == {"skb"}, daemon.stderr
            for port in ("d0", "d1"):
                warnings = daemon.warnings(port)
                assert len(warnings) == 1 and "no native XDP" in warnings[0], daemon.stderr
        bench.patches_both_ways(daemon, near, far, sent)
