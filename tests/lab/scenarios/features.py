# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a kernel lacks is found at the start and said in a line; the rest is there, in copy mode."""

import frames
from daemon import explained, program, total
from wire import exchange

NICS = ("igb", "virtio", "e1000e")
SECONDS = 240
NATIVE = ("igb", "virtio")
COUNT = 5000
MULTI_BUFFER = (6, 6)  # the first kernel with it


def version(release):
    return tuple(int(word) for word in release.split("-")[0].split("+")[0].split(".")[:2])


def rxdrop(bench, *flags):
    """Every frame and byte is counted, more than the memory holds."""
    wire = bench.tap("g0")
    daemon = bench.millraced("-r", "-p", "-q", "all", "-i", "d0", *flags)
    assert {one["copy"] for one in daemon.bound.values()} == {"copy"}, daemon.stderr
    sizes = [60 + n % 1455 for n in range(COUNT)]
    wire.send_all(frames.numbered(n, size, dst=bench.macs["d0"]) for n, size in enumerate(sizes))
    record = daemon.quiet_record()
    final = daemon.stop()
    assert program(record, "d0")["seen"] == explained(record, "d0") == COUNT, record
    assert program(record, "d0")["passed"] == 0
    assert (total(final, "rx_packets"), total(final, "rx_bytes")) == (COUNT, sum(sizes)), final


def l2fwd(bench, *flags):
    """Every frame comes back with its addresses swapped."""
    wire = bench.tap("g0")
    sent = [frames.numbered(n, 60 + n % 1455, dst=bench.macs["d0"]) for n in range(1500)]
    daemon = bench.millraced("-l", "-p", "-q", "all", "-i", "d0", *flags)
    exchange(wire, wire, sent, [frames.swapped(frame) for frame in sent])
    final = daemon.stop()
    assert total(final, "rx_packets") == total(final, "tx_packets") == len(sent), final


def passes(bench, *flags):
    """The program of this kernel gives the host what rules say, and sends back the rest."""
    wire, mac = bench.tap("g0"), bench.macs["d0"]

    def ip(packet):
        return frames.ethernet(mac, frames.ALICE, frames.IPV4, packet)

    hosts = [frames.ethernet(mac, frames.ALICE, 0x88CC, bytes(46)),
             ip(frames.tcp_syn("192.0.2.9", "192.0.2.8", 999, 22)),
             ip(frames.udp("192.0.2.1", "192.0.2.8", 9, 9, b"")),
             ip(frames.ipv4("192.0.2.9", "192.0.2.8", 89, bytes(24)))]
    sent = [ip(frames.tcp_syn("192.0.2.9", "192.0.2.8", 999, 23)),
            ip(frames.udp("192.0.2.9", "192.0.2.8", 9, 22, b""))]
    sent += [frames.numbered(n, dst=mac) for n in range(200)]
    daemon = bench.millraced("-l", "-p", "-q", "all", "-i", "d0", *flags, "--pass=ethertype 0x88cc, "
                             "tcp dport 22, host 192.0.2.1", "--pass=proto 89")
    wire.send_all(hosts)
    wire.send_all(sent)
    # Several flows on several queues: each keeps its own order only.
    got = wire.frames(len(sent)) + wire.drain()
    assert sorted(got) == sorted(frames.swapped(frame) for frame in sent), len(got)
    assert program(daemon.quiet_record(), "d0")["passed"] == len(hosts)
    daemon.stop()


def copies(bench, *flags):
    """This kernel has the filter for what the host and the wire both need, and cards their tags."""
    near, far = bench.tap("g0"), bench.tap("s0")
    daemon = bench.millraced("-l", "-p", *flags, "-i", "d0", "-i", "d1",
                             "--pass=both ethertype 0x88b5, both vlan 9")
    sent = [frames.tagged(frames.numbered(n, 60 + 14 * n), *tags) for n in range(40)
            for tags in ((), ((frames.VLAN, 9),), ((frames.VLAN, 0x6064),))]
    for one, other in ((near, far), (far, near)):
        one.send_all(sent)
        got = other.frames(len(sent)) + other.drain()
        # In any order: transmit queues that are chosen by CPU, and fq_codel, keep none.
        assert sorted(got) == sorted(sent), (len(got), other.lost())
    record = daemon.quiet_record()
    for port in ("d0", "d1"):
        assert program(record, port)["passed"] == len(sent), record
    assert not daemon.warnings("both need"), daemon.stderr
    daemon.stop()


def run(bench):
    attach = "-N" if bench.nic in NATIVE else "-S"
    rxdrop(bench, attach, "-c")
    l2fwd(bench, attach, "-c")
    l2fwd(bench, attach, "-c", "-m")
    passes(bench, attach, "-c")
    copies(bench, attach, "-c")
    if version(bench.kernel) >= MULTI_BUFFER:
        rxdrop(bench, attach, "-c", "-F")
        l2fwd(bench, attach, "-c", "-F")
        return
    # In one line, whether copy was asked for or is what is left.
    for flags in (["-c"], []):
        said = bench.refused("-l", "-q", "all", "-i", "d0", attach, "-F", *flags).split("\n")
        assert len(said) == 1 and "multi-buffer" in said[0] and "-F" in said[0], said
    if attach == "-N":
        said = bench.refused("-l", "-q", "all", "-i", "d0", attach, "-F", "-z").split("\n")
        assert len(said) == 1 and "no zero-copy with multi-buffer" in said[0], said
