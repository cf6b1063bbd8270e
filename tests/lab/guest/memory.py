# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A daemon's rings and frames as they lie in its memory, read from outside."""

import collections
import pathlib
import re
import socket
import struct

AF_XDP, SOL_XDP, XDP_MMAP_OFFSETS = 44, 283, 1
RING_OFFSETS = struct.Struct("4Q")  # struct xdp_ring_offset: producer, consumer, desc, flags
DESC = struct.Struct("QII")  # struct xdp_desc: addr, len, options
# XDP_PGOFF_RX_RING, XDP_PGOFF_TX_RING: where in a socket's file a ring is mapped from.
AT = {"rx": 0, "tx": 0x80000000}
# struct umem_header: magic, version, header_bytes, ledger_offset, frames_offset, ...
UMEM_NAME, FRAMES_OFFSET_AT = "memfd:millrace-umem", 24

Mapping = collections.namedtuple("Mapping", "start end offset name")


def ring_offsets():
    """{ring: (producer, consumer, desc, flags)}, from a socket of our own."""
    with socket.socket(AF_XDP, socket.SOCK_RAW) as asked:
        said = asked.getsockopt(SOL_XDP, XDP_MMAP_OFFSETS, 4 * RING_OFFSETS.size)
    return dict(zip(AT, RING_OFFSETS.iter_unpack(said)))


class Memory:
    """Of one process that is running. What is read is a moment's: nothing should be on its way."""

    def __init__(self, pid):
        self._path = pathlib.Path(f"/proc/{pid}/mem")
        self._mappings = []
        for line in pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines():
            found = re.match(r"(\w+)-(\w+) \S+ (\w+) \S+ \d+ *(.*)$", line)
            start, end, offset = (int(word, 16) for word in found.group(1, 2, 3))
            self._mappings.append(Mapping(start, end, offset, found[4]))

    def _read(self, mapping):
        with open(self._path, "rb") as memory:
            memory.seek(mapping.start)
            return memory.read(mapping.end - mapping.start)

    def _rings(self, which):
        """Of each socket (index of its producer, bytes of its entries)."""
        producer, _, first, _ = ring_offsets()[which]
        found = []
        for mapping in self._mappings:
            if "socket:" in mapping.name and mapping.offset == AT[which]:
                data = self._read(mapping)
                found.append((struct.unpack_from("I", data, producer)[0], data[first:]))
        assert found, f"no {which} ring is mapped"
        return found

    def produced(self, which):
        """How many were ever put on this ring, over all sockets."""
        return sum(index for index, _ in self._rings(which))

    def rings(self, which):
        """Of each socket [(addr, len), ...] of all that was ever put on its ring.

        For no more than the ring has entries: later ones stand where these were.
        """
        return [[DESC.unpack_from(entries, n * DESC.size)[:2] for n in range(index)]
                for index, entries in self._rings(which)]

    def frames(self):
        """The frames' memory of each worker, whole: an address on a ring is a place in one of them."""
        found = []
        for mapping in self._mappings:
            if UMEM_NAME in mapping.name and mapping.offset == 0:
                data = self._read(mapping)
                found.append(data[struct.unpack_from("Q", data, FRAMES_OFFSET_AT)[0]:])
        assert found, "no memory for frames is mapped"
        return found
