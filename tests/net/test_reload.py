"""Reload, by millracectl and by SIGHUP: what does not change loses nothing, what is refused changes
nothing, and what comes and goes leaves nothing.

RIG-2 with further pairs: gen(g2) <-> dut(d2), sink(s3) <-> dut(d3). The patch wan-lan on d0-d1 is
what carries the traffic that nothing may disturb.
"""

import contextlib
import os
import pathlib
import re
import resource
import signal
import time

import frames
import pytest
from appliance import devices_of, forward, forwards_of, port, unharmed
from control import Client, code
from daemon import program, total
from lab import SANITIZED, SLOWNESS, wait_until
from test_opener import OFF, ON, children, helper_of, offloads
from test_queues import packets_by_queue, peers
from wire import exchange
from xsk import Squatter

RATE = 3000
STAYS = "the configuration is not taken over; what ran before goes on"


@pytest.fixture
def rig(rig2):
    rig = rig2()
    rig.join(rig.gen, "g2", "d2")
    rig.join(rig.sink, "s3", "d3")
    return rig


@pytest.fixture
def start(rig, millraced, file):
    def run(*sections, **options):
        file.write(*sections)
        return millraced(rig.dut, "--config", file.path, **options)
    return run


@pytest.fixture
def ends(rig, tap):
    """Taps at both ends of the patch."""
    return tap(rig.gen, "g0"), tap(rig.sink, "s0")


def patch(name="main", attach="auto", wan=None, **keys):
    return [port("wan", "d0", attach=attach, **(wan or {})), port("lan", "d1", attach=attach),
            forward(name, "patch", "wan lan", **keys)]


def side(mode="rxdrop", device="d2", name="side", attach="auto", **keys):
    return [port("dmz", device, attach=attach), forward(name, mode, "dmz", **keys)]


def works(ends, first=0, count=200):
    near, far = ends
    sent = [frames.numbered(n) for n in range(first, first + count)]
    exchange(near, far, sent, sent)
    exchange(far, near, sent, sent)


def no_rx_loss(record, *devices):
    for name in devices:
        assert total(record, "rx_dropped", name) == total(record, "rx_ring_full", name) == 0, record


def log_since(daemon, at):
    return [text for _, text in daemon.err[at:]]


# What is refused changes nothing


@pytest.mark.parametrize("how", ["millracectl", "SIGHUP"])
def test_a_faulty_file_is_not_taken(start, file, ends, task, how):
    daemon = start(*patch())
    good = file.path.read_text()
    with unharmed(task, frames.numbered, *ends, RATE):
        wrong = [port("wan", "d0", quues=1), forward("main", "patch", "wan", batch=0)]
        if how == "millracectl":
            err = file.refuse(*wrong)
            assert re.match(rf"{file.path}:\d+: \[port wan\]: quues: no such key; did you mean queues\?",
                            err[0]), err
            assert any("batch = 0: must be 1 to 1024" in line for line in err), err
            assert any("takes two ports, not 1" in line for line in err), err
        else:
            file.write(*wrong)
            now = file.hang_up(daemon)
            assert now["generation"] == 0 and now["last_reload"]["ok"] is False
            assert now["last_reload"]["errors"] == 3
        wait_until(lambda: STAYS in daemon.stderr, 5 * SLOWNESS, "that it stays is read")
        assert daemon.stderr.count(STAYS) == 1
        assert daemon.stderr.count("quues: no such key") == 1, "said once"
        file.path.unlink()
        status, _, err = file.reload()
        assert status == 1 and "ENOENT" in err[0], err
        file.path.write_text(good)
        assert file.reload()[0] == 0
        assert file.ask("status")["generation"] == 1
    daemon.stop()


def test_the_answer_lists_the_errors(start, file, closing):
    daemon = start(*patch())
    client = closing(Client(file.sock))
    file.write(*patch(batch=0))
    answer = client.answer("reload")
    assert code(answer) == "failed" and isinstance(answer["error"]["errors"], list)
    assert any("batch = 0" in line for line in answer["error"]["errors"])
    daemon.stop()


