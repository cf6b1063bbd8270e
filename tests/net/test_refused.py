"""Descriptors that the kernel refuses, on a real device: counted, named, and no frame is lost for good.

millraced makes none, so a worker of ours in a tool (tests/tools/refused.c) puts them among good ones.
What Linux 6.18 does with them is in docs/kernel-notes.md.
"""

import json
import os
import pathlib
import subprocess

import frames
import pytest
from daemon import MILLRACED
from lab import SLOWNESS

TOOL = pathlib.Path(os.environ.get("REFUSED", MILLRACED.parent / "tests/tools/refused"))


@pytest.mark.parametrize("sent, every", [(1, 1), (10, 1), (1000, 10), (5000, 3)])
def test_refused_descriptors_are_counted_and_their_frames_come_back(rig1, tap, sent, every):
    rig = rig1()
    wire = tap(rig.gen, "g0")
    done = subprocess.run(rig.dut.command(TOOL, "d0", sent, every), capture_output=True, text=True,
                          timeout=20 * SLOWNESS)
    assert done.returncode == 0, done.stderr
    quiet, closed = (json.loads(line) for line in done.stdout.splitlines())
    bad = (sent + every - 1) // every
    beyond = sum(number % 5 == 4 for number in range(1, bad + 1)) if every > 1 else None
    got = wire.frames(sent + 1, 0.3)
    assert got == [b"\x02" * frames.MIN_SIZE] * sent, "what is bad does not hold up what is good"
    assert quiet["tx_packets"] == sent
    assert quiet["tx_invalid_descs"] == bad
    assert quiet["tx_pending"] == 0, "nothing to wait for at the end"
    assert quiet["balance"] == closed["balance"] == 0
    # Completed all the same, each is back in the pool but those whose address was none of ours; else
    # all are lost.
    assert quiet["lost"] in (quiet["bad"], bad)
    assert beyond is None or quiet["bad"] in (beyond, 0)
    assert quiet["violations"] == 0
    assert closed["pool"] == closed["total"], "the ledger finds them at close"
