# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Zero-copy from a configuration file, all queues: flows spread over the workers, each in order."""

import struct

import appliance
import frames
from daemon import total

NICS = ("igb", "virtio")
SECONDS = 120
ZERO_COPY = True
FLOWS, EACH = 64, 30


def flow_frame(flow, seq, dst=frames.BOB, src=frames.ALICE):
    """Flows told apart by address: by default igb takes no ports into its hash for UDP."""
    packet = frames.udp(f"198.18.0.{flow + 1}", "198.18.1.1", 1024, 9,
                        struct.pack("!II", flow, seq))
    return frames.ethernet(dst, src, frames.IPV4, packet)


def send_and_take(sender, receiver, sent):
    """Everything in windows; frames of different queues may overtake each other."""
    got = []
    for start in range(0, len(sent), 64):
        part = sent[start:start + 64]
        sender.send_all(part)
        got += receiver.frames(len(part), 5.0)
    return got


def check(got, sent):
    assert sorted(got) == sorted(sent), f"{len(got)} frames of {len(sent)}, or not the same ones"
    for flow in range(FLOWS):
        mine = sent[flow::FLOWS]
        assert [frame for frame in got if frame in set(mine)] == mine, f"flow {flow} out of order"


def run(bench):
    near, far = bench.tap("g0"), bench.tap("s0")
    conf = bench.file()
    path = conf.write(appliance.port("a", "d0", zero_copy="require"),
                      appliance.port("b", "d1", zero_copy="require"),
                      appliance.forward("main", "patch", "a b"))
    daemon = bench.zero_copy(f"--config={path}")
    sent = [flow_frame(flow, seq) for seq in range(EACH) for flow in range(FLOWS)]
    back = [flow_frame(flow, seq, frames.ALICE, frames.BOB)
            for seq in range(EACH) for flow in range(FLOWS)]
    check(send_and_take(near, far, sent), sent)
    check(send_and_take(far, near, back), back)
    status = conf.ask("status")
    final = daemon.stop()
    workers = len(final["workers"])
    assert workers == len(status["workers"]) == bench.queues_of("d0"), final
    for rx, tx in (("d0", "d1"), ("d1", "d0")):
        assert total(final, "rx_packets", rx) == total(final, "tx_packets", tx) == len(sent)
        spread = [one["rx_packets"] for one in final["sockets"] if one["interface"] == rx]
        assert len(spread) == workers and all(spread), f"{rx}: a queue had no traffic: {spread}"
