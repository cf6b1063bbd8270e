# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The lab's own parts, tested without a guest, a network or privileges."""

import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
