# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the kernel itself says of AF_XDP sockets: sock_diag(7), which module xsk_diag answers.

Each record is one socket: on which device and queue, of which UMEM, and whether that is mapped for
a device (zero-copy) or copied to and from.
"""

import collections
import socket
import struct

NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY, AF_XDP = 4, 20, 44
NLM_F_REQUEST, NLM_F_DUMP, NLMSG_ERROR, NLMSG_DONE = 0x1, 0x300, 2, 3
XDP_SHOW_INFO, XDP_SHOW_UMEM = 1 << 0, 1 << 2
XDP_DIAG_INFO, XDP_DIAG_UMEM = 1, 5
XDP_DU_F_ZEROCOPY = 1 << 0
HEADER, MESSAGE = struct.Struct("=IHHII"), struct.Struct("=BBHIII")
INFO, UMEM = struct.Struct("=II"), struct.Struct("=QIIIIIIII")

# umem: the kernel's number of a registration, `bytes` long; refs: sockets and rings that use it.
Socket = collections.namedtuple("Socket", "ifindex queue umem bytes zero_copy refs")


def _messages(data):
    """(type, body) of each netlink message."""
    while len(data) >= HEADER.size:
        length, kind = HEADER.unpack_from(data)[:2]
        yield kind, data[HEADER.size:length]
        data = data[(length + 3) & ~3:]


def _attributes(data):
    """{type: body}"""
    found = {}
    while len(data) >= 4:
        length, kind = struct.unpack_from("=HH", data)
        found[kind] = data[4:length]
        data = data[(length + 3) & ~3:]
    return found


def _socket(body):
    found = _attributes(body[MESSAGE.size:])
    ifindex, queue = INFO.unpack(found[XDP_DIAG_INFO])
    size, number, _, _, _, _, _, flags, refs = UMEM.unpack_from(found[XDP_DIAG_UMEM])
    return Socket(ifindex, queue, number, size, bool(flags & XDP_DU_F_ZEROCOPY), refs)


def bound(namespace):
    """Every AF_XDP socket of a namespace that has a UMEM, ordered by device and queue."""
    show = XDP_SHOW_INFO | XDP_SHOW_UMEM
    request = struct.pack("=BBHIIII", AF_XDP, 0, 0, 0, show, 0, 0)
    with namespace.entered():
        asked = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_SOCK_DIAG)
    with asked:
        asked.settimeout(10)
        asked.send(HEADER.pack(HEADER.size + len(request), SOCK_DIAG_BY_FAMILY,
                               NLM_F_REQUEST | NLM_F_DUMP, 1, 0) + request)
        found = []
        while True:
            for kind, body in _messages(asked.recv(65536)):
                assert kind != NLMSG_ERROR, f"sock_diag: error {struct.unpack_from('=i', body)[0]}"
                if kind == NLMSG_DONE:
                    return sorted(found)
                if XDP_DIAG_UMEM in _attributes(body[MESSAGE.size:]):
                    found.append(_socket(body))