@pytest.mark.parametrize("sections, says", [
    ([*patch(), *side(device="nix")], "nix: no such interface"),
    ([*patch(), *side(device="d0")], "d0"),
    ([*patch(), port("dmz", "d2", queues="0-3"), forward("side", "rxdrop", "dmz")], "ethtool -L"),
    ([*patch(wan={"queues": "7"})], "ethtool -L"),
], ids=["absent device", "one device twice", "a queue that is not there", "of what runs"])
def test_what_this_host_cannot_run_is_not_taken(start, rig, file, ends, task, sections, says):
    daemon = start(*patch())
    attached = rig.dut.attached()
    with unharmed(task, frames.numbered, *ends, RATE):
        assert says in "\n".join(file.refuse(*sections))
        assert rig.dut.attached() == attached
    final = daemon.stop()
    no_rx_loss(final, "d0", "d1")


def test_a_device_that_cannot_be_opened_leaves_all_as_before(start, rig, file, ends, task, closing):
    """One new forward is fine, the next one's queue is somebody else's."""
    closing(Squatter(rig.dut, "d3"))
    daemon = start(*patch())
    attached = rig.dut.attached()
    with unharmed(task, frames.numbered, *ends, RATE):
        err = file.refuse(*patch(batch=16), *side(), port("other", "d3"),
                          forward("third", "rxdrop", "other"))
        assert any("d3 q0: already bound by another AF_XDP socket" in line for line in err), err
        assert rig.dut.attached() == attached
        assert rig.dut.promiscuity("d2") == 0
        assert "forward side: ended" in daemon.stderr, "it ran for a moment"
        assert "third: ended" not in daemon.stderr and "main: ended" not in daemon.stderr
    assert set(forwards_of(file.ask("status"))) == {"main"}
    daemon.stop()


def test_a_rebuild_that_fails_goes_back(start, rig, file, ends, tap, closing):
    """The new version needs the old one's device, so the old must end first; then the new cannot be
    opened, and the old is started again."""
    near, far = ends
    squatter = closing(Squatter(rig.dut, "d3"))
    daemon = start(*patch(), *side())
    works(ends)
    third = tap(rig.gen, "g2")
    third.send_all([frames.numbered(n) for n in range(50)])
    wanted = [port("wan", "d0"), port("lan", "d3"), forward("main", "patch", "wan lan"), *side()]
    err = file.refuse(*wanted)
    for command in ("status", "stats", "metrics", "ports"):
        file.ask(command)
    assert any("d3 q0: already bound" in line for line in err), err
    daemon.next_record()
    assert not daemon.warnings("went to no socket"), "what the old program had seen is past"
    assert "forward main: ended; " in daemon.stderr and daemon.stderr.count(STAYS) == 1
    status = file.ask("status")
    assert devices_of(status) == {"wan": "d0", "lan": "d1", "dmz": "d2"}
    assert set(rig.dut.attached()) == {"d0", "d1", "d2"}
    works(ends, 1000)
    third.send_all([frames.numbered(n) for n in range(50)])
    squatter.close()
    file.take(*wanted)
    assert set(rig.dut.attached()) == {"d0", "d2", "d3"}
    works((near, tap(rig.sink, "s3")), 2000)
    final = daemon.stop()
    assert total(final, "rx_packets", "d2") == 100, "the other forward was left alone"


def test_nothing_is_ended_that_cannot_be_opened_again(start, rig, file, tap):
    """The helper is gone, and the new version needs the old one's devices."""
    daemon = start(*patch(), *side())
    helper = helper_of(daemon)
    os.kill(helper, signal.SIGKILL)
    wait_until(lambda: "helper process" in daemon.stderr, 5 * SLOWNESS, "message")
    err = file.refuse(*patch(ring_size=512), *side())
    assert any("helper" in line for line in err), err
    status = file.ask("status")
    assert set(forwards_of(status)) == {"main", "side"}, "both run on"
    works((tap(rig.gen, "g0"), tap(rig.sink, "s0")))
    daemon.stop()


# What changes in a running forward


PARAMETERS = [dict(wait="spin"), dict(wait="poll"), dict(batch=1), dict(wait="spin", batch=1024),
              dict(wait="poll", batch=16), {}]


