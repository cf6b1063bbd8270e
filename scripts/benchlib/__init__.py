# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The parts of scripts/bench: cells, lab, programs, measure, report."""
