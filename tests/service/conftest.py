# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""How the package is built is in scripts/lablib, for the lab's guests have it too."""

import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