@pytest.mark.parametrize("first", ["spin", "poll"])
def test_parameters_change_under_load(start, rig, file, ends, task, attach, first):
    near, far = ends
    daemon = start(*patch(attach=attach, wait=first))
    at = len(daemon.err)
    programs = rig.dut.attached()
    threads = set(os.listdir(f"/proc/{daemon.pid}/task"))

    def back(n):
        return frames.numbered(n, 100, frames.ALICE, frames.BOB)

    with unharmed(task, frames.numbered, near, far, RATE), unharmed(task, back, far, near, RATE):
        for keys in PARAMETERS * 2:
            now = file.take(*patch(attach=attach, **keys))
            assert {worker["wait"] for worker in now["workers"]} == {keys.get("wait", "adaptive")}
            time.sleep(0.05)
        for on in ("off", "on", "auto"):
            file.take(*patch(attach=attach, wan={"promiscuous": on}))
            assert (rig.dut.promiscuity("d0") > 0) is (on != "off")
            assert rig.dut.promiscuity("d1") > 0
    assert rig.dut.attached() == programs, "nothing was made anew"
    assert set(os.listdir(f"/proc/{daemon.pid}/task")) == threads
    said = log_since(daemon, at)
    assert sum("configuration read again: 1 forward" in line for line in said) == 15
    assert not any("ended" in line or "native" in line or "skb" in line for line in said), said
    final = daemon.stop()
    no_rx_loss(final, "d0", "d1")


def test_busy_poll_changes_in_a_running_forward(start, file, ends, task, attach):
    daemon = start(*patch(attach=attach))
    with unharmed(task, frames.numbered, *ends, RATE):
        for wait in ("busy-poll", "poll busy-poll", "spin", "poll busy-poll", "poll"):
            file.take(*patch(attach=attach, wait=wait))
            queue = file.ask("status")["ports"][0]["queues"][0]
            assert (queue["busy_poll"] != "off") is ("busy-poll" in wait), queue
            time.sleep(0.05)
    daemon.stop()


def test_cpus_change_in_a_running_forward(start, rig, file, ends, task):
    daemon = start(*patch(cpus="0"))
    with unharmed(task, frames.numbered, *ends, RATE):
        for cpu in (1, 0, 1):
            now = file.take(*patch(cpus=str(cpu)))
            assert [worker["cpu"] for worker in now["workers"]] == [cpu]
            tids = [int(tid) for tid in os.listdir(f"/proc/{daemon.pid}/task")]
            assert [os.sched_getaffinity(tid) for tid in tids if tid != daemon.pid] == [{cpu}]
    daemon.stop()


def test_nothing_changed_is_nothing_done(start, rig, file, ends, task):
    daemon = start(*patch(), *side())
    at = len(daemon.err)
    programs = rig.dut.attached()
    with unharmed(task, frames.numbered, *ends, RATE):
        file.take(*patch(), *side())
        file.take(*side(), *patch())
    assert rig.dut.attached() == programs
    assert not any("ended" in line for line in log_since(daemon, at))
    assert list(forwards_of(file.ask("status"))) == ["side", "main"], "in the file's order"
    daemon.stop()


def test_reload_puts_back_what_the_file_says(start, rig, file):
    daemon = start(*patch())
    file.ask("set", port="wan", promiscuous=False)
    assert rig.dut.promiscuity("d0") == 0
    file.take(*patch())
    assert rig.dut.promiscuity("d0") == 1
    assert [one["promiscuous"] for one in file.ask("status")["ports"]] == [True, True]
    file.take(*patch(wan={"promiscuous": "off"}))
    file.ask("set", port="wan", promiscuous=True)
    assert rig.dut.promiscuity("d0") == 1
    file.take(*patch(wan={"promiscuous": "off"}))
    assert rig.dut.promiscuity("d0") == 0
    daemon.stop()


def test_sighup_reads_it_again(start, rig, file):
    daemon = start(*patch())
    assert file.ask("status")["last_reload"] is None
    file.write(*patch(), *side())
    now = file.hang_up(daemon)
    assert now["generation"] == 1 and now["configuration"] == str(file.path)
    assert now["last_reload"]["ok"] is True and now["last_reload"]["errors"] == 0
    assert devices_of(now) == {"wan": "d0", "lan": "d1", "dmz": "d2"}
    wait_until(lambda: "configuration read again: 2 forwards" in daemon.stderr, 5, "a line")
    daemon.stop()


