# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Instructions that a pass takes for a frame, counted by callgrind over the fake kernel: only the pollers'
passes, not the fake kernel nor its system calls. Exact and repeatable, whatever else runs; not speeds."""

import pathlib
import re
import shutil
import subprocess
import tempfile

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = "tests/burst_cost"  # in a build folder
FRAMES = 6400
BATCHES = (1, 64)
MODES = ("rxdrop", "txpush", "l2fwd", "patch", "bridge")

# What is kept: by which compiler, then mode, batch and instructions a frame.
TABLE = REPOSITORY / "tests/fwd/instructions.table"
GROWTH = 1.05  # what the test lets pass


class Uncounted(Exception):
    pass


def missing():
    return None if shutil.which("valgrind") else "valgrind is not installed (scripts/install-deps)"


def count(program, mode, batch, passes=None, frames=FRAMES):
    """Instructions a frame, of burst_cost's functions measured_pass_NAME; by default the mode's."""
    passes = passes or (mode,)
    with tempfile.TemporaryDirectory() as work:
        done = subprocess.run(
            ["valgrind", "--tool=callgrind", f"--callgrind-out-file={work}/out",
             *(f"--toggle-collect=measured_pass_{name}" for name in passes),
             "--toggle-collect=__wrap_sendto", str(program), mode, str(frames), str(batch)],
            capture_output=True, text=True, check=False)
    if done.returncode:
        raise Uncounted(f"{program} {mode} {frames} {batch} under callgrind: {done.stderr}")
    collected = int(re.search(r"Collected : (\d+)", done.stderr).group(1))
    if not collected:  # a compiler may fold two equal functions into one name
        raise Uncounted(f"callgrind found no measured_pass_{passes[0]} in {program}")
    return collected / int(done.stdout)


def compiler(program):
    """As burst_cost tells it, "gcc 12 x86_64"."""
    return subprocess.run([str(program), "compiler"], capture_output=True, text=True, check=True).stdout.strip()


def kept():
    """(compiler, {(mode, batch): instructions a frame})"""
    rows = [line.split() for line in TABLE.read_text().splitlines() if line and line[0] != "#"]
    return " ".join(rows[0][1:]), {(row[0], int(row[1])): float(row[2]) for row in rows[1:]}


def keep(by, counts):
    head = [line for line in TABLE.read_text().splitlines() if line.startswith("#")]
    rows = [f"{mode:<8}{batch:>3} {value:8.2f}" for (mode, batch), value in counts.items()]
    TABLE.write_text("\n".join([*head, f"compiler {by}", *rows]) + "\n")


def report(program, write):
    """Lines: what each mode takes for a frame, beside what is kept; with `write` that is replaced."""
    by, (kept_by, before) = compiler(program), kept()
    counts = {}
    yield f"# compiler   {by}" + ("" if by == kept_by else f"; what is kept is of {kept_by}")
    yield f"# method     {FRAMES} frames of 60 bytes, one way; callgrind, a kernel in plain memory"
    yield f"{'mode':<8} {'batch':>5} {'a frame':>8} {'kept':>8}"
    for batch in BATCHES:
        for mode in MODES:
            counts[mode, batch] = count(program, mode, batch)
            told = f"{before[mode, batch]:8.2f}" if (mode, batch) in before else f"{'-':>8}"
            yield f"{mode:<8} {batch:>5} {counts[mode, batch]:8.2f} {told}"
    if write:
        keep(by, counts)
        yield f"# kept in {TABLE.relative_to(REPOSITORY)}"
