"""Links that go down, come back or vanish under load (RIG-2 patch, RIG-1).

Down and up: the process stays, forwarding resumes within 1 s of up, nothing twice, nothing changed,
frame balance exact. Deleted: exit 1 naming the device, everything released. SIGTERM meanwhile: exit
0 in 2 s, and the frames that never left are named.
"""

import re
import signal
import time

import frames
import pytest
from daemon import program, total
from lab import SLOWNESS, wait_until
from wire import exchange

RATE = 5000
RESUME = 1.0 * SLOWNESS
HOW = [("native", "spin"), ("native", "poll"), ("skb", "poll")]
ATTEMPTS = 3  # at resuming in time: the machine may be busy with something else
NOT_COMPLETED = re.compile(r"\b([1-9]\d*) frames? not completed")


class Received:
    """What a tap gets, checked on the way: each frame as sent, numbers rising, so none twice."""

    def __init__(self, tap):
        self._tap = tap
        self.last, self.count = -1, 0

    def take(self, quiet=0.0):
        while item := self._tap.receive(quiet):
            frame, _ = item
            number = frames.number_of(frame)
            assert frame == frames.numbered(number, len(frame)), frame.hex()
            assert number > self.last, f"frame {number} after {self.last}"
            self.last, self.count = number, self.count + 1

    def seconds_to_next(self, send_count, timeout):
        """Seconds until a frame comes that was sent after now."""
        self.take()
        line = send_count()
        start = time.monotonic()

        def came():
            self.take()
            return self.last >= line
        wait_until(came, timeout, "forwarding resumes", step=0.001)
        return time.monotonic() - start


@pytest.fixture
def loaded(rig2, tap, stream, millraced):
    """A patch under a steady numbered stream from g0 to s0."""
    def start(attach, waiting, rate=RATE):
        rig = rig2()
        near, far = tap(rig.gen, "g0"), tap(rig.sink, "s0")
        daemon = millraced(rig.dut, "-l", "-i", "d0", "-i", "d1", attach=attach, waiting=waiting)
        load = stream(near, lambda seq: frames.numbered(seq, 100), rate)
        received = Received(far)
        received.seconds_to_next(lambda: load.given, 5)
        return rig, daemon, load, received
    return start


@pytest.mark.parametrize("attach, waiting", HOW)
@pytest.mark.parametrize("where", ["d0", "d1", "g0", "s0"])
def test_link_down_and_up_under_load(loaded, attach, waiting, where):
    """Field case 52."""
    rig, daemon, load, received = loaded(attach, waiting)
    owner = {"d": rig.dut, "g": rig.gen, "s": rig.sink}[where[0]]
    took = []
    while len(took) < ATTEMPTS and min(took, default=RESUME) >= RESUME:
        owner.link_down(where)
        time.sleep(0.5)
        received.take()
        at = received.count
        time.sleep(0.2)
        received.take()
        assert received.count == at, "frames pass a link that is down"
        owner.link_up(where)
        took.append(received.seconds_to_next(lambda: load.given, 5))
        assert daemon.running, str(daemon)
    at, refused = (received.last, received.count), load.refused
    time.sleep(0.5)
    load.stop()
    received.take(0.2)
    assert min(took) < RESUME, took
    lost = received.last - at[0] - (received.count - at[1]) - (load.refused - refused)
    assert received.last == load.given - 1 and lost == 0, f"{lost} lost after it had resumed"
    daemon.stop()


@pytest.mark.parametrize("attach, waiting", [("native", "poll"), ("skb", "spin")])
@pytest.mark.parametrize("where", ["d0", "d1"])
def test_nothing_is_lost_after_the_link_is_back(rig2, tap, millraced, attach, waiting, where):
    rig = rig2()
    near, far = tap(rig.gen, "g0"), tap(rig.sink, "s0")
    daemon = millraced(rig.dut, "-l", "-i", "d0", "-i", "d1", attach=attach, waiting=waiting)
    rig.dut.link_down(where)
    time.sleep(0.3)
    rig.dut.link_up(where)
    wait_until(lambda: rig.gen.link("g0")["operstate"] == "UP" and
               rig.sink.link("s0")["operstate"] == "UP", 5, "links up")
    time.sleep(RESUME)
    sent = [frames.numbered(n) for n in range(3000)]
    exchange(near, far, sent, sent)
    exchange(far, near, sent, sent)
    daemon.stop()


