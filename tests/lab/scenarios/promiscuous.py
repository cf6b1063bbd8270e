# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Cards filter by address: promiscuous while it runs, and as before after stop, SIGKILL and restart."""

import frames
from daemon import program, total
from lab import wait_until
from wire import exchange

NICS = ("igb", "virtio", "e1000e")
SECONDS = 180
PORTS = ("d0", "d1")


def counts(bench):
    return [bench.dut.promiscuity(port) for port in PORTS]


def run(bench):
    near, far = bench.tap("g0"), bench.tap("s0")
    # To no card's own address; nobody else listens on d0 and d1.
    sent = [frames.numbered(n, 60 + n) for n in range(200)]
    pair = ("-l", "-p", "-q", "all", "-i", "d0", "-i", "d1")
    assert counts(bench) == [0, 0]

    # The card does filter, or the rest would prove nothing.
    daemon = bench.millraced(*pair, "--promiscuous=off")
    assert counts(bench) == [0, 0]
    near.send_all(sent)
    assert far.drain(0.5) == []
    final = daemon.stop()
    assert total(final, "rx_packets") == program(final, "d0")["seen"] == 0, final

    # What the operator asked for counts beside ours, and stays.
    bench.dut.ip("link", "set", "d1", "promisc", "on")
    try:
        for end in ("stop", "kill", "stop"):
            daemon = bench.millraced(*pair)
            assert counts(bench) == [1, 2]
            exchange(near, far, sent, sent)
            exchange(far, near, sent, sent)
            getattr(daemon, end)()
            wait_until(lambda: counts(bench) == [0, 1], 5, f"as before after {end}")
            wait_until(lambda: bench.dut.attached() == {}, 5, "no program")
            bench.wait_links()
    finally:
        bench.dut.ip("link", "set", "d1", "promisc", "off")