def test_sighup_without_a_control_socket(rig, millraced, file):
    file.path.write_text("\n".join(patch()))
    daemon = millraced(rig.dut, "--config", file.path)
    file.path.write_text("\n".join([*patch(), *side()]))
    daemon.send(signal.SIGHUP)
    wait_until(lambda: "configuration read again: 2 forwards" in daemon.stderr, 10 * SLOWNESS,
               "a line")
    assert set(rig.dut.attached()) == {"d0", "d1", "d2"}
    daemon.next_record()
    daemon.stop()


def test_what_cannot_be_started_again_is_said(start, file):
    """Neither the new nor the old can be had: the forward is gone, others go on, a reload mends it."""
    far = ("far", "d3", {})
    daemon = start(*side(), *receiver(far), *patch())
    files = pathlib.Path(f"/proc/{daemon.pid}/fd")
    before = len(os.listdir(files))
    file.take(*receiver(far), *patch())
    good = file.path.read_text()
    wait_until(lambda: len(os.listdir(files)) < before - 3, 5, "the side's files")
    # Only their numbers are left for new files: enough to read a file and answer, but not for a patch.
    taken = set(map(int, os.listdir(files)))
    limit = max(set(range(max(taken))) - taken) + 1
    soft, hard = resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, (limit, hard))
    said = "\n".join(file.refuse(*receiver(far), *patch(ring_size=1024)))
    assert "EMFILE" in said and "forward main: cannot be started again either" in said
    assert "what is left of the old one goes on" in daemon.stderr and STAYS not in daemon.stderr
    assert list(forwards_of(file.ask("status"))) == ["count"]
    resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, (soft, hard))
    file.path.write_text(good)
    assert file.reload()[0] == 0
    assert list(forwards_of(file.ask("status"))) == ["count", "main"]
    daemon.stop()


def test_what_is_fixed_at_the_start_is_named_each_time(start, file):
    """Held against what there is, not against the file before."""
    daemon = start(*patch())

    def reload(*lines):
        at = len(daemon.err)
        file.path.write_text("\n".join([*lines, *patch()]))
        status, _, err = file.reload()
        assert (status, err) == (0, [])
        wait_until(lambda: "configuration read again" in "\n".join(log_since(daemon, at)), 5, "a line")
        return [text.split("warning: ", 1)[1] for text in log_since(daemon, at) if "warning: " in text]

    both = "control-socket, keep-privileges: stay as at the start until a restart"
    for _ in range(2):
        assert reload("[millrace]", "keep-privileges = yes") in (
            [both], ["keep-privileges, control-socket: stay as at the start until a restart"])
    assert reload("[millrace]", f"control-socket = {file.sock}") == []
    assert reload() == ["control-socket: stays as at the start until a restart"]
    assert file.ask("status")["generation"] == 4
    daemon.stop()


def test_the_fate_of_each_forward_is_told(start, file):
    wan, lan, far = ("wan", "d0", {}), ("lan", "d1", {}), ("far", "d3", {})
    daemon = start(*receiver(wan, name="one"), *side(), *receiver(lan, name="three"))

    def fates(*sections):
        at = len(daemon.err)
        file.take(*sections)
        wait_until(lambda: "configuration read again" in "\n".join(log_since(daemon, at)), 5, "a line")
        return {match[1]: match[2] for text in log_since(daemon, at)
                if (match := re.search(r": forward (\w+): ([^;]+)$", text))}

    assert fates(*receiver(wan, name="one"), *side(), *receiver(lan, name="three")) == {
        "one": "unchanged", "side": "unchanged", "three": "unchanged"}
    assert fates(*receiver(wan, name="one", batch=16), *side(ring_size=512),
                 *receiver(lan, far, name="three")) == {
        "one": "runs on with other parameters", "side": "started anew",
        "three": "runs on with other ports"}
    assert fates(*receiver(wan, name="one", batch=16), *receiver(lan, name="three"),
                 *receiver(far, name="four")) == {
        "one": "unchanged", "three": "runs on with other ports", "four": "started"}
    daemon.stop()


# What comes and goes


