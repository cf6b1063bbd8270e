# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A driver that refuses XDP: its own words reach the user, and skb mode serves beside native."""

import frames
from daemon import total
from wire import exchange

NICS = ("virtio-split",)
SECONDS = 120
# drivers/net/virtio_net.c, by way of the netlink extack.
WORDS = "XDP expects header/data in single page, any_header_sg required"
CTRL_GUEST_OFFLOADS, GUEST_OFFLOADS = 2, (1, 7, 8, 9, 10)  # VIRTIO_NET_F_...


def run(bench):
    # Else d1 would be the one to refuse, with the words of virtnet_xdp_set() for that.
    assert not any(bench.virtio_feature("d1", bit) for bit in (CTRL_GUEST_OFFLOADS, *GUEST_OFFLOADS))
    near, far = bench.tap("g0"), bench.tap("s0")
    sent = [frames.numbered(n, size) for n, size in
            enumerate(range(frames.MIN_SIZE, frames.MAX_SIZE + 1))]
    said = bench.refused("-l", "-N", "-i", "d0", "-i", "d1")
    assert "d0: no XDP in native mode: " in said and WORDS in said, said
    daemon = bench.millraced("-l", "-p", "-i", "d0", "-i", "d1")
    assert [WORDS in text for text in daemon.warnings("d0")] == [True], daemon.stderr
    assert {(port, said["attach"]) for (port, _), said in daemon.bound.items()} == {
        ("d0", "skb"), ("d1", "native")}, daemon.stderr
    assert daemon.bound["d1", 0]["copy"] == (
        "zero-copy" if "d1" in bench.zero_copy_ports else "copy"), daemon.stderr
    exchange(near, far, sent, sent)
    exchange(far, near, sent, sent)
    final = daemon.stop()
    for rx, tx in (("d0", "d1"), ("d1", "d0")):
        assert total(final, "rx_packets", rx) == total(final, "tx_packets", tx) == len(sent)
