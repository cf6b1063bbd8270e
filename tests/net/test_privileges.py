"""What the daemon needs to start and what it keeps afterwards (RIG-1)."""

import pathlib
import re
import resource
import shlex

import frames
import pytest
from appliance import forward, port
from daemon import total

SMALL = ["--ring-size=64", "--frames-per-queue=512"]  # 2 MiB of frames


def capabilities(pid):
    """{set: {values over all threads}} of the effective, permitted, bounding and other sets."""
    found = {}
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        for name, value in re.findall(r"^(Cap\w+):\s+(\w+)$", (task / "status").read_text(), re.M):
            found.setdefault(name, set()).add(int(value, 16))
    return found


def without(*names):
    """Wrap a command so that it starts without these capabilities, in the bounding set as well."""
    def wrap(argv):
        drop = ",".join(names)
        return ["capsh", f"--drop={drop}", "--", "-c", "exec " + shlex.join(argv)]
    return wrap


@pytest.mark.parametrize("mode", [["-r"], ["-t"], ["-l"]])
def test_no_capability_is_left(rig1, millraced, attach, waiting, mode):
    rig = rig1()
    daemon = millraced(rig.dut, *mode, "-i", "d0", attach=attach, waiting=waiting)
    assert len(list(pathlib.Path(f"/proc/{daemon.pid}/task").iterdir())) >= 2, "no poller thread"
    left = capabilities(daemon.pid)
    for name in ("CapEff", "CapPrm", "CapBnd", "CapInh", "CapAmb"):
        assert left[name] == {0}, f"{name}: {left[name]}"
    daemon.stop()


def test_privileges_are_kept_on_request(rig1, millraced):
    rig = rig1()
    daemon = millraced(rig.dut, "-i", "d0", "--keep-privileges")
    left = capabilities(daemon.pid)
    assert all(left["CapEff"]) and all(left["CapPrm"])
    daemon.stop()


def test_starts_without_perfmon_and_sys_admin(rig1, tap, millraced, attach):
    rig = rig1()
    daemon = millraced(rig.dut, "-i", "d0", attach=attach,
                       wrap=without("cap_perfmon", "cap_sys_admin"))
    tap(rig.gen, "g0").send_all(frames.numbered(n) for n in range(100))
    daemon.quiet_record()
    assert total(daemon.stop(), "rx_packets") == 100


def test_starts_with_the_documented_capabilities_alone(rig1, tap, millraced):
    """CAP_NET_RAW, CAP_NET_ADMIN, CAP_BPF; CAP_IPC_LOCK for the memory, SETPCAP to drop all."""
    keep = {"cap_net_raw", "cap_net_admin", "cap_bpf", "cap_ipc_lock", "cap_setpcap"}
    rig = rig1()
    daemon = millraced(rig.dut, "-i", "d0", wrap=without(*(set(known_capabilities()) - keep)))
    tap(rig.gen, "g0").send_all(frames.numbered(n) for n in range(100))
    daemon.quiet_record()
    assert total(daemon.stop(), "rx_packets") == 100


def known_capabilities():
    header = pathlib.Path("/usr/include/linux/capability.h")
    last = int(pathlib.Path("/proc/sys/kernel/cap_last_cap").read_text())
    if header.exists():
        names = re.findall(r"^#define (CAP_\w+)\s+(\d+)$", header.read_text(), re.M)
        return [name.lower() for name, number in names if int(number) <= last]
    pytest.skip("no linux/capability.h here to name the capabilities from")


@pytest.mark.parametrize("limit", [0, 64 << 10, 1 << 20])
def test_memlock_too_small_names_needed_and_allowed(rig1, millraced, attach, limit):
    """Field case 16."""
    rig = rig1()
    daemon = millraced(rig.dut, "-i", "d0", "--ring-size=2048", attach=attach, ready=False,
                       wrap=without("cap_ipc_lock", "cap_sys_resource"),
                       limits={resource.RLIMIT_MEMLOCK: limit})
    said = daemon.fails(1)
    assert re.search(r"memlock", said, re.I), said
    sizes = [int(number) for number in re.findall(r"\b(\d+)\b", said)]
    assert limit in sizes, f"does not name the {limit} bytes allowed: {said}"
    assert any(size >= 6144 * 4096 for size in sizes), f"does not name the bytes needed: {said}"
    assert rig.dut.attached() == {}


def test_memlock_that_suffices_is_enough(rig1, tap, millraced, attach):
    """Field case 16: the raise is refused (no CAP_SYS_RESOURCE) but not needed: it starts."""
    rig = rig1()
    daemon = millraced(rig.dut, "-i", "d0", *SMALL, attach=attach,
                       wrap=without("cap_ipc_lock", "cap_sys_resource"),
                       limits={resource.RLIMIT_MEMLOCK: 4 << 20})
    tap(rig.gen, "g0").send_all((frames.numbered(n) for n in range(100)), burst=10, pause=0.005)
    daemon.quiet_record()
    assert total(daemon.stop(), "rx_packets") == 100


def test_memlock_is_enough_for_every_forward_together(rig2, tmp_path, millraced):
    """Each needs 2 MiB; the soft limit has 3, the hard one room for both."""
    rig = rig2()
    path = tmp_path / "millrace.conf"
    path.write_text("\n".join(
        port(name, name) + forward(name, "rxdrop", name, ring_size=64, frames_per_queue=512)
        for name in ("d0", "d1")))
    millraced(rig.dut, "--config", path, wrap=without("cap_ipc_lock", "cap_sys_resource"),
              limits={resource.RLIMIT_MEMLOCK: (3 << 20, 8 << 20)}).stop()


def test_memlock_that_suffices_to_the_byte_is_enough(rig1, millraced, attach):
    """Field case 16: also after a refused zero-copy attempt, whose memory the kernel un-accounts a
    little later.
    """
    rig = rig1()
    for _ in range(5):
        millraced(rig.dut, "-i", "d0", "--ring-size=16", attach=attach,
                  wrap=without("cap_ipc_lock", "cap_sys_resource"),
                  limits={resource.RLIMIT_MEMLOCK: 80 * 4096}).stop()