@pytest.mark.parametrize("mode", ["rxdrop", "l2fwd", "txpush"])
def test_a_forward_comes_and_goes_and_the_other_loses_nothing(start, rig, tap, file, ends, task,
                                                              attach, mode):
    third = tap(rig.gen, "g2")
    daemon = start(*patch(attach=attach))
    extra = {"pps": 2000} if mode == "txpush" else {}
    with unharmed(task, frames.numbered, *ends, RATE):
        for turn in range(3):
            file.take(*patch(attach=attach), *side(mode, attach=attach, **extra))
            assert set(rig.dut.attached()) == {"d0", "d1", "d2"}
            sent = [frames.numbered(n) for n in range(100)]
            if mode == "txpush":
                assert len(third.frames(100, 2)) == 100
            elif mode == "l2fwd":
                exchange(third, third, sent, [frames.swapped(frame) for frame in sent])
            else:
                third.send_all(sent)
                wait_until(lambda: file.ask("stats")["totals"]["rx_packets"] >= 100, 2, "frames")
            # Untouched, and in the middle of its work.
            file.take(*patch(attach=attach), *side(mode, attach=attach, **extra))
            assert "side: ended" not in "\n".join(log_since(daemon, 0)[-3:])
            assert {worker["balance"] for worker in file.ask("status")["workers"]} == {0}
            file.take(*patch(attach=attach))
            third.drain()
            assert set(rig.dut.attached()) == {"d0", "d1"}
            ended = re.findall(r"forward side: ended; (\d+) frames reclaimed", daemon.stderr)
            assert len(ended) == turn + 1
            if mode != "txpush":
                assert int(ended[-1]) > 0, "what lay in its fill ring"
    final = daemon.stop()
    no_rx_loss(final, "d0", "d1")
    assert final["sockets"] and {one["interface"] for one in final["sockets"]} == {"d0", "d1"}


def test_a_port_is_replaced(start, rig, tap, file, ends):
    near, far = ends
    daemon = start(*patch())
    works(ends)
    now = file.take(port("wan", "d0"), port("lan", "d3"), forward("main", "patch", "wan lan"))
    assert devices_of(now) == {"wan": "d0", "lan": "d3"}
    assert set(rig.dut.attached()) == {"d0", "d3"}
    assert rig.dut.promiscuity("d1") == 0
    works((near, tap(rig.sink, "s3")), 500)
    assert far.drain() == []
    daemon.stop()


def test_two_forwards_exchange_a_port(start, rig, tap, file, ends):
    """Each new one needs what the other still has."""
    near, far = ends
    daemon = start(*patch(), *side())
    works(ends)
    file.take(port("wan", "d0"), port("lan", "d2"), port("dmz", "d1"),
              forward("main", "patch", "wan lan"), forward("side", "l2fwd", "dmz"))
    works((near, tap(rig.gen, "g2")), 500)
    sent = [frames.numbered(n) for n in range(100)]
    exchange(far, far, sent, [frames.swapped(frame) for frame in sent])
    daemon.stop()


def test_a_forward_gets_another_name(start, rig, tap, file, ends):
    daemon = start(*patch())
    works(ends)
    now = file.take(*patch("trunk"))
    assert set(forwards_of(now)) == {"trunk"}
    assert "forward main: ended; " in daemon.stderr
    works(ends, 500)
    daemon.stop()


@pytest.mark.parametrize("keys", [{"ring_size": 512}, {"frags": "yes"}, {"shared_umem": "yes"},
                                  {"frame_size": 2048}], ids=str)
def test_other_memory_is_a_new_start(start, rig, tap, file, ends, keys):
    daemon = start(*patch())
    works(ends)
    file.take(*patch(**keys))
    assert daemon.stderr.count("forward main: ended; ") == 1
    works(ends, 500)
    file.take(*patch(**keys))
    assert daemon.stderr.count("forward main: ended; ") == 1
    daemon.stop()


def test_the_vlan_offload_of_what_ended_is_put_back(start, rig, file):
    daemon = start(*patch(), *side("l2fwd"))
    assert [offloads(rig, name) for name in ("d0", "d1", "d2")] == [OFF] * 3
    file.take(*patch())
    assert [offloads(rig, name) for name in ("d0", "d1", "d2")] == [OFF, OFF, ON]
    file.take(*patch(), *side("l2fwd"))
    assert offloads(rig, "d2") == OFF
    file.take(*side("rxdrop"))
    assert [offloads(rig, name) for name in ("d0", "d1", "d2")] == [ON] * 3
    daemon.stop()


