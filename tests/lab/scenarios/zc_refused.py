# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A card without zero-copy: -z is refused naming it, without -z it is copy and says so."""

from bench import Skip

NICS = ("igb", "virtio", "e1000e")
SECONDS = 60


def run(bench):
    if bench.zero_copy_ports:
        raise Skip(f"{bench.nic} has zero-copy under {bench.kernel}")
    said = bench.refused("-r", "-i", "d0", "-z")
    assert "d0" in said and "zero-copy" in said, said
    daemon = bench.millraced("-r", "-i", "d0")
    assert {one["copy"] for one in daemon.bound.values()} == {"copy"}, daemon.stderr
    daemon.stop()
