"""Runs a program whose system calls partly fail: refuse.py RULE... -- COMMAND.

A rule is NAME[,ARGUMENT=VALUE]...:ERRNO, such as "bpf,0=5:EPERM" (no BPF_PROG_LOAD) or
"socket,0=44:EAFNOSUPPORT". What a kernel without a feature, a container or a systemd unit
answers, by a seccomp filter; needs CAP_SYS_ADMIN.
"""

import ctypes
import errno
import os
import platform
import struct
import sys

NUMBERS = {
    "x86_64": {"mmap": 9, "socket": 41, "bind": 49, "setsockopt": 54, "getsockopt": 55,
               "memfd_create": 319, "bpf": 321, "prctl": 157, "sched_setaffinity": 203,
               "clone3": 435, "ioctl": 16, "eventfd2": 290, "epoll_create1": 291, "capset": 126,
               "clone": 56, "seccomp": 317},
    "aarch64": {"mmap": 222, "socket": 198, "bind": 200, "setsockopt": 208, "getsockopt": 209,
                "memfd_create": 279, "bpf": 280, "prctl": 167, "sched_setaffinity": 122,
                "clone3": 435, "ioctl": 29, "eventfd2": 19, "epoll_create1": 20, "capset": 91,
                "clone": 220, "seccomp": 277},
}
PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 22, 2
RET_ERRNO, RET_ALLOW = 0x00050000, 0x7fff0000
LOAD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06  # BPF_LD|W|ABS, BPF_JMP|JEQ|K, BPF_RET|K
NUMBER_AT, ARGUMENTS_AT = 0, 16  # in struct seccomp_data; arguments little-endian, 8 bytes each


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


def compile_rule(rule):
    call, _, error = rule.rpartition(":")
    name, *conditions = call.split(",")
    pairs = [(NUMBER_AT, NUMBERS[platform.machine()][name])]
    for condition in conditions:
        which, value = condition.split("=")
        pairs.append((ARGUMENTS_AT + 8 * int(which), int(value, 0)))
    code = []
    for n, (offset, value) in enumerate(pairs):
        to_next_rule = 2 * (len(pairs) - 1 - n) + 1
        code += [(LOAD, 0, 0, offset), (JUMP_IF_EQUAL, 0, to_next_rule, value)]
    return code + [(RETURN, 0, 0, RET_ERRNO | getattr(errno, error))]


def install(rules):
    code = [step for rule in rules for step in compile_rule(rule)] + [(RETURN, 0, 0, RET_ALLOW)]
    steps = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in code))
    program = Program(len(code), ctypes.addressof(steps))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_SECCOMP)")


def refusing(*rules):
    """A wrap for Daemon(): it starts under these rules."""
    return lambda argv: ["/usr/bin/python3", __file__, *rules, "--", *argv]


if __name__ == "__main__":
    end = sys.argv.index("--")
    install(sys.argv[1:end])
    os.execvp(sys.argv[end + 1], sys.argv[end + 1:])