def test_a_device_of_what_ended_may_go(start, rig, file, ends):
    """Deleted, it is nobody's loss any more; while it is in use its port waits: test_link_events.py."""
    daemon = start(*patch(), *side())
    file.take(*patch())
    rig.gen.ip("link", "del", "g2")
    works(ends)
    rig.join(rig.gen, "g2", "d2")
    file.take(*patch(), *side())
    rig.gen.ip("link", "del", "g2")
    wait_until(lambda: "port dmz: gone" in daemon.stderr, 5 * SLOWNESS, "it is told")
    works(ends)
    daemon.stop()


def test_without_the_helper_parameters_still_change(start, rig, file, ends, task):
    daemon = start(*patch())
    os.kill(helper_of(daemon), signal.SIGKILL)
    wait_until(lambda: "helper process" in daemon.stderr, 5 * SLOWNESS, "message")
    with unharmed(task, frames.numbered, *ends, RATE):
        file.take(*patch(batch=16, wait="spin"))
        err = file.refuse(*patch(batch=16, wait="spin"), *side())
        assert any("helper" in line for line in err), err
        assert set(rig.dut.attached()) == {"d0", "d1"}
        file.take(*patch(wan={"promiscuous": "off"}))
        assert rig.dut.promiscuity("d0") == 0
        file.take(*patch())
        assert rig.dut.promiscuity("d0") == 1
    daemon.stop()


# Single ports of a forward that receives


def receiver(*ports, name="count", **keys):
    """A forward rxdrop of ports given as (name, device, keys of it)."""
    return [*(port(one, device, **more) for one, device, more in ports),
            forward(name, "rxdrop", " ".join(one for one, _, _ in ports), **keys)]


def flow(number):
    """Over more flows than there are queues."""
    return frames.udp_flow(number % 50, number)


@contextlib.contextmanager
def untouched(daemon, stream, wire, device, alone=True):
    """What is sent to this device is all received there. `alone`: by all the threads there are."""
    threads = sorted(os.listdir(f"/proc/{daemon.pid}/task"))
    load = stream(wire, flow, RATE)
    yield
    load.stop()
    record = daemon.quiet_record()
    assert load.refused == 0
    assert total(record, "rx_packets", device) == load.given > RATE / 2
    assert total(record, "rx_bytes", device) == sum(len(flow(n)) for n in range(load.given))
    assert program(record, device)["seen"] == load.given
    no_rx_loss(record, device)
    assert not alone or sorted(os.listdir(f"/proc/{daemon.pid}/task")) == threads


@pytest.mark.parametrize("wait", ["poll", "spin"])
def test_a_port_comes_and_goes_and_the_others_lose_nothing(start, rig, tap, file, stream, attach,
                                                           wait):
    wan, dmz = ("wan", "d0", {"attach": attach}), ("dmz", "d2", {"attach": attach})
    third = tap(rig.gen, "g2")
    daemon = start(*receiver(wan, wait=wait))
    with untouched(daemon, stream, tap(rig.gen, "g0"), "d0"):
        for turn in range(6):
            # In turn behind the one that stays and before it.
            both = (wan, dmz) if turn % 2 else (dmz, wan)
            now = file.take(*receiver(*both, wait=wait))
            assert [one["port"] for one in now["ports"]] == [one for one, _, _ in both]
            assert set(rig.dut.attached()) == {"d0", "d2"}
            third.send_all([frames.numbered(n) for n in range(100)])
            wait_until(lambda: total(daemon.next_record(), "rx_packets", "d2") == 100, 5, "frames")
            now = file.take(*receiver(wan, wait=wait))
            assert set(rig.dut.attached()) == {"d0"} and rig.dut.promiscuity("d2") == 0
            ended = re.findall(r"forward count: port dmz ended; (\d+) frames reclaimed",
                               daemon.stderr)
            assert len(ended) == turn + 1 and int(ended[-1]) > 0, "what lay in its fill ring"
            worker = now["workers"][0]
            assert worker["balance"] == 0
            assert worker["reclaimed"] == sum(map(int, ended))
    assert "forward count: ended" not in daemon.stderr
    daemon.stop()


