"""What was asked, what the kernel gave, and what is said about it (RIG-1; unequal queues)."""

import pathlib
import re

import frames
import pytest
from daemon import total
from wire import exchange


def test_auto_is_native_and_copy_on_veth_and_says_so(rig1, millraced):
    """Field cases 4 and 5."""
    rig = rig1()
    daemon = millraced(rig.dut, "-i", "d0")
    bound = daemon.bound["d0", 0]
    assert bound["attach"] == "native" and bound["copy"] == "copy"
    assert bound["wakeup"] == ", need_wakeup"
    assert rig.dut.link("d0")["xdp"]["mode"] == 1
    record = daemon.next_record()["sockets"][0]
    assert record["attach"] == "native"
    assert record["zero_copy"] is False and record["need_wakeup"] is True
    daemon.stop()


@pytest.mark.parametrize("flags", [["-c"], ["-S"], ["-S", "-c"], ["-N", "-c"]])
def test_copy_asked_is_copy(rig1, tap, millraced, flags):
    rig = rig1()
    wire = tap(rig.gen, "g0")
    daemon = millraced(rig.dut, "-l", "-i", "d0", *flags)
    assert daemon.bound["d0", 0]["copy"] == "copy"
    assert daemon.bound["d0", 0]["attach"] == ("skb" if "-S" in flags else "native")
    exchange(wire, wire, [frames.numbered(1)], [frames.swapped(frames.numbered(1))])
    daemon.stop()


@pytest.mark.parametrize("attach", ["auto", "native"])  # -S -z is refused before: test_usage.py
def test_zero_copy_is_refused_naming_the_device(rig1, millraced, attach):
    """Field case 4."""
    rig = rig1()
    said = millraced(rig.dut, "-i", "d0", "-z", attach=attach, ready=False).fails(1)
    assert re.search(r"d0 q0: no zero-copy \(driver veth\)", said), said
    assert not re.search(r"EBUSY|busy", said, re.I), said
    assert rig.dut.attached() == {}


def test_native_insisted_on_fails_with_the_kernels_reason(rig1, millraced):
    """Field case 3: the peer has more TX queues than d0 RX queues: veth then has no native XDP."""
    rig = rig1(queues=2, peer_queues=4)
    said = millraced(rig.dut, "-i", "d0", "-N", ready=False).fails(1)
    assert "d0" in said
    assert re.search(r"ENOSPC|No space left", said), said
    assert not re.search(r"EBUSY|busy", said, re.I), said
    assert rig.dut.attached() == {}


def test_auto_falls_back_to_skb_with_one_warning(rig1, tap, millraced):
    """Field case 3."""
    rig = rig1(queues=2, peer_queues=4)
    wire = tap(rig.gen, "g0")
    daemon = millraced(rig.dut, "-l", "-i", "d0", "-q", "all")
    said = [text for _, text in daemon.err if re.search(r"ENOSPC|No space left", text)]
    assert len(said) == 1 and "d0" in said[0], daemon.stderr
    assert not re.search(r"EBUSY|busy", daemon.stderr, re.I), daemon.stderr
    assert {b["attach"] for b in daemon.bound.values()} == {"skb"}
    assert rig.dut.link("d0")["xdp"]["mode"] == 2
    exchange(wire, wire, [frames.numbered(1)], [frames.swapped(frames.numbered(1))])
    assert total(daemon.stop(), "rx_packets") == 1


def test_no_warning_when_there_is_nothing_to_warn_of(rig1, millraced):
    rig = rig1()
    daemon = millraced(rig.dut, "-i", "d0")
    daemon.stop()
    lines = [text for _, text in daemon.err]
    assert len(lines) == 2, f"one line a queue and the ready line: {lines}"


def test_cpu_is_the_one_asked_for(rig1, millraced):
    rig = rig1()
    for cpu in ("0", "1"):
        daemon = millraced(rig.dut, "-i", "d0", f"--cpus={cpu}", waiting="poll")
        assert daemon.bound["d0", 0]["cpu"] == cpu
        assert cpu in pinned(daemon.pid)
        assert daemon.stop()["workers"][0]["cpu"] == int(cpu)


def pinned(pid):
    """The CPU lists of all threads of a process."""
    return {re.search(r"^Cpus_allowed_list:\s+(\S+)$", (task / "status").read_text(), re.M).group(1)
            for task in pathlib.Path(f"/proc/{pid}/task").iterdir()}