def test_link_down_and_up_under_flood(rig2, flood, millraced, attach, waiting):
    """Field case 52: the same promises with all that the generator can make, rings full."""
    rig = rig2()
    rig.gro_on("d0", "s0")
    sink = flood(rig.sink, "sink", "s0", "--check")
    daemon = millraced(rig.dut, "-l", "-i", "d0", "-i", "d1", attach=attach, waiting=waiting)
    generator = flood(rig.gen, "gen", "g0")

    def forwarded():
        return rig.sink.link("s0")["stats64"]["rx"]["packets"]

    wait_until(lambda: forwarded() > 1000, 5, "forwarding")
    took = []
    while len(took) < ATTEMPTS and min(took, default=RESUME) >= RESUME:
        rig.dut.link_down("d1")
        time.sleep(0.5)
        rig.dut.link_up("d1")
        stale = forwarded() + 4096  # the TX ring and what is under way were received before
        took.append(wait_until(lambda: forwarded() > stale, 5, "forwarding resumes"))
    generator.stop()
    daemon.stop()
    got = sink.stop()
    assert (got["foreign"], got["corrupt"], got["duplicates"], got["late"]) == (0, 0, 0, 0), got
    assert min(took) < RESUME, took


@pytest.mark.parametrize("where", ["d0", "d1"])
def test_device_deleted_under_flood(rig2, flood, millraced, attach, waiting, where):
    rig = rig2()
    rig.gro_on("d0")
    daemon = millraced(rig.dut, "-l", "-i", "d0", "-i", "d1", attach=attach, waiting=waiting)
    flood(rig.gen, "gen", "g0")
    time.sleep(0.3)
    rig.dut.ip("link", "del", where)
    daemon.ended(5 * SLOWNESS, code=1)
    assert where in daemon.stderr.split("forwarding", 1)[1], daemon.stderr
    assert rig.dut.attached() == {}


@pytest.mark.alone
def test_down_for_long_keeps_poll_idle(loaded, attach):
    """Field case 52: less than 5 % CPU in poll mode while a port is down and nothing comes."""
    rig, daemon, load, received = loaded(attach, "poll")
    load.stop()
    rig.dut.link_down("d1")
    time.sleep(0.2)
    before = daemon.cpu_seconds()
    time.sleep(2)
    used = daemon.cpu_seconds() - before
    rig.dut.link_up("d1")
    daemon.stop()
    assert used < 0.1 * SLOWNESS, f"{used:.3f} s CPU in 2 s"


@pytest.mark.alone
def test_down_for_long_under_load_sleeps_and_drops_by_name(loaded, attach):
    """Field case 52: 3 s down while frames keep coming. The poller sleeps, what cannot leave is
    counted as link_down, all is well within 1 s of up, and each frame has one fate.

    That it sleeps is counted: once a frame, with two calls. The case's 5 % of CPU time are measured
    without load above: on a virtual machine a wake-up of 25 us is charged as much as 1 ms for many
    seconds on end, while `perf record -e cpu-clock` finds the poller in 1 of 300 samples.
    """
    rig, daemon, load, received = loaded(attach, "poll", rate=200)
    rig.dut.link_down("d1")
    time.sleep(0.2)
    first = daemon.next_record()
    time.sleep(3)
    while_down = daemon.next_record()
    came = total(while_down, "rx_packets", "d0") - total(first, "rx_packets", "d0")
    sleeps, calls = (while_down["sockets"][1]["calls"][which] - first["sockets"][1]["calls"][which]
                     for which in ("poll", "copy_tx"))
    rig.dut.link_up("d1")
    took = received.seconds_to_next(lambda: load.given, 5)
    load.stop()
    received.take(0.2)
    record = daemon.quiet_record()
    final = daemon.stop()
    assert sleeps <= came + 50 and calls <= 2 * came + 50, (came, sleeps, calls)
    assert took < RESUME
    dropped = final["sockets"][0]["drops"]["link_down"]
    assert while_down["sockets"][0]["drops"]["link_down"] > 400, str(while_down)
    assert program(record, "d0")["seen"] == total(record, "rx_packets", "d0") == load.given
    assert total(final, "rx_packets", "d0") == total(final, "tx_packets", "d1") + dropped
    refused_by_veth = rig.dut.link("d1")["stats64"]["tx"]["dropped"]
    assert received.count == total(final, "tx_packets", "d1") - refused_by_veth


@pytest.mark.parametrize("attach, waiting", HOW)
@pytest.mark.parametrize("where, by", [("d0", "itself"), ("d1", "itself"), ("d1", "peer")])
def test_device_deleted_under_load(loaded, attach, waiting, where, by):
    """Field case 53; with a new device of the same name: test_field_open.py."""
    rig, daemon, load, _ = loaded(attach, waiting)
    other = "d1" if where == "d0" else "d0"
    if by == "itself":
        rig.dut.ip("link", "del", where)
    else:
        rig.sink.ip("link", "del", "s0")
    daemon.ended(5 * SLOWNESS, code=1)
    assert where in daemon.stderr.split("forwarding", 1)[1], daemon.stderr
    assert rig.dut.attached() == {}
    assert rig.dut.promiscuity(other) == 0
    load.stop()


