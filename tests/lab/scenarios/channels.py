# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Queues as ethtool counts them: the same at each start; changed meanwhile, a reload has the new ones."""

import appliance
import frames
from wire import exchange

NICS = ("igb",)  # the others have one: QEMU gives a virtio card more only beside a tap
SECONDS = 240


def served(status):
    """{interface: queues that have a socket} of a status."""
    found = {device: [] for device in appliance.devices_of(status).values()}
    for worker in status["workers"]:
        for socket in worker["sockets"]:
            found[appliance.devices_of(status)[socket["port"]]].append(socket["queue"])
    return {device: sorted(queues) for device, queues in found.items()}


def run(bench):
    near, far = bench.tap("g0"), bench.tap("s0")
    sent = [frames.numbered(n, 60 + n % 1400) for n in range(300)]
    most = bench.queues_of("d0")
    assert most > 1, f"{most} queue pair of d0 with two CPUs"
    conf = bench.file()
    text = (appliance.port("a", "d0"), appliance.port("b", "d1"),
            appliance.forward("main", "patch", "a b"))
    path = conf.write(*text)

    def check(queues):
        """Attached or not, ethtool says so many, and so many are served."""
        bench.wait_links()
        assert [bench.queues_of(port) for port in ("d0", "d1")] == [queues] * 2
        assert served(conf.ask("status")) == {port: list(range(queues)) for port in ("d0", "d1")}
        exchange(near, far, sent, sent)
        exchange(far, near, sent, sent)

    # Twice in a row, and once more by a reload that has nothing new.
    for _ in range(2):
        daemon = bench.millraced(f"--config={path}")
        check(most)
        conf.take(*text)
        check(most)
        daemon.stop()

    # Fewer at the start, more while it runs. The other way the kernel refuses while a socket has one.
    for port in ("d0", "d1"):
        bench.dut.run("ethtool", "-L", port, "combined", 1)
    try:
        bench.wait_links()
        daemon = bench.millraced(f"--config={path}")
        check(1)
        for port in ("d0", "d1"):
            bench.dut.run("ethtool", "-L", port, "combined", most)
        bench.wait_links()
        conf.take(*text)
        check(most)
        daemon.stop()
    finally:
        for port in ("d0", "d1"):
            bench.dut.run("ethtool", "-L", port, "combined", most)
        bench.wait_links()
