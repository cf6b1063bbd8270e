"""wait = adaptive (RIG-2): a lone frame in silence, idle cost, all frames under every strategy."""

import statistics
import time

import frames
import pytest
from daemon import total
from lab import SLOWNESS
from test_latency import one_way

LONE_LIMIT = 0.0002 * SLOWNESS
ALL = {"adaptive": [], "spin": ["--wait=spin"], "poll": ["-p"], "adaptive,busy-poll": ["-B"],
       "spin,busy-poll": ["--wait=spin,busy-poll"], "poll,busy-poll": ["-p", "-B"]}


@pytest.mark.alone
@pytest.mark.parametrize("silence, attempts", [(0.15, 15), pytest.param(10, 20, marks=pytest.mark.full)])
def test_a_lone_frame_is_forwarded_at_once(rig2, tap, millraced, silence, attempts):
    """After so many seconds of silence."""
    rig = rig2()
    near, far = tap(rig.gen, "g0"), tap(rig.sink, "s0")
    daemon = millraced(rig.dut, "-l", "-i", "d0", "-i", "d1")
    delays = []
    for n in range(attempts):
        time.sleep(silence)
        delays.append(one_way(near, far, frames.numbered(n)))
    daemon.stop()
    assert statistics.median(delays) < LONE_LIMIT, sorted(delays)


@pytest.mark.alone
@pytest.mark.parametrize("seconds", [4, pytest.param(60, marks=pytest.mark.full)])
def test_idle_it_takes_under_half_a_percent_of_a_core(rig2, tap, millraced, seconds):
    """Also after traffic, for which it has spun."""
    rig = rig2()
    near, far = tap(rig.gen, "g0"), tap(rig.sink, "s0")
    daemon = millraced(rig.dut, "-l", "-i", "d0", "-i", "d1")
    near.send_all(frames.numbered(n) for n in range(2000))
    assert len(far.frames(2000)) == 2000
    before, start = daemon.cpu_seconds(), time.monotonic()
    time.sleep(seconds)
    share = (daemon.cpu_seconds() - before) / (time.monotonic() - start)
    daemon.stop()
    assert share < 0.005, f"{100 * share:.2f} % of a core"


def test_every_strategy_forwards_all_frames(rig2, tap, millraced, attach):
    """Single frames, pairs and bursts, with pauses in which a poller spins, falls asleep, and sleeps."""
    rig = rig2()
    near, far = tap(rig.gen, "g0"), tap(rig.sink, "s0")
    for flags in ALL.values():
        daemon = millraced(rig.dut, "-l", "-i", "d0", "-i", "d1", *flags, attach=attach)
        count = 0
        for burst, pause in ((1, 0), (1, 1e-5), (2, 1e-4), (64, 1e-3), (300, 2e-2), (1, 0.12)) * 3:
            sent = [frames.numbered(count + n) for n in range(burst)]
            near.send_all(sent)
            assert far.frames(burst, 1) == sent, flags
            count += burst
            time.sleep(pause)
        final = daemon.stop()
        assert total(final, "tx_packets", "d1") == count, flags