@pytest.mark.parametrize("mode", ["-r", "-t", "-l"])
def test_only_device_deleted(rig1, millraced, attach, waiting, mode):
    """Field cases 32 and 53."""
    rig = rig1()
    daemon = millraced(rig.dut, mode, "-i", "d0", attach=attach, waiting=waiting)
    time.sleep(0.1)
    rig.gen.ip("link", "del", "g0")
    daemon.ended(5 * SLOWNESS, code=1)
    assert "d0" in daemon.stderr.split("forwarding", 1)[1], daemon.stderr


def test_start_works_on_the_recreated_device(rig2, tap, millraced):
    """Field case 53."""
    rig = rig2()
    daemon = millraced(rig.dut, "-l", "-i", "d0", "-i", "d1")
    rig.dut.ip("link", "del", "d1")
    daemon.ended(5 * SLOWNESS, code=1)
    rig.join(rig.sink, "s0", "d1")
    daemon = millraced(rig.dut, "-l", "-i", "d0", "-i", "d1")
    sent = [frames.numbered(n) for n in range(200)]
    exchange(tap(rig.gen, "g0"), tap(rig.sink, "s0"), sent, sent)
    daemon.stop()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_txpush_ends_while_the_device_is_down(rig1, millraced, attach, waiting, number):
    """Field case 32."""
    rig = rig1()
    daemon = millraced(rig.dut, "-t", "-i", "d0", attach=attach, waiting=waiting)
    time.sleep(0.2)
    rig.dut.link_down("d0")
    time.sleep(0.3)
    daemon.stop(number)
    assert NOT_COMPLETED.search(daemon.stderr), daemon.stderr


@pytest.mark.parametrize("attach, waiting", HOW)
def test_patch_ends_while_the_egress_is_down(loaded, attach, waiting):
    """Field case 32."""
    rig, daemon, load, _ = loaded(attach, waiting)
    rig.dut.link_down("d1")
    time.sleep(0.3)
    daemon.stop()
    assert NOT_COMPLETED.search(daemon.stderr), daemon.stderr
    load.stop()


def test_txpush_goes_on_after_down_and_up(rig1, millraced, attach, waiting):
    """Field case 32: sending resumes with no leak and without a restart."""
    rig = rig1()
    daemon = millraced(rig.dut, "-t", "-i", "d0", attach=attach, waiting=waiting)
    time.sleep(0.2)
    rig.dut.link_down("d0")
    time.sleep(0.3)
    rig.dut.link_up("d0")
    before = rig.gen.link("g0")["stats64"]["rx"]["packets"]
    took = wait_until(lambda: rig.gen.link("g0")["stats64"]["rx"]["packets"] > before + 100, 5,
                      "sending resumes")
    assert took < RESUME
    daemon.stop()


@pytest.mark.parametrize("where", ["g0", "d0"])
def test_ends_in_time_whatever_is_down(rig1, millraced, attach, waiting, where):
    """No traffic at all, peer or device down: SIGTERM still ends it in 2 s."""
    rig = rig1()
    daemon = millraced(rig.dut, "-l", "-i", "d0", attach=attach, waiting=waiting)
    (rig.gen if where == "g0" else rig.dut).link_down(where)
    time.sleep(0.2)
    final = daemon.stop()
    assert total(final, "rx_packets") == 0
    assert not NOT_COMPLETED.search(daemon.stderr)


@pytest.mark.parametrize("where", ["d0", "d1"])
def test_start_while_down_becomes_active_on_up(rig2, tap, millraced, attach, where):
    """Field case 52."""
    rig = rig2()
    near, far = tap(rig.gen, "g0"), tap(rig.sink, "s0")
    rig.dut.link_down(where)
    daemon = millraced(rig.dut, "-l", "-i", "d0", "-i", "d1", attach=attach, waiting="poll")
    rig.dut.link_up(where)
    wait_until(lambda: rig.gen.link("g0")["operstate"] == "UP" and
               rig.sink.link("s0")["operstate"] == "UP", 5, "links up")
    time.sleep(RESUME)
    sent = [frames.numbered(n) for n in range(200)]
    exchange(near, far, sent, sent)
    exchange(far, near, sent, sent)
    daemon.stop()
