# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Zero-copy beside a veth: every size both ways by one memory, and all that is said is true."""

import mixed

NICS = ("igb", "virtio")
SECONDS = 240


def run(bench):
    bench.load("veth")
    near = bench.tap("g0")
    with bench.veth("s2", "d2"):
        far = bench.tap("s2")
        for daemon in mixed.check(bench, "d2", "veth", near, far):
            assert {said["attach"] for said in daemon.bound.values()} == {"native"}, daemon.stderr
            assert daemon.warnings("native|zero-copy") == [], daemon.stderr
        far.close()
