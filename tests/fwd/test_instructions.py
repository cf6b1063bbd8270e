#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""test_instructions.py BURST_COST: no mode takes over 5 % more instructions a frame than are kept in
instructions.table. Where they have become fewer, `scripts/bench instructions --keep` keeps that."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
from benchlib import instructions  # noqa: E402

SKIPPED = 77


def main():
    program = sys.argv[1]
    if reason := instructions.missing():
        print(f"skipped: {reason}")
        return SKIPPED
    by, (kept_by, kept) = instructions.compiler(program), instructions.kept()
    if by != kept_by:
        print(f"skipped: compiled by {by}, and the counts in {instructions.TABLE} are of {kept_by}")
        return SKIPPED
    wanted = {(mode, batch) for mode in instructions.MODES for batch in instructions.BATCHES}
    wrong = [f"{instructions.TABLE}: no row, or one too many: {mode} {batch}"
             for mode, batch in sorted(wanted ^ kept.keys())]
    for mode, batch in sorted(wanted & kept.keys()):
        now, most = instructions.count(program, mode, batch), kept[mode, batch] * instructions.GROWTH
        print(f"{mode} batch {batch}: {now:.2f} instructions a frame, at most {most:.2f}")
        if now > most:
            wrong.append(f"{mode} batch {batch}: {now:.2f} instructions a frame, {kept[mode, batch]} were kept; "
                         "if that is worth it, scripts/bench instructions --keep")
    print("\n".join(wrong), file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
