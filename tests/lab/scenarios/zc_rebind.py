# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Zero-copy from a configuration file, the driver is unbound under load: its port waits, the other goes on."""

import time

import appliance
import frames
from daemon import total
from lab import SLOWNESS, Task, wait_until
from wire import Stream, exchange

NICS = ("igb", "virtio")
SECONDS = 240
ZERO_COPY = True


def port_of(conf, name):
    return next(one for one in conf.ask("status")["ports"] if one["port"] == name)


def run(bench):
    near, far = bench.tap("g0"), bench.tap("s0")
    conf = bench.file()
    path = conf.write(appliance.port("d0", "d0", zero_copy="require"),
                      appliance.port("d1", "d1", zero_copy="require"),
                      appliance.forward("main", "patch", "d0 d1"))
    daemon = bench.zero_copy(f"--config={path}")
    sent = [frames.numbered(n, 60 + n) for n in range(100)]
    for where in ("d1", "d0"):
        load = Stream(Task, near, frames.numbered, 300)
        time.sleep(1)
        with bench.unbound(where):
            wait_until(lambda: port_of(conf, where)["state"] == "gone", 5 * SLOWNESS, "gone")
            time.sleep(1)
            assert daemon.running, str(daemon)
        load.stop()
        wait_until(lambda: port_of(conf, where)["state"] == "up", 10 * SLOWNESS,
                   f"served again: {port_of(conf, where)}")
        assert daemon.stderr.count(f"{where} q0: ") == daemon.stderr.count(f"{where} q0: native, zero")
        bench.wait_links()
        far.drain(0.5)
        near.drain(0.1)
        exchange(near, far, sent, sent)
        exchange(far, near, sent, sent)
    final = daemon.stop()
    dropped = sum(sum(one["drops"].values()) for one in final["sockets"])
    assert dropped and total(final, "rx_packets") == total(final, "tx_packets") + dropped, final
