"""SIGKILL, restarts, second users and foreign programs (RIG-1, RIG-2).

Nothing of ours stays behind, nothing of others is touched, and EBUSY never reaches the user.
"""

import random
import re
import signal
import subprocess
import time

import frames
import pytest
from daemon import total
from lab import run, wait_until
from wire import exchange
from xsk import Squatter

BUSY = re.compile(r"EBUSY|resource busy", re.I)


def patch_flags():
    return ["-l", "-i", "d0", "-i", "d1"]


@pytest.mark.parametrize("moment", ["under load", "while starting"])
def test_sigkill_at_random_moments_leaves_nothing(rig2, tap, stream, millraced, attach, moment,
                                                  share):
    """Field case 43, 25 times each in a full run: nothing attached, no promiscuity, the next start works."""
    rig = rig2()
    near, far = tap(rig.gen, "g0"), tap(rig.sink, "s0")
    load = stream(near, lambda seq: frames.numbered(seq), 5000)
    rng = random.Random(attach + moment)
    for _ in range(share(25)):
        daemon = millraced(rig.dut, *patch_flags(), attach=attach, ready=moment == "under load")
        time.sleep(rng.uniform(0, 0.15))
        daemon.kill()
        assert daemon.process.returncode == -signal.SIGKILL, f"ended before the kill: {daemon}"
        wait_until(lambda: rig.dut.attached() == {}, 1, "program gone after SIGKILL")
        assert [rig.dut.promiscuity(port) for port in rig.ports] == [0, 0]
    load.stop()
    daemon = millraced(rig.dut, *patch_flags(), attach=attach)
    far.drain()
    sent = [frames.numbered(n) for n in range(200)]
    exchange(near, far, sent, sent)
    assert not BUSY.search(daemon.stderr)
    daemon.stop()


def test_restart_in_the_other_attach_mode_after_sigkill(rig1, tap, millraced):
    """Field case 43."""
    rig = rig1()
    wire = tap(rig.gen, "g0")
    for attach in ("native", "skb", "native", "skb"):
        daemon = millraced(rig.dut, "-l", "-i", "d0", attach=attach)
        exchange(wire, wire, [frames.numbered(1)], [frames.swapped(frames.numbered(1))])
        daemon.kill()
    assert rig.dut.attached() == {}


@pytest.mark.parametrize("attach, times", [("native", 100), ("skb", 40)])
def test_many_restarts_without_a_pause(rig1, tap, millraced, attach, times, share):
    """Field case 1, a hundred times in a full run: every generation starts, forwards a frame and says nothing of EBUSY."""
    rig = rig1()
    wire = tap(rig.gen, "g0")
    for n in range(share(times)):
        daemon = millraced(rig.dut, "-l", "-i", "d0", attach=attach)
        if n % 10 == 0:
            exchange(wire, wire, [frames.numbered(n)], [frames.swapped(frames.numbered(n))])
        final = daemon.stop()
        assert not BUSY.search(daemon.stderr), daemon.stderr
        assert total(final, "rx_packets") == (n % 10 == 0)
    assert rig.dut.attached() == {}


def test_sigkill_then_start_at_once_many_times(rig1, millraced, attach, share):
    """Field case 1, fifty times in a full run."""
    rig = rig1()
    for _ in range(share(50)):
        daemon = millraced(rig.dut, "-r", "-i", "d0", attach=attach)
        daemon.kill()
        assert not BUSY.search(daemon.stderr), daemon.stderr


def test_start_before_the_killed_one_is_gone(rig1, millraced, attach):
    """Not even waited for: the killed one's link is still being taken apart."""
    rig = rig1()
    for _ in range(20):
        daemon = millraced(rig.dut, "-r", "-i", "d0", attach=attach)
        daemon.send(signal.SIGKILL)
    millraced(rig.dut, "-r", "-i", "d0", attach=attach).stop()


def test_clean_end_leaves_nothing(rig2, millraced, attach):
    """Field case 43."""
    rig = rig2()
    daemon = millraced(rig.dut, *patch_flags(), attach=attach)
    assert set(rig.dut.attached()) == {"d0", "d1"}
    daemon.stop()
    assert rig.dut.attached() == {}
    assert [rig.dut.promiscuity(port) for port in rig.ports] == [0, 0]


