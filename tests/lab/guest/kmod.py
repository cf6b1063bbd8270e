# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Loading kernel modules in the guest: the host has worked out the order."""

import ctypes
import os

SYS_FINIT_MODULE = 313  # x86-64; the C library has no function for it

_libc = ctypes.CDLL(None, use_errno=True)
_loaded = set()


def available(plan, name):
    """Whether this kernel has the module, or what it does built in."""
    return name in plan["modules"]


def load(plan, name, parameters=""):
    """Load a module and all it needs; no error when it is loaded already."""
    for one in plan["modules"][name]:
        if one in _loaded:
            continue
        fd = os.open(f"/lib/modules/{one}.ko", os.O_RDONLY)
        text = parameters if one == name else ""
        if _libc.syscall(SYS_FINIT_MODULE, fd, text.encode(), 0):
            raise OSError(ctypes.get_errno(), f"module {one}")
        os.close(fd)
        _loaded.add(one)