def test_a_port_of_two_queues_comes_and_goes(rig2, tap, millraced, file, stream):
    rig = rig2(**peers(2, "native"))
    rig.join(rig.gen, "g2", "d2")
    wan, dmz = ("wan", "d0", {}), ("dmz", "d2", {})
    third = tap(rig.gen, "g2")
    file.write(*receiver(wan))
    daemon = millraced(rig.dut, "--config", file.path)
    with untouched(daemon, stream, tap(rig.gen, "g0"), "d0"):
        for _ in range(4):
            file.take(*receiver(dmz, wan))
            third.send_all([flow(n) for n in range(100)])
            wait_until(lambda: total(daemon.next_record(), "rx_packets", "d2") == 100, 5, "frames")
            queues = packets_by_queue(daemon.next_record(), "d2")
            assert len(queues) == 2 and all(queues.values()), queues
            now = file.take(*receiver(wan))
            assert [worker["balance"] for worker in now["workers"]] == [0, 0]
            assert all(worker["reclaimed"] for worker in now["workers"])
    queues = packets_by_queue(daemon.next_record(), "d0")
    assert len(queues) == 2 and all(queues.values()), queues
    assert "forward count: ended" not in daemon.stderr
    daemon.stop()


def test_the_memory_of_what_runs_is_told(start, rig, file):
    """A port that comes gets none of its own; what the file alone would have is not what there is."""
    wan, dmz = ("wan", "d0", {}), ("dmz", "d2", {})
    daemon = start(*receiver(wan, dmz))
    frames_of = file.ask("plan")["plan"]["forwards"][0]["workers"][0]["frames"]
    assert file.ask("status")["workers"][0]["total"] == frames_of
    file.take(*receiver(wan))
    assert file.ask("plan")["plan"]["forwards"][0]["workers"][0]["frames"] == frames_of
    assert file.ask("status")["workers"][0]["total"] == frames_of
    file.take(*receiver(wan))
    file.take(*receiver(wan, dmz))
    assert "forward count: ended" not in daemon.stderr
    daemon.stop()


def test_ports_beyond_the_memory_are_a_new_start(start, rig, tap, file):
    wan, dmz, far = ("wan", "d0", {}), ("dmz", "d2", {}), ("far", "d3", {})
    daemon = start(*receiver(wan, frames_per_queue=10240))
    file.take(*receiver(wan, dmz, frames_per_queue=10240))
    assert "forward count: ended" not in daemon.stderr
    file.take(*receiver(wan, dmz, far, frames_per_queue=10240))
    assert daemon.stderr.count("forward count: ended") == 1
    daemon.stop()


def test_a_port_that_cannot_come_leaves_the_others(start, rig, tap, file, stream, closing):
    """It would take the place of another one, which comes back."""
    wan, dmz, far = ("wan", "d0", {}), ("dmz", "d2", {}), ("far", "d3", {})
    squatter = closing(Squatter(rig.dut, "d3"))
    third = tap(rig.gen, "g2")
    daemon = start(*receiver(wan, dmz))
    with untouched(daemon, stream, tap(rig.gen, "g0"), "d0"):
        for wanted in ((wan, dmz, far), (far, wan)):
            err = file.refuse(*receiver(*wanted, batch=16))
            assert any("d3 q0: already bound" in line for line in err), err
            assert set(rig.dut.attached()) == {"d0", "d2"}
            assert devices_of(file.ask("status")) == {"wan": "d0", "dmz": "d2"}
            assert rig.dut.promiscuity("d3") == 0
    before = total(daemon.next_record(), "rx_packets", "d2")
    third.send_all([frames.numbered(n) for n in range(100)])
    wait_until(lambda: total(daemon.next_record(), "rx_packets", "d2") == before + 100, 5, "frames")
    squatter.close()
    file.take(*receiver(far, wan, batch=16))
    assert set(rig.dut.attached()) == {"d0", "d3"}
    assert "forward count: ended" not in daemon.stderr
    daemon.stop()


