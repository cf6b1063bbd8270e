# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""hold.py TID: holds one thread of a process by ptrace, until that process has ended."""

import ctypes
import os
import sys
import time

PTRACE_SEIZE, PTRACE_INTERRUPT = 0x4206, 0x4207
WALL = 0x40000000

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


def ptrace(request, tid):
    if libc.ptrace(request, tid, None, None):
        raise OSError(ctypes.get_errno(), "ptrace")


def main():
    tid = int(sys.argv[1])
    ptrace(PTRACE_SEIZE, tid)
    ptrace(PTRACE_INTERRUPT, tid)
    os.waitpid(tid, WALL)
    print("held", flush=True)
    while os.path.exists(f"/proc/{tid}"):
        try:
            if os.waitpid(tid, WALL | os.WNOHANG)[0]:
                break
        except ChildProcessError:
            break
        time.sleep(0.02)


if __name__ == "__main__":
    main()
