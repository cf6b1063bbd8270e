"""Case 62: a cable between two ports of the bridge itself, l0 and l1, beside a station on each of d0 and d1.

What a loop does and what holds it: told by stations that flap and by probes, limited by
storm-broadcast, cut by loop-block; and the host answers all the while.
"""

import contextlib
import time

from appliance import forward, port
from control import millracectl
from daemon import balanced, total
from frames import BROADCAST, ethernet
from lab import SLOWNESS, wait_until
from test_bridge import frame, mac
from wire import Wire

FLAPPING = "loop-suspected: stations flap between ports l0 and l1"
PROBED = "loop-suspected: a probe out of port l0 or l1 came back on the other"


def cable(star):
    """Two stations, silent, and the two ends of a cable, both here."""
    rig = star(stations="ab")
    rig.silence()
    rig.dut.ip("link", "add", "l0", "type", "veth", "peer", "name", "l1")
    for end in ("l0", "l1"):
        rig.dut.link_up(end)
    return rig


def sections(attach, limit=0, **keys):
    return [*(port(name, name, attach=attach) for name in ("d0", "d1")),
            *(port(name, name, attach=attach, storm_broadcast=limit) for name in ("l0", "l1")),
            forward("br", "bridge", "d0 d1 l0 l1", **keys)]


def said_within(daemon, text, seconds, since):
    """The daemon says that so soon after `since`; what it said before does not count."""
    def when():
        return next((at for at, line in list(daemon.err) if text in line and at >= since), None)

    wait_until(lambda: when() is not None, 5 * SLOWNESS, text)
    took = when() - since
    assert took < seconds * SLOWNESS, f"{text!r} after {took:.2f} s"
    print(f"{text!r} after {took:.2f} s")


def reasons(file):
    return {one["port"]: one["reason"] for one in file.ask("ports")["ports"]}


def listening(rig, name):
    """A tap for a moment: one that stays open takes all of a storm."""
    return contextlib.closing(Wire(rig.station[name], f"{name}0"))


def broadcast(rig, count, pause=0):
    """From station a, from now on; returns when that is."""
    begin = time.monotonic()
    with listening(rig, "a") as a:
        for number in range(count):
            a.send(frame(mac(1), BROADCAST, bytes([number])))
            time.sleep(pause)
    return begin


def test_stations_that_flap(star, millraced, file, attach):
    """One broadcast starts a storm, and is told of; then it is limited; then it is cut: each by a reload, and
    the bridge runs on."""
    rig = cable(star)
    file.write(*sections(attach))
    began = time.monotonic()
    daemon = millraced(rig.dut, "--config", file.path, json_lines=True)
    said_within(daemon, FLAPPING, 1, broadcast(rig, 1))
    # The storm goes on, and the host answers.
    asked = time.monotonic()
    assert millracectl(file.sock, "status")[0] == 0
    rig.dut.run("ping", "-c", 3, "-i", 0.01, "-W", 1, "127.0.0.1")
    assert time.monotonic() - asked < 1 * SLOWNESS
    with listening(rig, "b") as b:
        storm = len(b.frames(1000, 0.5))
        assert storm == 1000, f"{storm} frames of one are no storm"
    # A limit where the loop is, alone: of all that goes round 100 a second come in at each end.
    file.take(*sections(attach, limit=100))
    with listening(rig, "b") as b:
        begin = broadcast(rig, 100, pause=0.002)
        got, took = len(b.drain()), time.monotonic() - begin
    assert 100 <= got <= 100 + 2 * (10 + 100 * took), (got, took)
    assert reasons(file)["l1"] == FLAPPING
    # Blocked, it ends.
    file.take(*sections(attach, loop_block="600s"))
    blocked = "port l1 is blocked for 600 s (loop-block)"
    # One that comes while rings are full of the storm is dropped, and begins none.
    wait_until(lambda: broadcast(rig, 1) and daemon.said(blocked), 5 * SLOWNESS, blocked, step=0.1)
    assert reasons(file)["l1"].endswith("; l1 is blocked for 600 s")
    with listening(rig, "b") as b:
        assert len(b.drain(0.05)) < 100  # what was under way
    # Not blocked, there is nothing that could go round.
    begin = time.monotonic()
    file.take(*sections(attach))
    said_within(daemon, "port l1 is not blocked any more", 1, begin)
    assert len(daemon.said("forward br: runs on with other parameters")) == 3
    # A storm of moves is told of each 10 seconds.
    told, took = daemon.said("moved from port"), time.monotonic() - began
    assert 1 <= len(told) <= 1 + took / 10, told
    final = daemon.stop()
    assert balanced(final), final


def test_probes(star, millraced, file, tap, attach):
    """Nobody sends a frame, and the loop is told of and cut, for as long as it is there."""
    rig = cable(star)
    file.write(*sections(attach))
    b = tap(rig.station["b"], "b0")
    daemon = millraced(rig.dut, "--config", file.path, json_lines=True)
    began = time.monotonic()
    file.take(*sections(attach, loop_probe="1s", loop_block="2s"))
    said_within(daemon, PROBED, 1, began)
    said_within(daemon, "port l1 is blocked for 2 s (loop-block)", 1, began)
    assert reasons(file) == {
        "d0": "", "d1": "",
        **dict.fromkeys(("l0", "l1"), f"{PROBED}; l1 is blocked for 2 s")}
    # Of ours, and nothing of a loop, is what is sent.
    got, _ = b.receive(2 * SLOWNESS)
    assert got[:36] == ethernet(BROADCAST, rig.macs["d1"], 0x88B5,
                                b"millrace\1\1" + got[24:28] + got[28:36], 36), got.hex()
    if attach == "native":  # what the main thread does with it does not depend on that
        said_within(daemon, "port l1 is blocked for another 2 s, for probes still come back", 4,
                    began)
        rig.dut.link_down("l0")
        # A round may have gone out in between, and then it is blocked once more.
        said_within(daemon, "port l1 is not blocked any more", 8, began)
    metrics = file.ask("metrics")["text"]
    assert "millrace_loop_probes_total{" in metrics
    final = daemon.stop()
    assert total(final, "probes", "d1") == 1 + len(b.drain()), final
    assert sum(one["drops"]["loop_probe"] for one in final["sockets"]) >= 1
    assert balanced(final), final


def test_a_loop_behind_one_port(star, millraced, file, tap):
    """The station gives the probe back where it came from, as a switch does that has a loop."""
    rig = cable(star)
    file.write(*sections("native", loop_probe="60s"))
    rig.dut.link_down("l0")
    a = tap(rig.station["a"], "a0")
    daemon = millraced(rig.dut, "--config", file.path, json_lines=True)
    probe, _ = a.receive(2 * SLOWNESS)
    a.send(probe[:43] + bytes([probe[43] ^ 1]) + probe[44:])  # another bridge's, or a guess
    time.sleep(0.05)
    assert "loop-suspected" not in daemon.stderr
    begin = time.monotonic()
    a.send(probe)
    said_within(daemon, "loop-suspected: a probe out of port d0 came back on it", 0.5, begin)
    assert reasons(file)["d0"] == "loop-suspected: a probe out of port d0 came back on it"
    a.send(probe)
    daemon.quiet_record()
    final = daemon.stop()
    assert len(daemon.warnings("loop-suspected")) == 1
    drops = {one["interface"]: one["drops"] for one in final["sockets"]}
    assert (drops["d0"]["loop_probe"], drops["d0"]["source_own"]) == (2, 1), final
    assert balanced(final), final
