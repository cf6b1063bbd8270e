"""The helper process that keeps the capabilities, and what it changes on the host and puts back.

RIG-1 and RIG-2. A veth has both offloads by which a device takes VLAN tags out of frames.
"""

import os
import pathlib
import re
import signal
import time

import frames
import pytest
from daemon import stopped, total
from lab import SLOWNESS, wait_until
from refuse import refusing
from wire import exchange

PATCH = ["-l", "-i", "d0", "-i", "d1"]
OFFLOADS = ("rx-vlan-offload", "rx-vlan-stag-hw-parse")
ON, OFF = dict.fromkeys(OFFLOADS, "on"), dict.fromkeys(OFFLOADS, "off")


def offloads(rig, port):
    shown = rig.dut.run("ethtool", "-k", port)
    return {name: re.search(rf"^{name}: (\w+)", shown, re.M).group(1) for name in OFFLOADS}


def children(pid):
    return pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def helper_of(daemon):
    found = children(daemon.pid)
    assert len(found) == 1, f"children {found}: {daemon}"
    return int(found[0])


def status(pid, field):
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return re.search(rf"^{field}:\s+(.*)$", text, re.M).group(1)


def gone(pid):
    return not pathlib.Path(f"/proc/{pid}").exists()


def nothing_is_left(rig, helper):
    wait_until(lambda: gone(helper), 2 * SLOWNESS, "end of the helper")
    assert [offloads(rig, port) for port in rig.ports] == [ON] * len(rig.ports)
    assert [rig.dut.promiscuity(port) for port in rig.ports] == [0] * len(rig.ports)
    wait_until(lambda: rig.dut.attached() == {}, 2 * SLOWNESS, "program gone")


def test_helper_has_the_capabilities_and_the_daemon_none(rig2, millraced):
    rig = rig2()
    daemon = millraced(rig.dut, *PATCH)
    helper = helper_of(daemon)
    assert status(helper, "Name") == "millrace-opener"
    for name in ("CapEff", "CapPrm"):
        assert int(status(daemon.pid, name), 16) == 0
        assert int(status(helper, name), 16) != 0
    daemon.stop()
    assert gone(helper)


def test_helper_holds_nothing_of_the_daemons(rig2, millraced):
    """No socket, map, link or promiscuous mode, and not its standard output: all would outlive it."""
    rig = rig2()
    daemon = millraced(rig.dut, *PATCH)
    folder = pathlib.Path(f"/proc/{helper_of(daemon)}/fd")
    held = {int(one.name): os.readlink(one) for one in folder.iterdir()}
    assert set(held) == {0, 1, 2, 3} and held[3].startswith("socket:"), held
    assert held[0] == held[1] == held[2] == os.readlink(f"/proc/{daemon.pid}/fd/2")
    assert held[2] != os.readlink(f"/proc/{daemon.pid}/fd/1")
    daemon.stop()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_host_is_as_before_however_it_ends(rig2, millraced, attach, number):
    rig = rig2()
    daemon = millraced(rig.dut, *PATCH, attach=attach)
    helper = helper_of(daemon)
    assert [offloads(rig, port) for port in rig.ports] == [OFF, OFF]
    if number == signal.SIGKILL:
        daemon.kill()
    else:
        daemon.stop(number)
        assert gone(helper), "nothing is left when it has ended"
    nothing_is_left(rig, helper)
    assert not daemon.warnings(), daemon.stderr


def test_host_is_as_before_after_a_start_that_fails(rig2, millraced, foreign_object):
    rig = rig2()
    rig.dut.ip("link", "set", "d1", "xdpdrv", "obj", foreign_object, "sec", "xdp")
    assert "d1" in millraced(rig.dut, *PATCH, ready=False).fails(1)
    rig.dut.ip("link", "set", "d1", "xdpdrv", "off")
    assert [offloads(rig, port) for port in rig.ports] == [ON, ON]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("switches", [["rxvlan"], ["rxvlan", "rx-vlan-stag-hw-parse"]])
def test_what_was_off_before_stays_off(rig2, millraced, switches, number):
    rig = rig2()
    for switch in switches:
        rig.dut.ethtool_set("d0", switch, "off")
    before = offloads(rig, "d0")
    daemon = millraced(rig.dut, *PATCH)
    helper = helper_of(daemon)
    assert [offloads(rig, port) for port in rig.ports] == [OFF, OFF]
    daemon.stop() if number == signal.SIGTERM else daemon.kill()
    wait_until(lambda: gone(helper), 2 * SLOWNESS, "end of the helper")
    assert (offloads(rig, "d0"), offloads(rig, "d1")) == (before, ON)


@pytest.mark.parametrize("mode", ["-r", "-t"])
def test_modes_that_do_not_forward_change_nothing(rig1, millraced, mode):
    rig = rig1()
    daemon = millraced(rig.dut, mode, "-i", "d0")
    assert offloads(rig, "d0") == ON
    daemon.stop()
    assert offloads(rig, "d0") == ON


