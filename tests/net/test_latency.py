"""A lone frame is forwarded at once: nothing waits for a full burst or for a poll to time out.

RIG-2, idle patch, native and skb, spinning and in poll. Send time is read just before the send,
arrival is the kernel's stamp at the far tap. Every frame must come; the median must be under 10 ms.
"""

import statistics
import struct
import time

import frames
import pytest
from lab import SLOWNESS

pytestmark = pytest.mark.alone

LIMIT = 0.010 * SLOWNESS
ATTEMPTS = 7
SILENCE = 0.15  # longer than the 100 ms that a poll may sleep: it has slept at least once
GEN_IP, SINK_IP = "10.77.0.1", "10.77.0.2"


def question_and_answer(kind, rig, n):
    """A frame from gen to sink and what the sink would answer."""
    gen, sink = rig.macs["g0"], rig.macs["s0"]
    if kind == "arp":
        return (frames.arp(1, gen, GEN_IP, SINK_IP), frames.arp(2, sink, SINK_IP, GEN_IP, gen))
    if kind == "ping":
        data = bytes(range(48))
        packets = (frames.ipv4(GEN_IP, SINK_IP, frames.ICMP, frames.icmp_echo(8, 1, n, data)),
                   frames.ipv4(SINK_IP, GEN_IP, frames.ICMP, frames.icmp_echo(0, 1, n, data)))
    else:
        packets = (frames.tcp_syn(GEN_IP, SINK_IP, 40000 + n, 80),
                   frames.tcp_syn(SINK_IP, GEN_IP, 80, 40000 + n, flags=0x12))
    return (frames.ethernet(sink, gen, frames.IPV4, packets[0]),
            frames.ethernet(gen, sink, frames.IPV4, packets[1]))


def one_way(sender, receiver, frame):
    before = time.time()
    assert sender.send(frame)
    got = receiver.receive(2)
    assert got, f"a lone frame never came to {receiver.where}"
    assert got[0] == frame
    return got[1] - before


@pytest.mark.parametrize("kind", ["arp", "ping", "syn"])
def test_lone_frame_within_10_ms(rig2, tap, millraced, attach, waiting, kind):
    """Field case 37."""
    rig = rig2()
    near, far = tap(rig.gen, "g0"), tap(rig.sink, "s0")
    daemon = millraced(rig.dut, "-l", "-i", "d0", "-i", "d1", attach=attach, waiting=waiting)
    there, back = [], []
    for n in range(ATTEMPTS):
        time.sleep(SILENCE)
        question, answer = question_and_answer(kind, rig, n)
        there.append(one_way(near, far, question))
        back.append(one_way(far, near, answer))
    daemon.stop()
    assert statistics.median(there) < LIMIT, there
    assert statistics.median(back) < LIMIT, back


def test_first_frame_ever_and_after_long_silence(rig2, tap, millraced, attach, waiting):
    rig = rig2()
    near, far = tap(rig.gen, "g0"), tap(rig.sink, "s0")
    delays = []
    for n in range(3):
        daemon = millraced(rig.dut, "-l", "-i", "d0", "-i", "d1", attach=attach, waiting=waiting)
        first = one_way(near, far, frames.numbered(n))
        time.sleep(0.7)
        after = one_way(near, far, frames.numbered(n + 10))
        delays.append((first, after))
        daemon.stop()
    firsts, afters = zip(*delays)
    assert statistics.median(firsts) < LIMIT, delays
    assert statistics.median(afters) < LIMIT, delays


def test_l2fwd_answers_a_lone_frame_within_10_ms(rig1, tap, millraced, attach, waiting):
    rig = rig1()
    wire = tap(rig.gen, "g0")
    daemon = millraced(rig.dut, "-l", "-i", "d0", attach=attach, waiting=waiting)
    delays = []
    for n in range(ATTEMPTS):
        time.sleep(SILENCE)
        before = time.time()
        assert wire.send(frames.numbered(n))
        frame, arrived = wire.receive(2)
        assert frame == frames.swapped(frames.numbered(n))
        delays.append(arrived - before)
    daemon.stop()
    assert statistics.median(delays) < LIMIT, delays


def test_odd_number_of_frames_leaves_whole(rig2, tap, millraced, attach, waiting):
    """1, 2, ... 70 frames with a pause after each group: no remainder of a batch stays behind."""
    rig = rig2()
    near, far = tap(rig.gen, "g0"), tap(rig.sink, "s0")
    daemon = millraced(rig.dut, "-l", "-i", "d0", "-i", "d1", attach=attach, waiting=waiting)
    for group in (1, 2, 3, 31, 32, 33, 63, 64, 65, 70):
        sent = [frames.numbered(group * 100 + n) for n in range(group)]
        for frame in sent:
            assert near.send(frame)
        got = far.frames(group, 1)
        assert got == sent, f"{len(got)} of {group}"
    daemon.stop()


def test_echo_data_is_what_was_asked(rig2):
    """The frames above are what their names say (guards the test, not the daemon)."""
    rig = rig2()
    question, answer = question_and_answer("ping", rig, 5)
    assert frames.checksum(question[14:34]) == 0 and frames.checksum(question[34:90]) == 0
    assert struct.unpack_from("!BB", answer, 34) == (0, 0)
    syn, _ = question_and_answer("syn", rig, 5)
    assert frames.checksum(frames.pseudo_header(syn[14:], 6, 20) + syn[34:54]) == 0
