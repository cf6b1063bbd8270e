# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Zero-copy beside a card without: every size both ways by one memory, and all that is said is true."""

import mixed

NICS = ("mixed",)
SECONDS = 240


def run(bench):
    near, far = bench.tap("g0"), bench.tap("s0")
    for daemon in mixed.check(bench, "d1", "e1000e", near, far):
        assert {said["attach"] for (port, _), said in daemon.bound.items() if port == "d1"} == {
            "skb"}, daemon.stderr
        warnings = daemon.warnings("d1")
        assert len(warnings) == 1 and "no native XDP" in warnings[0], daemon.stderr
    if bench.zero_copy_ports:
        said = bench.refused("-l", "-z", "-i", "d0", "-i", "d1")
        assert "d1" in said and "zero-copy" in said, said
