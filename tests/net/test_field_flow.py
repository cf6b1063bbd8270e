"""Traffic that stalled, leaked or vanished in the field (docs/field-cases.md; RIG-1, RIG-2)."""

import os
import re
import socket
import time

import frames
import pytest
from daemon import explained, program, total
from lab import SLOWNESS
from wire import exchange

GEN_IP, SINK_IP, PORT = "10.77.0.1", "10.77.0.2", 5001
ADDRESSES = {"g0": f"{GEN_IP}/24", "s0": f"{SINK_IP}/24"}
UDP_SEGMENT = 103
# A warning, not the advice that stands at every start.
ADVICE = r"`ethtool -K \S+.*\b(tx|gso|tso)\b.*off`"
MEGABYTE = 1 << 20


# Offloads of the senders

def copy(rig, task, size):
    """Bytes that arrive of a TCP copy from gen to sink; at most 3 s between two of them."""
    with rig.sink.entered():
        server = socket.create_server((SINK_IP, PORT))

    def receive():
        count = 0
        try:
            connection, _ = server.accept()
            with connection:
                connection.settimeout(3 * SLOWNESS)
                while chunk := connection.recv(1 << 16):
                    count += len(chunk)
        except TimeoutError:
            pass
        return count

    with server:
        server.settimeout(3 * SLOWNESS)
        receiver = task(receive)
        with rig.gen.entered():
            client = socket.socket()
        with client:
            client.settimeout(2 * SLOWNESS)
            try:
                client.connect((SINK_IP, PORT))
                client.sendall(bytes(size))
            except TimeoutError:
                pass
        return receiver.result(10 * SLOWNESS)


def test_tcp_with_default_offloads_copies_or_is_explained(rig2, task, millraced, attach):
    """Field cases 19 and 20: ping works and TCP never connects, since the sender leaves its
    checksums to a device that is not there. It must work, or the daemon say which offload to end.
    """
    rig = rig2(addresses=ADDRESSES)
    daemon = millraced(rig.dut, "-l", "-i", "d0", "-i", "d1", attach=attach)
    out = rig.gen.run("ping", "-c", 5, "-i", 0.05, "-W", 1, SINK_IP)
    assert " 5 received" in out, out
    arrived = copy(rig, task, MEGABYTE)
    daemon.stop()
    assert arrived == MEGABYTE or daemon.warnings(ADVICE), (
        f"{arrived} of {MEGABYTE} bytes, and not a word why:\n{daemon.stderr}")


def test_checksums_left_to_a_card_are_warned_of_by_name(rig2, tap, task, millraced, attach):
    """Field case 20: the first TCP and UDP frames of a port are looked at; a hit is one warning."""
    rig = rig2(addresses=ADDRESSES)
    daemon = millraced(rig.dut, "-l", "-i", "d0", "-i", "d1", attach=attach)
    # Whole ones first: they are none of our business.
    tap(rig.gen, "g0").send_all(frames.udp_flow(flow, 0) for flow in range(20))
    assert total(daemon.quiet_record(), "partial_checksums") == 0
    assert not daemon.warnings("pseudo-header")
    copy(rig, task, 1000)
    record = daemon.quiet_record()
    daemon.stop()
    assert total(record, "partial_checksums", "d0") > 0
    assert total(record, "partial_checksums", "d1") == 0
    said = daemon.warnings("pseudo-header")
    assert len(said) == 1 and said[0].startswith("millraced: warning: d0: "), daemon.stderr
    assert "`ethtool -K g0 tx off`" in said[0], said[0]


def test_udp_left_to_be_segmented_arrives_or_is_explained(rig2, tap, millraced, attach):
    """Field case 19: in skb mode a sender's super-frame comes whole and fits no chunk. Each of its
    datagrams must arrive, or the daemon say which offload to end; it is counted either way.
    """
    rig = rig2(addresses=ADDRESSES)
    daemon = millraced(rig.dut, "-l", "-i", "d0", "-i", "d1", attach=attach)
    rig.gen.run("ping", "-c", 1, "-W", 1, SINK_IP)
    far = tap(rig.sink, "s0")
    payload = os.urandom(32000)
    with rig.gen.entered():
        sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with sender:
        sender.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, 1000)
        assert sender.sendto(payload, (SINK_IP, 9)) == len(payload)
    got = [frame for frame in far.drain(0.3) if frame[23:24] == bytes([frames.UDP])]
    record = daemon.quiet_record()
    daemon.stop()
    assert program(record, "d0")["seen"] == explained(record, "d0")
    if b"".join(frame[42:] for frame in got) != payload:
        assert total(record, "rx_dropped", "d0") > 0
        assert daemon.warnings(ADVICE), (
            f"{len(got)} of 32 datagrams, and not a word why:\n{daemon.stderr}")


