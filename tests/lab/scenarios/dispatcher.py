# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Beside another XDP program through libxdp's dispatcher, before it and behind it; theirs stays (case 47)."""

import frames
from daemon import program, total
from sharing import METHOD, Other, dropped, order, pins, wait_order
from wire import exchange

NICS = ("igb", "virtio")
SECONDS = 300
FLAG = {"native": "-N", "skb": "-S"}


def patched(near, far, first):
    sent = [frames.numbered(n, 60 + n % 1000) for n in range(first, first + 100)]
    exchange(near, far, sent, sent)
    exchange(far, near, sent, sent)


def check(bench, mode):
    near, far = bench.tap("g0"), bench.tap("s0")
    other = Other(bench, "d0", mode, 10)
    bench.wait_links()
    daemon = bench.millraced("-l", "-p", FLAG[mode], METHOD, "-i", "d0", "-i", "d1")
    assert {one["attach"] for one in daemon.bound.values()} == {mode}, daemon.stderr
    assert (order(bench, "d0"), order(bench, "d1")) == (["beside", "millrace"], ["millrace"])

    # Behind it: what it drops we never see.
    before = other.count
    near.send_all([dropped(n) for n in range(20)])
    patched(near, far, 0)
    assert other.count - before == 120, f"{other.count - before} frames"
    assert program(daemon.quiet_record(), "d0")["seen"] == 100

    # It leaves and another one comes behind us: of what we redirect that sees nothing.
    other.leave()
    assert order(bench, "d0") == ["millrace"]
    patched(near, far, 100)
    other = Other(bench, "d0", mode, 90)
    assert order(bench, "d0") == ["millrace", "beside"]
    before = other.count
    patched(near, far, 200)
    sent = [dropped(n) for n in range(20)]
    exchange(near, far, sent, sent)
    assert other.count == before, "a frame that was redirected"
    record = daemon.quiet_record()
    assert program(record, "d0")["seen"] == total(record, "rx_packets", "d0") == 320, record
    assert "program lost" not in daemon.stderr and not daemon.warnings("dispatcher"), daemon.stderr

    # Ours is gone when we are, theirs goes on.
    daemon.stop()
    wait_order(bench, "d0", "beside")
    assert list(bench.dut.attached()) == ["d0"]
    bench.wait_links()
    before = other.count
    near.send_all([frames.numbered(n, dst=bench.dut.mac("d0")) for n in range(30)])
    far.drain(0.5)
    assert other.count - before == 30, f"{other.count - before} frames of 30"
    other.leave()
    assert bench.dut.attached() == {} and pins() == [], pins()
    bench.wait_links()
    near.close()
    far.close()


def run(bench):
    for mode in ("native", "skb"):
        check(bench, mode)
