"""Poll costs nothing when idle (RIG-1, RIG-2): under 1 % of a core over 3 s; spin is told apart."""

import time

import frames
import pytest
from daemon import total

pytestmark = pytest.mark.alone

IDLE_SECONDS, IDLE_SHARE = 3, 0.01


def share(daemon, seconds):
    before, start = daemon.cpu_seconds(), time.monotonic()
    time.sleep(seconds)
    return (daemon.cpu_seconds() - before) / (time.monotonic() - start)


def ports(rig):
    return [flag for port in rig.ports for flag in ("-i", port)]


@pytest.mark.parametrize("attach, mode", [("native", "-r"), ("skb", "-l")])
def test_idle_poll_uses_under_one_percent(rig1, millraced, attach, mode):
    rig = rig1()
    daemon = millraced(rig.dut, mode, *ports(rig), attach=attach, waiting="poll")
    assert share(daemon, IDLE_SECONDS) < IDLE_SHARE
    daemon.stop()


def test_idle_patch_in_poll_uses_under_one_percent_after_traffic(rig2, tap, millraced, attach):
    """POLLOUT asked for once must not stay asked for."""
    rig = rig2()
    daemon = millraced(rig.dut, "-l", *ports(rig), attach=attach, waiting="poll")
    tap(rig.gen, "g0").send_all(frames.numbered(n) for n in range(2000))
    daemon.quiet_record()
    assert share(daemon, IDLE_SECONDS) < IDLE_SHARE
    assert total(daemon.stop(), "tx_packets", "d1") == 2000


def test_spin_uses_a_core(rig1, millraced):
    """Control: spinning does use a core, so the figure above means something."""
    rig = rig1()
    daemon = millraced(rig.dut, "-r", *ports(rig), waiting="spin")
    assert share(daemon, 1) > 5 * IDLE_SHARE
    daemon.stop()