# Round and round

@pytest.mark.parametrize("flags, frames_held", [
    (["-f", "2048", "--ring-size=16"], 80), (["-f", "4096", "--ring-size=16"], 80)],
    ids=["2048", "4096"])
def test_each_frame_goes_back_as_its_chunk(rig1, tap, millraced, attach, flags, frames_held):
    """Field case 23: 100 times round the memory, in all sizes. An address that crept, or went back
    as received instead of as the chunk's, shows in the bytes, as a bad descriptor, or in the audit.
    """
    rig = rig1()
    wire = tap(rig.gen, "g0")
    daemon = millraced(rig.dut, "-l", "-i", "d0", *flags, attach=attach)
    sent = [frames.numbered(n, 60 + n * 7 % 1455) for n in range(100 * frames_held)]
    exchange(wire, wire, sent, [frames.swapped(frame) for frame in sent], window=16)
    final = daemon.stop()
    assert [worker["total"] for worker in final["workers"]] == [frames_held]
    assert total(final, "rx_packets") == total(final, "tx_packets") == len(sent)
    assert total(final, "rx_invalid_descs") == total(final, "tx_invalid_descs") == 0
    assert sum(sum(one["drops"].values()) for one in final["sockets"]) == 0


def test_one_way_load_starves_no_port(rig2, tap, millraced, attach):
    """Field case 41: one memory for two devices; what came in on one and left by the other must go
    back to the first. 100 times round one way, then back the other, and no fill ring ran dry.
    """
    rig = rig2()
    near, far = tap(rig.gen, "g0"), tap(rig.sink, "s0")
    daemon = millraced(rig.dut, "-l", "-i", "d0", "-i", "d1", "--ring-size=16", attach=attach)
    held = daemon.next_record()["workers"][0]["total"]
    sent = [frames.numbered(n) for n in range(100 * held)]
    exchange(near, far, sent, sent, window=16)
    exchange(far, near, sent[:len(sent) // 2], sent[:len(sent) // 2], window=16)
    final = daemon.stop()
    for record in daemon.records:
        assert total(record, "rx_fill_ring_empty_descs") == 0, str(record)
        assert total(record, "rx_dropped") == total(record, "rx_ring_full") == 0, str(record)
    assert total(final, "tx_packets", "d1") == len(sent)
    assert total(final, "tx_packets", "d0") == len(sent) // 2


def test_smallest_rings_receive_every_frame_at_low_rate(rig1, tap, millraced, attach, waiting):
    """Field case 26: the least that is accepted still moves 100 frames/s, none empty, none late."""
    rig = rig1()
    wire = tap(rig.gen, "g0")
    daemon = millraced(rig.dut, "-l", "-i", "d0", "--ring-size=16", "-f", 2048, "-b", 1,
                       attach=attach, waiting=waiting)
    for n in range(100):
        frame = frames.numbered(n, 60 + n)
        assert wire.send(frame)
        answer = wire.receive(1)
        assert answer and answer[0] == frames.swapped(frame), f"frame {n}: {answer}"
        time.sleep(0.01)
    final = daemon.stop()
    assert total(final, "rx_packets") == total(final, "tx_packets") == 100
    assert wire.drain() == []


# Sending that the kernel refuses

@pytest.mark.parametrize("attach, waiting", [("native", "poll"), ("skb", "spin")])
def test_refused_sends_are_counted_and_never_fatal(rig1, tap, millraced, attach, waiting):
    """Field case 35: the peer is down, so each send gives EBUSY and the kernel drops the frame. It
    ends all the same, with every frame accounted for; and once the peer is up all 1000 arrive.
    """
    rig = rig1()
    rig.gen.link_down("g0")
    daemon = millraced(rig.dut, "-t", "-i", "d0", "-C", 1000, attach=attach, waiting=waiting,
                       ready=False)
    final = daemon.ended(5 * SLOWNESS)
    assert total(final, "tx_packets") == 1000, "completed, so not ours to send again"
    assert rig.dut.link("d0")["stats64"]["tx"]["dropped"] == 1000
    assert re.search(r"d0 q0: .*EBUSY 1000\b", daemon.stderr), daemon.stderr
    rig.gen.link_up("g0")
    wire = tap(rig.gen, "g0")
    millraced(rig.dut, "-t", "-i", "d0", "-C", 1000, attach=attach, waiting=waiting,
              ready=False).ended(5 * SLOWNESS)
    assert len(wire.drain()) == 1000