def test_device_whose_offloads_cannot_be_told_is_refused(rig1, millraced):
    """SIOCETHTOOL refused. A device that has them fixed: tests/xdp/test_offload.c."""
    rig = rig1()
    said = millraced(rig.dut, "-l", "-i", "d0", ready=False, json_lines=False,
                     wrap=refusing("ioctl,1=0x8946:EOPNOTSUPP")).fails(1)
    assert re.fullmatch(r"millraced: error: d0: .*rx-vlan-offload.*EOPNOTSUPP.*`vlan-offload = keep` in "
                        r"its \[port\] section, or --vlan-offload=keep, .*", said), said
    assert rig.dut.attached() == {}


def test_device_that_is_deleted_does_not_keep_the_other_from_being_restored(rig2, millraced):
    rig = rig2()
    daemon = millraced(rig.dut, *PATCH)
    rig.gen.ip("link", "del", "g0")
    daemon.ended(5 * SLOWNESS, code=1)
    assert offloads(rig, "d1") == ON
    assert not daemon.warnings("rx-vlan"), daemon.stderr


# The helper dies

def test_daemon_goes_on_without_the_helper_and_says_what_it_cannot_do(rig2, tap, millraced):
    rig = rig2()
    near, far = tap(rig.gen, "g0"), tap(rig.sink, "s0")
    daemon = millraced(rig.dut, *PATCH)
    helper = helper_of(daemon)
    os.kill(helper, signal.SIGKILL)
    wait_until(lambda: "helper process" in daemon.stderr, 5 * SLOWNESS, "message")
    wait_until(lambda: gone(helper), 2 * SLOWNESS, "no zombie is left")
    sent = [frames.numbered(n) for n in range(500)]
    exchange(near, far, sent, sent)
    final = daemon.stop()
    assert total(final, "rx_packets") == len(sent)
    lost = [text for _, text in daemon.err if "helper" in text]
    assert len(lost) == 1, daemon.stderr
    assert f"pid {helper}, was killed by signal 9" in lost[0] and "restart millraced" in lost[0]
    assert [offloads(rig, port) for port in rig.ports] == [OFF, OFF]
    for command in re.findall(r"`(.*?)`", lost[0]):
        rig.dut.run(*command.split())
    assert [offloads(rig, port) for port in rig.ports] == [ON, ON]
    assert [rig.dut.promiscuity(port) for port in rig.ports] == [0, 0]


def test_helper_that_dies_with_nothing_changed_leaves_nothing_to_type(rig1, millraced):
    rig = rig1()
    daemon = millraced(rig.dut, "-r", "-i", "d0")
    os.kill(helper_of(daemon), signal.SIGKILL)
    wait_until(lambda: "helper process" in daemon.stderr, 5 * SLOWNESS, "message")
    daemon.stop()
    assert "ethtool" not in daemon.stderr


def test_helper_that_dies_during_an_act_fails_the_start(rig1, millraced):
    """The act: waiting for the program of another millraced, which may be about to leave."""
    rig = rig1()
    first = millraced(rig.dut, "-r", "-i", "d0")
    before = rig.dut.attached()
    second = millraced(rig.dut, "-r", "-i", "d0", ready=False, json_lines=False)
    wait_until(lambda: children(second.pid), 5 * SLOWNESS, "its helper")
    helper = helper_of(second)
    os.kill(helper, signal.SIGSTOP)
    time.sleep(0.2)  # for the request, if it was not there yet
    os.kill(helper, signal.SIGKILL)
    said = second.fails(1)
    assert said.startswith(f"millraced: error: the helper process, pid {helper}, was killed by "), said
    assert rig.dut.attached() == before
    first.stop()


# Signals

def test_signals_do_not_end_the_helper(rig2, millraced):
    """A terminal's and a service manager's go to both. It ends when the daemon does."""
    rig = rig2()
    daemon = millraced(rig.dut, *PATCH)
    helper = helper_of(daemon)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        os.kill(helper, number)
    daemon.next_record()
    assert not gone(helper) and "helper" not in daemon.stderr
    daemon.stop()
    nothing_is_left(rig, helper)


def test_helper_that_hangs_delays_the_end_by_no_more_than_a_moment(rig2, millraced):
    rig = rig2()
    daemon = millraced(rig.dut, *PATCH)
    helper = helper_of(daemon)
    with stopped(helper):
        daemon.send(signal.SIGTERM)
        assert daemon.process.wait(5 * SLOWNESS) == 0
    nothing_is_left(rig, helper)
    daemon.wait(5)
    assert daemon.warnings(f"pid {helper}, takes longer than 800 ms"), daemon.stderr
    daemon.audit()


# Frames

def test_tagged_frames_cross_a_patch_as_they_are(rig2, tap, millraced, attach):
    rig = rig2()
    near, far = tap(rig.gen, "g0"), tap(rig.sink, "s0")
    daemon = millraced(rig.dut, *PATCH, attach=attach)
    tags = [[], [(frames.VLAN, 0x2064)], [(frames.QINQ, 0x0007), (frames.VLAN, 0x0fff)],
            [(frames.VLAN, 0)]]
    sent = [frames.tagged(frames.numbered(n, 60 + n), *tags[n % len(tags)]) for n in range(400)]
    exchange(near, far, sent, sent)
    exchange(far, near, sent, sent)
    assert total(daemon.stop(), "rx_packets") == 2 * len(sent)
