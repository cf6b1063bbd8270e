"""What the daemon needs to start, and what both processes keep afterwards (RIG-1, RIG-2)."""

import errno
import os
import pathlib
import re
import resource
import shlex

import frames
import pytest
from appliance import File, forward, port
from daemon import total
from flood import FLOOD
from test_opener import helper_of
from wire import exchange

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


NEEDED = ("net_admin", "net_raw", "bpf", "ipc_lock")
NUMBER = {"net_admin": 12, "net_raw": 13, "ipc_lock": 14, "sys_ptrace": 19, "sys_admin": 21,
          "dac_read_search": 2, "bpf": 39}
USER = "nobody"
# What the process of frames has open besides its standard files: kinds, without the numbers.
FRAMES_HAS = {"anon_inode:[eventpoll]", "anon_inode:[eventfd]", "anon_inode:[timerfd]",
              "anon_inode:[signalfd]", "anon_inode:bpf-map", "anon_inode:bpf-prog",
              "anon_inode:bpf_link", "anon_inode:[bpf_link]", "socket:",
              "/memfd:millrace-umem (deleted)"}


def mask(names):
    return sum(1 << NUMBER[name] for name in names)


def of_every_thread(pid, field):
    return {re.search(rf"^{field}:\s+(.*)$", (task / "status").read_text(), re.M).group(1)
            for task in pathlib.Path(f"/proc/{pid}/task").iterdir()}


def open_files(pid, above=2):
    folder = pathlib.Path(f"/proc/{pid}/fd")
    return {re.sub(r"(?<=socket:).*", "", os.readlink(one)) for one in folder.iterdir()
            if int(one.name) > above}


def is_confined(pid, kept):
    left = capabilities(pid)
    assert left.pop("CapInh") == left.pop("CapAmb") == {0}
    assert set(left) == {"CapEff", "CapPrm", "CapBnd"} and all(one == {kept} for one in left.values()), left
    assert of_every_thread(pid, "NoNewPrivs") == {"1"}
    assert of_every_thread(pid, "Seccomp") == {"2"}


def user_of(pid):
    """Its user, real to file system, and its groups; of every thread."""
    return [of_every_thread(pid, field) for field in ("Uid", "Gid", "Groups")]


@pytest.fixture
def theirs(file):
    """A configuration file in a folder that the user whom the daemon becomes has."""
    folder = file.sock.parent
    os.chown(folder, 65534, 65534)
    return File(folder / "millrace.conf", file.sock)


def test_what_is_left_of_both_processes_in_a_daemon(rig2, tap, millraced, theirs):
    """Read back from the kernel: capabilities in all sets, no_new_privs, seccomp, user, open files; after a
    reload that makes threads too."""
    rig = rig2()
    near, far = tap(rig.gen, "g0"), tap(rig.sink, "s0")
    ports = [port(name, name) for name in rig.ports]
    patch = forward("main", "patch", "d0, d1", ring_size=64, frames_per_queue=512)
    theirs.write(*ports, patch)
    daemon = millraced(rig.dut, "--config", theirs.path, "--user=nobody")
    helper = helper_of(daemon)
    theirs.take(*ports, patch, "batch = 7\n", "wait = spin\n")
    sent = [frames.numbered(n) for n in range(100)]
    exchange(near, far, sent, sent)
    for pid, kept in ((daemon.pid, 0), (helper, mask(NEEDED))):
        is_confined(pid, kept)
        assert user_of(pid) == [{"\t".join(["65534"] * 4)}] * 2 + [{"65534 "}], user_of(pid)
    assert open_files(daemon.pid) <= FRAMES_HAS, open_files(daemon.pid) - FRAMES_HAS
    assert {"socket:", "anon_inode:bpf-map"} <= open_files(daemon.pid)
    assert open_files(helper) == {"socket:"}
    daemon.stop()
    assert list(theirs.sock.parent.iterdir()) == [theirs.path], "its folder was theirs"


