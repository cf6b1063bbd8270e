"""Somebody else's XDP program, held on an interface by a bpf_link: holder.py IFACE native|skb.

Runs until it is ended. Made of bare bpf() calls, so that it needs no library.
"""

import ctypes
import platform
import signal
import socket
import struct
import subprocess
import sys

from lab import wait_until
from refuse import NUMBERS

BPF_PROG_LOAD, BPF_LINK_CREATE = 5, 28
BPF_PROG_TYPE_XDP, BPF_XDP = 6, 37
FLAG = {"skb": 1 << 1, "native": 1 << 2}
RETURN_PASS = struct.pack("<BBhi", 0xb7, 0, 0, 2) + struct.pack("<BBhi", 0x95, 0, 0, 0)

_libc = ctypes.CDLL(None, use_errno=True)


def bpf(command, attributes):
    buffer = ctypes.create_string_buffer(attributes, len(attributes))
    fd = _libc.syscall(NUMBERS[platform.machine()]["bpf"], command, buffer, len(attributes))
    if fd < 0:
        raise OSError(ctypes.get_errno(), f"bpf({command})")
    return fd


def load():
    code, licence = ctypes.create_string_buffer(RETURN_PASS), ctypes.create_string_buffer(b"GPL")
    return bpf(BPF_PROG_LOAD, struct.pack(
        "<IIQQIIQII16sII", BPF_PROG_TYPE_XDP, len(RETURN_PASS) // 8, ctypes.addressof(code),
        ctypes.addressof(licence), 0, 0, 0, 0, 0, b"foreign_link", 0, BPF_XDP))


def hold(ifname, mode):
    bpf(BPF_LINK_CREATE, struct.pack("<IIII", load(), socket.if_nametoindex(ifname), BPF_XDP,
                                     FLAG[mode]))


class Holder:
    def __init__(self, namespace, ifname, mode):
        self._process = subprocess.Popen(
            namespace.command("/usr/bin/python3", __file__, ifname, mode))
        self.pid = self._process.pid
        try:
            wait_until(lambda: "xdp" in namespace.link(ifname), 5, "foreign program attached")
        except BaseException:
            self.close()
            raise

    @property
    def running(self):
        return self._process.poll() is None

    def close(self):
        self._process.kill()
        self._process.wait(10)


if __name__ == "__main__":
    hold(*sys.argv[1:])
    signal.pause()
