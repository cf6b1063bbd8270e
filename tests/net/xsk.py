"""AF_XDP sockets outside millraced: a foreign one that occupies a queue, made by hand (no ring is
ever used), and one of its own, borrowed to be put where it does not belong.
"""

import ctypes
import mmap
import os
import socket
import struct

AF_XDP, SOL_XDP = 44, 283
RX_RING, UMEM_REG, FILL_RING, COMPLETION_RING = 2, 4, 5, 6
BIND_COPY = 1 << 1
FRAMES, FRAME_SIZE = 64, 4096
PIDFD_GETFD = 438  # no library here has it; the same number on every architecture

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

    @property
    def fd(self):
        return self._socket.fileno()

    def close(self):
        self._socket.close()
        self._memory.close()


class Borrowed:
    """An AF_XDP socket of another process, as a descriptor of ours (pidfd_getfd)."""

    def __init__(self, pid):
        found = []
        pidfd = os.pidfd_open(pid)
        try:
            for entry in os.listdir(f"/proc/{pid}/fd"):
                copy = _libc.syscall(PIDFD_GETFD, pidfd, int(entry), 0)
                if copy < 0:
                    raise OSError(ctypes.get_errno(), f"pidfd_getfd {entry}")
                if _is_af_xdp(copy):
                    found.append(copy)
                else:
                    os.close(copy)
        finally:
            os.close(pidfd)
        assert len(found) == 1, f"{len(found)} AF_XDP sockets in process {pid}"
        self.fd = found[0]

    def close(self):
        os.close(self.fd)


def _is_af_xdp(fd):
    if not os.readlink(f"/proc/self/fd/{fd}").startswith("socket:"):
        return False
    # Python would ask an AF_XDP socket for its name, which it has not: so tell it any family.
    with socket.socket(socket.AF_UNIX, socket.SOCK_RAW, 0, os.dup(fd)) as one:
        return one.getsockopt(socket.SOL_SOCKET, socket.SO_DOMAIN) == AF_XDP


class Xskmap:
    """An XSKMAP, by its number or by where it is pinned: what bpftool could do, if it could name a socket."""

    def __init__(self, where):
        self._libbpf = ctypes.CDLL("libbpf.so.1", use_errno=True)
        if isinstance(where, int):
            self._fd = self._libbpf.bpf_map_get_fd_by_id(where)
        else:
            self._fd = self._libbpf.bpf_obj_get(str(where).encode())
        if self._fd < 0:
            raise OSError(ctypes.get_errno(), f"map {where}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self._fd)

    def put(self, key, fd, flags=0):
        """Put a socket into a slot; whether the kernel takes it."""
        return self._libbpf.bpf_map_update_elem(
            self._fd, ctypes.byref(ctypes.c_uint32(key)), ctypes.byref(ctypes.c_uint32(fd)),
            ctypes.c_uint64(flags)) == 0

    def empty(self, key):
        self._libbpf.bpf_map_delete_elem(self._fd, ctypes.byref(ctypes.c_uint32(key)))


def put_into_xskmap(where, key, fd):
    """Somebody else's socket into a slot."""
    with Xskmap(where) as slots:
        if not slots.put(key, fd):
            raise OSError(ctypes.get_errno(), f"map {where}, key {key}")