def test_program_says_whose_it_is(rig1, millraced, attach):
    rig = rig1()
    daemon = millraced(rig.dut, "-i", "d0", attach=attach)
    shown = run("bpftool", "prog", "show", "id", rig.dut.attached()["d0"])
    assert re.search(r" name millrace", shown), shown
    link = rig.dut.link("d0")["xdp"]
    assert link["mode"] == {"native": 1, "skb": 2}[attach]
    daemon.stop()


def test_queue_of_another_socket_is_refused_by_name(rig1, millraced, closing, attach):
    """Field case 2: no program is in the way, but another AF_XDP socket has the queue. After a
    retry say so.
    """
    rig = rig1()
    squatter = closing(Squatter(rig.dut, "d0"))
    said = millraced(rig.dut, "-r", "-i", "d0", attach=attach, ready=False).fails(1)
    assert re.search(r"d0 q(ueue )?0", said), said
    assert re.search(r"another AF_XDP socket", said), said
    assert rig.dut.attached() == {}
    squatter.close()
    millraced(rig.dut, "-r", "-i", "d0", attach=attach).stop()


def test_queue_that_becomes_free_during_the_retry_is_taken(rig1, millraced, closing, attach):
    """Field case 1."""
    rig = rig1()
    squatter = closing(Squatter(rig.dut, "d0"))
    daemon = millraced(rig.dut, "-r", "-i", "d0", attach=attach, ready=False)
    time.sleep(0.5)
    squatter.close()
    daemon.wait_ready()
    assert not BUSY.search(daemon.stderr), daemon.stderr
    daemon.stop()


@pytest.mark.parametrize("second", ["native", "skb", "auto"])
def test_second_millraced_is_refused_and_harms_nothing(rig1, tap, millraced, second):
    """Field case 2; with traffic meanwhile: test_field_open.py."""
    rig = rig1()
    wire = tap(rig.gen, "g0")
    first = millraced(rig.dut, "-r", "-i", "d0")
    before = rig.dut.attached()
    wire.send_all(frames.numbered(n) for n in range(500))
    other = millraced(rig.dut, "-r", "-i", "d0", attach=second, ready=False)
    said = other.fails(1, timeout=10)
    assert re.search(rf"d0: another millraced.*held by pid {first.pid} .*end pid {first.pid} first",
                     said), said
    assert rig.dut.attached() == before
    wire.send_all(frames.numbered(n) for n in range(500))
    first.quiet_record()
    assert total(first.stop(), "rx_packets") == 1000


def test_foreign_program_is_named_and_stays(rig1, millraced, foreign_object, attach):
    rig = rig1()
    kind = {"native": "xdpdrv", "skb": "xdpgeneric"}[attach]
    rig.dut.ip("link", "set", "d0", kind, "obj", foreign_object, "sec", "xdp")
    before = rig.dut.attached()
    for mode in ("native", "skb", "auto"):
        said = millraced(rig.dut, "-i", "d0", attach=mode, ready=False).fails(1)
        assert f"d0: XDP program {before['d0']} 'foreign_pass' ({attach} mode)" in said
        assert rig.dut.attached() == before
    typed, = re.findall(r"`(ip .*?)`", said)
    rig.dut.run(*typed.split())
    millraced(rig.dut, "-i", "d0", attach=attach).stop()


def test_program_of_a_link_names_its_holder_and_stays(rig1, millraced, foreign_link, attach):
    rig = rig1()
    holder = foreign_link(rig.dut, "d0", attach)
    before = rig.dut.attached()
    said = millraced(rig.dut, "-i", "d0", ready=False).fails(1)
    assert f"'foreign_link' ({attach} mode, held by pid {holder.pid} (" in said
    assert f"end pid {holder.pid}, or start with --replace" in said
    assert rig.dut.attached() == before
    holder.close()
    millraced(rig.dut, "-i", "d0").stop()