def test_other_settings_of_one_port_leave_the_others(start, rig, tap, file, stream):
    wan = ("wan", "d0", {})
    third = tap(rig.gen, "g2")
    daemon = start(*receiver(("dmz", "d2", {"attach": "native"}), wan))
    with untouched(daemon, stream, tap(rig.gen, "g0"), "d0"):
        for kind in ("skb", "native", "skb"):
            file.take(*receiver(("dmz", "d2", {"attach": kind}), wan))
            modes = {one["device"]: one["attach"] for one in file.ask("status")["ports"]}
            assert modes == {"d0": "native", "d2": kind}
            third.send_all([frames.numbered(n) for n in range(100)])
            wait_until(lambda: total(daemon.next_record(), "rx_packets", "d2") == 100, 5, "frames")
    daemon.stop()


def test_a_port_moves_to_another_forward(start, rig, tap, file, stream):
    wan, lan, dmz, far = (("wan", "d0", {}), ("lan", "d1", {}), ("dmz", "d2", {}),
                          ("far", "d3", {}))
    third = tap(rig.gen, "g2")
    daemon = start(*receiver(wan, dmz, name="one"), *receiver(lan, far, name="two"))
    with untouched(daemon, stream, tap(rig.gen, "g0"), "d0", alone=False):
        now = file.take(*receiver(wan, name="one"), *receiver(lan, far, dmz, name="two"))
        assert [len(workers) for workers in forwards_of(now).values()] == [1, 1]
        assert {one["port"]: one["forward"] for one in file.ask("stats")["sockets"]}["dmz"] == "two"
        third.send_all([frames.numbered(n) for n in range(100)])
        wait_until(lambda: total(daemon.next_record(), "rx_packets", "d2") == 100, 5, "frames")
    assert "forward one: ended" not in daemon.stderr
    daemon.stop()


# Again and again


def status_kb(pid, field):
    """Of /proc/PID/status."""
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(rf"^{field}:\s+(\d+) kB$", text, re.M)[1])


class Use:
    """What a process uses: files, threads, memory, children."""

    def __init__(self, daemon):
        folder = pathlib.Path(f"/proc/{daemon.pid}")
        time.sleep(0.2)  # until the last client's connection is closed
        self.files = sorted(re.sub(r"\d+", "", os.readlink(one))
                            for one in (folder / "fd").iterdir())
        self.threads = len(list((folder / "task").iterdir()))
        self.children = children(daemon.pid)
        self.memory = sum(status_kb(pid, "VmRSS") for pid in (daemon.pid, *self.children))
        self.helper_files = len(os.listdir(f"/proc/{self.children[0]}/fd"))


# KiB that may come and go with the allocator's arenas; a chunk a reload would be more after 30.
ROOM = 1024

SOME = [30, pytest.param(1000, marks=pytest.mark.full)]


@pytest.mark.parametrize("count", SOME)
@pytest.mark.parametrize("what", ["parameters", "a port", "a forward", "a rebuild"])
def test_reloads_under_load_leak_nothing(start, rig, tap, file, ends, task, what, count):
    def sections(turn):
        if what == "parameters":
            return [*patch(**PARAMETERS[turn % len(PARAMETERS)]), *side()]
        if what == "a port":
            return [*patch(), *receiver(("dmz", "d2", {}), *[("far", "d3", {})] * (turn % 2))]
        if what == "a forward":
            return [*patch(), *(side() if turn % 2 else [])]
        return [*patch(), *side(ring_size=(512, 1024)[turn % 2])]

    daemon = start(*sections(1))
    with unharmed(task, frames.numbered, *ends, RATE):
        for turn in range(2, 12):  # until all that is made once is there
            file.take(*sections(turn))
        before = Use(daemon)
        for turn in range(12, 12 + count):
            file.take(*sections(turn))
        after = Use(daemon)
        status = file.ask("status")
    assert status["generation"] == 10 + count
    assert {worker["balance"] for worker in status["workers"]} == {0}
    assert after.files == before.files
    assert (after.threads, after.children) == (before.threads, before.children)
    assert after.helper_files == before.helper_files
    if not SANITIZED:
        assert after.memory - before.memory < ROOM, (before.memory, after.memory)
    record = daemon.quiet_record()
    no_rx_loss(record, "d0", "d1")
    final = daemon.stop()
    no_rx_loss(final, "d0", "d1")