# What the intruder asks for -> what the helper answers, and what it says of it.
NOT_OURS = "d2: is not in the configuration, so it is not touched"
INTRUDER = {
    **dict.fromkeys(("other-socket", "other-program", "other-promiscuous", "other-offload", "other-peer",
                     "other-bind"), (errno.EACCES, NOT_OURS)),
    "other-host-port": (errno.EACCES, "host-port evil: is not in the configuration"),
    **dict.fromkeys(("queue-socket", "queue-bind"),
                    (errno.EACCES, "d0: the configuration does not have queue 1")),
    "map": (errno.EACCES, "d0: xskmap /sys/fs/bpf/others: is not in the configuration"),
    "map-outside": (errno.EACCES, "d0: xskmap /etc/passwd: is not in the configuration"),
    "replace": (errno.EACCES, "d0: the configuration does not have replace = yes"),
    "dispatcher": (errno.EACCES, "d0: the configuration does not have attach-method = dispatcher"),
    "offload": (errno.EACCES, "d0: the configuration does not have vlan-offload = off"),
    "busy-poll": (errno.EACCES, "d0: the configuration does not have wait = busy-poll"),
    "realtime": (errno.EACCES, "-W FIFO -U 99: the configuration has no priority so high"),
    **dict.fromkeys(("no-such-request", "fd-too-many", "bind-a-file", "no-such-mode"), (errno.EPROTO, "")),
    "one-byte": (errno.EBADMSG, ""),
}


def test_process_of_frames_that_is_taken_over_gets_no_more_than_it_had(rig2, tap, millraced, theirs):
    """Another process speaks for it, over its own socket, to its own helper, which runs: each request is
    refused, and the helper itself tells of it."""
    rig = rig2()
    near, far = tap(rig.gen, "g0"), tap(rig.sink, "s0")
    rig.join(rig.sink, "s2", "d2")
    theirs.write(*(port(name, name, queues=0, vlan_offload="keep") for name in rig.ports),
                 forward("main", "patch", "d0, d1", ring_size=64, frames_per_queue=512))
    daemon = millraced(rig.dut, "--config", theirs.path, "--user=nobody")
    helper, attached = helper_of(daemon), rig.dut.attached()
    sent = [frames.numbered(n) for n in range(100)]
    exchange(near, far, sent, sent)

    said = rig.dut.run(FLOOD.with_name("intruder"), daemon.pid, "d0", "d2")
    got = {}
    for line in said.splitlines():
        name, result, fds, text = re.fullmatch(r"(\S+): (-?\d+), (\d+) fds: (.*)", line).groups()
        got[name] = (-int(result), fds, text)
    assert set(got) == set(INTRUDER), said
    for name, (result, text) in INTRUDER.items():
        assert got[name][:2] == (result, "0") and got[name][2].startswith(text), f"{name}: {got[name]}"
    told = re.findall(rf"error: the helper process, pid {helper}, has refused what pid {daemon.pid} asked",
                      daemon.stderr)
    assert len(told) == len(INTRUDER), daemon.stderr

    # Nothing has come of it, and frames go on; so does the daemon with its helper.
    assert rig.dut.attached() == attached
    assert rig.dut.promiscuity("d2") == 0 and "evil" not in rig.dut.links()
    exchange(near, far, sent, sent)
    theirs.reload()
    assert helper_of(daemon) == helper
    exchange(far, near, sent, sent)
    daemon.stop()


def test_from_flags_the_helper_can_tell_whose_program_is_in_the_way(rig1, millraced):
    rig = rig1()
    daemon = millraced(rig.dut, "-i", "d0")
    is_confined(daemon.pid, 0)
    is_confined(helper_of(daemon), mask((*NEEDED, "sys_admin", "sys_ptrace", "dac_read_search")))
    daemon.stop()


