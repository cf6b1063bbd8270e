"""A foreign AF_XDP socket that occupies a queue, made by hand: no ring is ever used."""

import ctypes
import mmap
import os
import socket
import struct

AF_XDP, SOL_XDP = 44, 283
RX_RING, UMEM_REG, FILL_RING, COMPLETION_RING = 2, 4, 5, 6
BIND_COPY = 1 << 1
FRAMES, FRAME_SIZE = 64, 4096

_libc = ctypes.CDLL(None, use_errno=True)


class Squatter:
    def __init__(self, namespace, ifname, queue=0):
        self._memory = mmap.mmap(-1, FRAMES * FRAME_SIZE)
        with namespace.entered():
            self._socket = socket.socket(AF_XDP, socket.SOCK_RAW, 0)
            index = socket.if_nametoindex(ifname)
        try:
            self._bind(index, queue)
        except OSError:
            self.close()
            raise

    def _bind(self, index, queue):
        view = (ctypes.c_char * len(self._memory)).from_buffer(self._memory)
        where = ctypes.addressof(view)
        del view  # the mapping stays as long as the object does
        region = struct.pack("QQII", where, FRAMES * FRAME_SIZE, FRAME_SIZE, 0)
        self._socket.setsockopt(SOL_XDP, UMEM_REG, region)
        for ring in (FILL_RING, COMPLETION_RING, RX_RING):
            self._socket.setsockopt(SOL_XDP, ring, struct.pack("I", FRAMES))
        address = struct.pack("HHIII", AF_XDP, BIND_COPY, index, queue, 0)
        if _libc.bind(self._socket.fileno(), address, len(address)) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))

    def close(self):
        self._socket.close()
        self._memory.close()
