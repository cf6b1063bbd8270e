# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Zero-copy between two cards, no copy: a frame lies in memory once, where both cards' rings say.

What proves it, together: the kernel's own word that both sockets are bound in zero-copy, so that each
card reads and writes the memory itself (the line at start prints XDP_OPTIONS_ZEROCOPY); the rings as
they lie in the daemon's memory, read from outside, where the addresses that the first card filled are
those that the second one was given, in the same order and with the same lengths; and the frames' own
bytes, which are found at these addresses and nowhere else in all of the frames' memory. A copy would
have left the bytes twice, or under another address. count_frames shows the same from another side:
in zero-copy a long frame takes no more instructions than a short one.
"""

import frames
import memory
from daemon import total
from wire import WINDOW, exchange

NICS = ("igb", "virtio")
SECONDS = 120
ZERO_COPY = True
COUNT = 600  # fewer than a ring holds: nothing of it is overwritten


def of_all(rings, count):
    """The one ring that all went through; the others had nothing."""
    used = [ring for ring in rings if ring]
    assert len(used) == 1, f"want one ring with {count} frames, have {list(map(len, rings))}"
    assert len(used[0]) == count, f"{len(used[0])} of {count} went through the ring"
    return used[0]


def places(everywhere, frame):
    """[(which memory, address)] of a frame's bytes, wherever they are."""
    found = []
    for which, data in enumerate(everywhere):
        at = data.find(frame)
        while at >= 0:
            found.append((which, at))
            at = data.find(frame, at + 1)
    return found


def run(bench):
    near, far = bench.tap("g0"), bench.tap("s0")
    sent = [frames.numbered(n, 60 + 7 * n % 1455) for n in range(COUNT)]
    daemon = bench.zero_copy("-l", "-p", "-i", "d0", "-i", "d1")
    exchange(near, far, sent, sent)
    now = memory.Memory(daemon.pid)
    received, given = of_all(now.rings("rx"), COUNT), of_all(now.rings("tx"), COUNT)
    everywhere = now.frames()
    final = daemon.stop()
    assert [length for _, length in received] == list(map(len, sent))
    for n, (came, went) in enumerate(zip(received, given)):
        assert came == went, f"frame {n} came as {came} and went as {went} (address, length)"
    # Of the last ones the memory has not been used again.
    for n in range(COUNT - WINDOW, COUNT):
        found = places(everywhere, sent[n])
        assert [at for _, at in found] == [received[n][0]], (
            f"frame {n} is at {found} (memory, address), the rings say {received[n][0]}")
    assert total(final, "rx_packets", "d0") == total(final, "tx_packets", "d1") == COUNT