def test_user_that_cannot_be_is_named(rig1, millraced, theirs):
    rig = rig1()
    theirs.write(port("d0", "d0"), forward("main", "rxdrop", "d0"))

    def says(user, pattern, **options):
        said = millraced(rig.dut, "--config", theirs.path, f"--user={user}", ready=False,
                         **options).fails(1)
        assert re.search(pattern, said), said

    says("nosuch", r"error: user nosuch: there is none: .*; `useradd --system nosuch` makes one")
    says("daemon", r"error: user daemon: this process cannot run as another user: EPERM .*User=daemon",
         wrap=as_a_service())
    theirs.path.chmod(0o600)
    says(USER, rf"error: {theirs.path}: is not read by the helper process, user 65534: EACCES .*`chgrp`")
    assert rig.dut.attached() == {}


def as_a_service(*capabilities):
    """Wrap a command as a unit starts it: User=nobody, these in AmbientCapabilities= and
    CapabilityBoundingSet= alone."""
    names = ",".join(f"+{name}" for name in capabilities)
    sets = [f"--{which}={'-all,' + names if names else '-all'}"
            for which in ("inh-caps", "ambient-caps", "bounding-set")]
    return lambda argv: ["setpriv", f"--reuid={USER}", "--regid=nogroup", "--clear-groups", *sets, *argv]


def test_runs_as_a_service_with_the_documented_capabilities(rig1, tap, millraced, theirs):
    """Field case 59: nothing is left in effect of the process of frames, and a reload is taken over."""
    rig = rig1()
    wire = tap(rig.gen, "g0")
    small = {"ring_size": 64, "frames_per_queue": 512}
    theirs.write(port("d0", "d0"), forward("main", "rxdrop", "d0", **small))
    daemon = millraced(rig.dut, "--config", theirs.path, wrap=as_a_service(*NEEDED))
    theirs.take(port("d0", "d0"), forward("main", "rxdrop", "d0", **small | {"ring_size": 128,
                                                                              "frames_per_queue": 1024}))
    helper = helper_of(daemon)
    for pid, kept in ((daemon.pid, 0), (helper, mask(NEEDED))):
        left = capabilities(pid)
        assert left["CapEff"] == left["CapPrm"] == {kept} and left["CapAmb"] == left["CapInh"] == {0}
        assert of_every_thread(pid, "NoNewPrivs") == {"1"} and of_every_thread(pid, "Seccomp") == {"2"}
        # Without CAP_SETPCAP the bounding set stays; nothing can be executed that would use it.
        assert left["CapBnd"] == {mask(NEEDED)}
    wire.send_all(frames.numbered(n) for n in range(100))
    daemon.quiet_record()
    assert total(daemon.stop(), "rx_packets") == 100


@pytest.mark.parametrize("missing", NEEDED)
def test_service_without_one_capability_names_it(rig1, millraced, theirs, missing):
    """Field case 59: each in turn, with what of the unit is to be changed."""
    rig = rig1()
    theirs.write(port("d0", "d0"), forward("main", "rxdrop", "d0"))
    said = millraced(rig.dut, "--config", theirs.path, ready=False,
                     wrap=as_a_service(*(name for name in NEEDED if name != missing)),
                     limits={resource.RLIMIT_MEMLOCK: 64 << 10}).fails(1)
    if missing == "ipc_lock":
        assert re.search(r"RLIMIT_MEMLOCK allows 65536 .*LimitMEMLOCK= or CAP_IPC_LOCK", said), said
    else:
        assert re.search(rf"missing CAP_{missing.upper()}: .*in a systemd unit by AmbientCapabilities= "
                         r"and CapabilityBoundingSet=", said), said
    assert rig.dut.attached() == {}


def test_privileges_are_kept_on_request(rig1, millraced):
    rig = rig1()
    daemon = millraced(rig.dut, "-i", "d0", "--keep-privileges")
    left = capabilities(daemon.pid)
    assert all(left["CapEff"]) and all(left["CapPrm"])
    assert of_every_thread(daemon.pid, "Seccomp") == {"0"}
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