@pytest.mark.parametrize("ours", ["native", "skb"])
def test_replace_takes_a_foreign_program_off_for_good(rig1, tap, millraced, foreign_object, attach,
                                                      ours):
    rig = rig1()
    kind = {"native": "xdpdrv", "skb": "xdpgeneric"}[attach]
    rig.dut.ip("link", "set", "d0", kind, "obj", foreign_object, "sec", "xdp")
    daemon = millraced(rig.dut, "-i", "d0", "--replace", attach=ours)
    warnings = [text for _, text in daemon.err if "warning" in text]
    assert len(warnings) == 1, daemon.stderr
    assert f"'foreign_pass' ({attach} mode) was taken off for --replace" in warnings[0]
    assert "not be put back" in warnings[0]
    tap(rig.gen, "g0").send_all(frames.numbered(n) for n in range(10))
    daemon.quiet_record()
    assert total(daemon.stop(), "rx_packets") == 10
    assert rig.dut.attached() == {}


def test_replace_takes_off_what_a_link_holds(rig1, millraced, foreign_link, attach):
    rig = rig1()
    holder = foreign_link(rig.dut, "d0", attach)
    daemon = millraced(rig.dut, "-i", "d0", "--replace")
    assert f"held by pid {holder.pid} (" in daemon.stderr
    assert holder.running, "its owner is let live"
    daemon.stop()
    assert rig.dut.attached() == {}


def test_replace_of_a_link_needs_sys_admin_and_says_so(rig1, millraced, foreign_link):
    rig = rig1()
    foreign_link(rig.dut, "d0", "native")
    before = rig.dut.attached()
    daemon = millraced(rig.dut, "-i", "d0", "--replace", ready=False,
                       wrap=lambda argv: ["capsh", "--drop=cap_sys_admin", "--", "-c",
                                          "exec " + " ".join(argv)])
    assert "only CAP_SYS_ADMIN can take it off" in daemon.fails(1)
    assert rig.dut.attached() == before


def test_replace_with_nothing_to_replace_says_nothing(rig1, millraced):
    rig = rig1()
    daemon = millraced(rig.dut, "-i", "d0", "--replace")
    assert "warning" not in daemon.stderr
    daemon.stop()


@pytest.mark.parametrize("second", ["native", "skb", "auto"])
def test_replace_never_evicts_a_running_millraced(rig1, millraced, second):
    rig = rig1()
    first = millraced(rig.dut, "-i", "d0")
    before = rig.dut.attached()
    said = millraced(rig.dut, "-i", "d0", "--replace", attach=second, ready=False).fails(1)
    assert f"end pid {first.pid} first, --replace does not" in said
    assert rig.dut.attached() == before
    first.stop()


def test_sigterm_while_waiting_for_a_leaving_one_ends_as_asked(rig1, millraced):
    """It waits for up to a second for a program named like ours, and looks for signals meanwhile."""
    rig = rig1()
    first = millraced(rig.dut, "-i", "d0")
    second = millraced(rig.dut, "-i", "d0", ready=False, json_lines=False)
    time.sleep(0.5)
    second.send(signal.SIGTERM)
    code, took = second.wait(10)
    assert (code, second.stderr) == (0, "millraced: ended before forwarding began"), str(second)
    first.stop()


def test_foreign_program_on_the_second_port_frees_the_first(rig2, millraced, foreign_object):
    rig = rig2()
    rig.dut.ip("link", "set", "d1", "xdpdrv", "obj", foreign_object, "sec", "xdp")
    before = rig.dut.attached()
    said = millraced(rig.dut, *patch_flags(), ready=False).fails(1)
    assert "d1" in said
    assert rig.dut.attached() == before
    assert [rig.dut.promiscuity(port) for port in rig.ports] == [0, 0]


def test_our_program_cannot_be_taken_away_by_accident(rig1, millraced):
    """`ip link set xdp off` and a replacement both fail while we hold the link."""
    rig = rig1()
    daemon = millraced(rig.dut, "-i", "d0")
    before = rig.dut.attached()
    done = subprocess.run(rig.dut.command("ip", "link", "set", "d0", "xdp", "off"),
                          capture_output=True, timeout=10)
    assert done.returncode != 0
    assert rig.dut.attached() == before
    daemon.stop()
