"""The table of mistakes: what is typed or lacking, the exit status, the whole message (RIG-2).

Every case: exactly one line on standard error, nothing on standard output, nothing attached, no
promiscuity. Cases that need a world of their own follow the tables.
"""

import os
import pathlib
import re
import resource
import shlex
import subprocess

import pytest
from daemon import MILLRACED, Daemon
from lab import SANITIZED, Rig2
from refuse import refusing
from xsk import Squatter

USAGE, WORLD = 2, 1
D0, BOTH = ["-i", "d0"], ["-i", "d0", "-i", "d1"]
ERROR = "millraced: error: "
LISTS = r"`ip link` lists those of this network namespace"
SANDBOX = (r"a seccomp filter \(systemd: SystemCallFilter=\) or an LSM forbids it in spite of the "
           r"capabilities")
NO_BPF_CALL = (r"a seccomp filter \(systemd: SystemCallFilter= without bpf\), an LSM, lockdown or a "
               r"user namespace forbids bpf\(\) in spite of the capabilities")
RAISE_FILES = r"RLIMIT_NOFILE is \d+: raise it \(`ulimit -n \d+`, LimitNOFILE=\)"
HAS_CAPABILITIES = (r"run as root, or give the program CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF \(and "
                    r"CAP_IPC_LOCK where the frames exceed `ulimit -l`\), in a systemd unit by "
                    r"AmbientCapabilities= and CapabilityBoundingSet=")
OVERFLOW = "99999999999999999999"


def without(*names):
    """Wrap a command so that it starts without these capabilities."""
    return lambda argv: ["capsh", f"--drop={','.join(names)}", "--", "-c", "exec " + shlex.join(argv)]


def number(option, value, low, high):
    return rf"--{option}={re.escape(value)}: not a number; type one from {low} to {high}"


def limits(option, value, low, high):
    return rf"--{option}={value}: must be {low} to {high}"


def no_list(option, value):
    return rf"--{option}={value}: not a list of numbers; type for example 0,2-3"


def no_mac(option, value):
    return (rf"--{option}={value}: not a MAC address; type six pairs of hexadecimal digits such as "
            r"02:00:00:00:00:02")


def excluded(one, other):
    return rf"{one} and {other} exclude each other: give one"


NO_INTERFACE = r"no interface: give one with -i"
TWO_MODES = r"two modes: give one of -r, -t and -l"
# {name: (arguments, the message)}: exit status 2, found before the host is looked at.
TYPED = {
    "no interface": (["-r"], NO_INTERFACE),
    "no argument at all": ([], NO_INTERFACE),
    "two modes": (["-r", "-t", *D0], TWO_MODES),
    "two other modes": (["-l", "--txpush", *D0], TWO_MODES),
    "interface twice": (["-l", *D0, *D0], r"-i d0: given twice; name each interface once"),
    "three for -l": (["-l", *BOTH, "-i", "lo"],
                     r"-l takes one interface \(swap and send back\) or two \(patch\), not 3"),
    "interface name empty": (["-i", ""], r"-i '': an interface name has 1 to 127 characters"),
    "interface name long": (["-i", "x" * 128],
                            r"-i 'x{128}': an interface name has 1 to 127 characters"),
    "-C without -t": (["-r", *D0, "-C", "5"],
                      r"-C, --tx-pkt-count: is about generated frames; it needs -t"),
    "-s without -t": (["-l", *D0, "-s", "100"],
                      r"-s, --tx-pkt-size: is about generated frames; it needs -t"),
    "--pps without -t": (["-l", *D0, "--pps=5"],
                         r"--pps: is about generated frames; it needs -t"),
    "-O without -C": (["-t", "-O", "5", *D0],
                      r"-O 5: there is no last frame to wait for without -C"),
    "-S and -N": (["-S", "-N", *D0], excluded("-S", "-N")),
    "-z and -c": (["-z", "-c", *D0], excluded("-z", "-c")),
    "-S and -z": (["-S", "-z", *D0], r"-S and -z exclude each other: skb mode always copies"),
    "-s and --sizes": (["-t", "-s", "100", "--sizes=imix", *D0], excluded("-s", "--sizes")),
    "--pps and -T": (["-t", "--pps=5", "-T", "5", *D0], excluded("--pps", "-T")),
    "ring not a power of two": (["--ring-size=1000", *D0],
                                r"--ring-size=1000: must be a power of two from 16 to 65536"),
    "ring of 0": (["--ring-size=0", *D0], limits("ring-size", 0, 16, 65536)),
    "ring too small": (["--ring-size=8", *D0], limits("ring-size", 8, 16, 65536)),
    "ring too large": (["--ring-size=131072", *D0], limits("ring-size", 131072, 16, 65536)),
    "frames too few": (["--frames-per-queue=100", *D0],
                       r"--frames-per-queue=100: the rings need at least 10240 \(fill 4096 \+ RX "
                       r"2048 \+ TX 2048 \+ completion 2048\); raise it or lower --ring-size"),
    "frame size odd": (["-f", "3000", *D0],
                       r"--frame-size=3000: must be a power of two, 2048 or 4096; with -u any size "
                       r"between"),
    "frame size small": (["-f", "1024", *D0], limits("frame-size", 1024, 2048, 4096)),
    "frame size large": (["-f", "8192", *D0], limits("frame-size", 8192, 2048, 4096)),
    "batch of 0": (["-b", "0", *D0], limits("batch-size", 0, 1, 1024)),
    "batch too large": (["-b", "4096", *D0], limits("batch-size", 4096, 1, 1024)),
    "batch beyond the rings": (["--ring-size=32", "-b", "64", *D0],
                               r"--batch-size=64: more than the rings hold \(32\); lower it or "
                               r"raise --ring-size"),
    "batch not a number": (["-b", "many", *D0], number("batch-size", "many", 1, 1024)),
    "trailing junk": (["-b", "64x", *D0], number("batch-size", "64x", 1, 1024)),
    "trailing blank": (["-b", "64 ", *D0], number("batch-size", "64 ", 1, 1024)),
    "plus sign": (["-b", "+1", *D0], number("batch-size", "+1", 1, 1024)),
    "negative": (["-b", "-1", *D0], number("batch-size", "-1", 1, 1024)),
    "empty number": (["--batch-size=", *D0], number("batch-size", "", 1, 1024)),
    "overflow": (["-b", OVERFLOW, *D0], limits("batch-size", OVERFLOW, 1, 1024)),
    "overflow of 64 bits": (["-t", "-C", OVERFLOW, *D0],
                            limits("tx-pkt-count", OVERFLOW, 0, 2 ** 63 - 1)),
    "size below 64": (["-t", "-s", "63", *D0], limits("tx-pkt-size", 63, 64, 9728)),
    "size beyond the chunk": (["-t", "-s", "4000", *D0],
                              r"--tx-pkt-size: a frame of 4000 bytes, FCS included, does not fit a "
                              r"chunk of 4096 \(at most 3844\); lower it, or use -F"),
    "sizes backwards": (["-t", "--sizes=100-64", *D0],
                        r"--sizes=100-64: must be imix, or two sizes from 64 to 9728 such as "
                        r"64-1518"),
    "interval of 0": (["-n", "0", *D0], limits("interval", 0, 1, 86400)),
    "queue not a number": (["-q", "x", *D0], no_list("queue", "x")),
    "queue range backwards": (["-q", "3-1", *D0], no_list("queue", "3-1")),
    "queue list unfinished": (["-q", "0,", *D0], no_list("queue", "0,")),
    "queue twice": (["-q", "0,0", *D0], r"--queue=0,0: a number is given twice"),
    "queue negative": (["-q", "-1", *D0], no_list("queue", "-1")),
    "queue overflow": (["-q", OVERFLOW, *D0],
                       rf"--queue={OVERFLOW}: numbers go from 0 to 4095, and 1024 of them at most"),
    "CPU not a number": (["--cpus=a", *D0], no_list("cpus", "a")),
    "MAC too short": (["-t", "-G", "02:00:00:00:00", *D0], no_mac("tx-dmac", "02:00:00:00:00")),
    "MAC not hexadecimal": (["-t", "-H", "zz:00:00:00:00:02", *D0],
                            no_mac("tx-smac", "zz:00:00:00:00:02")),
    "source is a group": (["-t", "-H", "ff:ff:ff:ff:ff:ff", *D0],
                          r"--tx-smac=ff:ff:ff:ff:ff:ff: a group address, which no frame comes "
                          r"from"),
    "pattern too long": (["-t", "-P", "0x123456789", *D0],
                         r"--tx-pkt-pattern=0x123456789: not a pattern; type up to 8 hexadecimal "
                         r"digits such as 0x12345678"),
    "VLAN id too large": (["-t", "-V", "-J", "4096", *D0], limits("tx-vlan-id", 4096, 0, 4095)),
    "VLAN priority too large": (["-t", "-V", "-K", "8", *D0], limits("tx-vlan-pri", 8, 0, 7)),
    "VLAN id without -V": (["-t", "-J", "5", *D0], r"-J 5: there is no tag without -V"),
    "no such clock": (["-t", "-w", "UTC", "-y", *D0],
                      r"--clock=UTC: must be MONOTONIC, REALTIME, TAI or BOOTTIME"),
    "no such policy": (["-W", "RR", *D0], r"--policy=RR: must be OTHER or FIFO"),
    "value missing": (["-i"], r"--interface needs a value: --interface=IFACE"),
    "value where none is": (["--poll=5", *D0], r"--poll takes no value"),
    "stray word": ([*D0, "d1"], r"'d1': not an option; name interfaces with -i"),
    "letter unknown": (["-Z", *D0], r"-Z: unknown option; see millraced --help"),
    "long unknown": (["--foo", *D0], r"--foo: unknown option; see millraced --help"),
    "long unknown with value": (["--foo=bar", *D0],
                                r"--foo=bar: unknown option; see millraced --help"),
    "long ambiguous": (["--tx", *D0], r"--tx: several options begin so; see millraced --help"),
}
# {name: (arguments, the message)}: exit status 1, this host does not have it.
HOST = {
    "no such interface": (["-i", "qqqq"], rf"qqqq: no such interface; {LISTS}"),
    "interface misspelt": (["-i", "d0x"],
                           rf"d0x: no such interface; did you mean d0\? {LISTS}"),
    "alternative name misspelt": (["-i", "upstraem0"],
                                  rf"upstraem0: no such interface; did you mean upstream0\? {LISTS}"),
    "second interface missing": (["-l", *D0, "-i", "qqqq"], rf"qqqq: no such interface; {LISTS}"),
    "interface twice by its other name": (["-l", *D0, "-i", "upstream0"],
                                          r"upstream0 and d0 are the same interface; name it once"),
    "lo": (["-i", "lo"], r"lo: the loopback interface gets back whatever it sends, so nothing can be "
                         r"forwarded; name another, or make a pair with `ip link add v0 type veth "
                         r"peer name v1`"),
    "no Ethernet": (["-l", "-i", "tun0"],
                    r"tun0: not an Ethernet interface; `ip link` shows link/ether for those"),
    "bridge port": (["-i", "b0"],
                    r"b0: is a port of bridge br0, which would get no frame from it any more; `ip "
                    r"link set dev b0 nomaster` takes it out"),
    "bridge port for txonly": (["-t", "-i", "b0"],
                               r"b0: is a port of bridge br0, which would send on it at the same "
                               r"time; `ip link set dev b0 nomaster` takes it out"),
    "queue beyond": ([*D0, "-q", "1"],
                     r"d0 q1: only RX queue 0 is active; choose with -q, or add some with `ethtool "
                     r"-L d0 combined 2` \(or rx\)"),
    "queues beyond": ([*BOTH, "-l", "-q", "0-3"],
                      r"d0 q1: only RX queue 0 is active; choose with -q, or add some with `ethtool "
                      r"-L d0 combined 2` \(or rx\)"),
    "no such CPU": (["--cpus=4000", *D0],
                    r"--cpus: CPU 4000 does not exist or is not allowed here; `taskset -cp \$\$` "
                    r"lists those that are"),
    "zero-copy on veth": (["-z", *D0], r"d0 q0: no zero-copy \(driver veth\): EOPNOTSUPP "
                                       r"\(Operation not supported\); leave out -z"),
    "frames beyond the MTU": (["-t", "-s", "1519", *D0],
                              r"d0: frames of 1519 bytes \(-s, --sizes\) are more than MTU 1500 "
                              r"allows \(1518\); send smaller ones, or `ip link set dev d0 mtu 1501`"),
    "more memory than there is": (["--ring-size=65536", "--frames-per-queue=16777216", *D0, "-q",
                                   "0"],
                                  r"no memory for 16777216 frames of 4096 bytes \(\d+ MiB\): ENOMEM "
                                  r"\(Cannot allocate memory\); lower --frames-per-queue or "
                                  r"--ring-size"),
}
# What the C library gives clone(2) for a thread; clone3(2) is refused by our own filter.
THREAD = 0x3d0f00
MAKES = {"bpf,0=0": "BPF_MAP_CREATE", "bpf,0=5": "BPF_PROG_LOAD", "bpf": "every command"}
# {name: (rules for refuse.py, the message)}: exit status 1, the kernel or a sandbox refuses.
REFUSED_CALLS = {
    "no AF_XDP": ("socket,0=44:EAFNOSUPPORT",
                  r"no AF_XDP: EAFNOSUPPORT \(.*\); the kernel needs CONFIG_XDP_SOCKETS, a systemd "
                  r"unit AF_XDP in RestrictAddressFamilies="),
    "AF_XDP forbidden": ("socket,0=44:EPERM", rf"no AF_XDP socket: EPERM \(.*\); {SANDBOX}"),
    "no netlink": ("socket,0=16:EAFNOSUPPORT",
                   r"link events cannot be watched: EAFNOSUPPORT \(.*\); the kernel lacks this kind "
                   r"of socket, or a systemd unit it in RestrictAddressFamilies= \(AF_NETLINK "
                   r"AF_PACKET AF_XDP\)"),
    "no BPF": ("bpf:ENOSYS", r"d0: no BPF: ENOSYS \(.*\); the kernel needs CONFIG_BPF_SYSCALL, a "
                             r"systemd unit bpf in SystemCallFilter="),
    "no link": ("bpf,0=28:EPERM",
                rf"d0: not allowed to attach an XDP program: EPERM \(.*\); {NO_BPF_CALL}"),
    "no map update": ("bpf,0=2:EPERM", r"d0: which frames the host gets cannot be set: EPERM "
                                       rf"\(.*\); {SANDBOX}"),
    "no UMEM": ("setsockopt,1=283,2=4:EPERM",
                r"d0 q0: the kernel refuses \d+ bytes of frames \(XDP_UMEM_REG\): EPERM \(.*\); "
                rf"{SANDBOX}"),
    "no ring offsets": ("getsockopt,1=283:EPERM",
                        rf"d0 q0: no rings of 2048 entries: EPERM \(.*\); {SANDBOX}"),
    "no memfd": ("memfd_create:EPERM",
                 rf"no memory file for frames \(memfd_create\): EPERM \(.*\); {SANDBOX}"),
    "no memfd in this kernel": ("memfd_create:ENOSYS", r"no memory file for frames "
                                rf"\(memfd_create\): ENOSYS \(.*\); {SANDBOX}"),
    "no bind": ("bind,2=16:EACCES",
                rf"d0 q0: the kernel refuses to bind the socket: EACCES \(.*\); {SANDBOX}"),
    "no thread": (f"clone,0={THREAD}:EPERM",
                  rf"forward main: queue 0: no thread on CPU \d+: EPERM \(.*\); {SANDBOX}"),
    "no pinning": ("sched_setaffinity:EPERM",
                   rf"forward main: queue 0: no thread on CPU \d+: EPERM \(.*\); {SANDBOX}"),
    "no eventfd": ("eventfd2:EPERM",
                   rf"no file to start with: EPERM \(.*\); {SANDBOX}"),
    "no epoll": ("epoll_create1:EPERM", rf"no event loop: EPERM \(.*\); {SANDBOX}"),
    "no seccomp": ("seccomp:EPERM", r"no seccomp filter can be set: .*; the kernel needs "
                                    r"CONFIG_SECCOMP_FILTER, a systemd unit seccomp in "
                                    r"SystemCallFilter=; --keep-privileges goes on without"),
    "capabilities stay": ("capset:EPERM", r"capabilities cannot be dropped: EPERM \(.*\); "
                                          r"--keep-privileges goes on without"),
    "no no_new_privs": ("prctl,0=38:EPERM", r"no_new_privs cannot be set: EPERM \(.*\); "
                                            r"--keep-privileges goes on without"),
} | {f"no BPF: {name}": (f"{rule}:EPERM", r"d0: not allowed to load the XDP program: EPERM \(.*\); "
                         + NO_BPF_CALL) for rule, name in MAKES.items()}


@pytest.fixture(scope="module")
def rig():
    """One for all: whatever is refused leaves it as it was, and that is checked each time."""
    rig = Rig2()
    rig.dut.ip("link", "property", "add", "dev", "d0", "altname", "upstream0")
    rig.dut.ip("link", "add", "br0", "type", "bridge")
    rig.dut.ip("link", "add", "b0", "type", "veth", "peer", "name", "b1")
    rig.dut.ip("link", "set", "b0", "master", "br0")
    rig.dut.ip("tuntap", "add", "tun0", "mode", "tun")
    yield rig
    rig.close()


def refused(rig, daemon, code, message, attached=None):
    """It ends with `code` and one line that is, as a whole, `message`; nothing is left behind."""
    daemon.fails(code, timeout=30)
    lines = daemon.stderr.split("\n")
    assert len(lines) == 1, f"not one line: {daemon}"
    assert re.fullmatch(re.escape(ERROR) + message, lines[0]), f"{lines[0]}\nis not\n{message}"
    assert daemon.stdout == "", "reports go to standard output, complaints do not"
    assert rig.dut.attached() == (attached or {})
    assert [rig.dut.promiscuity(port) for port in rig.ports] == [0] * len(rig.ports)


def start(millraced, rig, *arguments, **options):
    return millraced(rig.dut, *arguments, ready=False, json_lines=False, **options)


@pytest.mark.parametrize("arguments, message", TYPED.values(), ids=TYPED.keys())
def test_typed_wrong(rig, millraced, arguments, message):
    refused(rig, start(millraced, rig, *arguments), USAGE, message)


@pytest.mark.parametrize("arguments, message", HOST.values(), ids=HOST.keys())
def test_not_on_this_host(rig, millraced, arguments, message):
    refused(rig, start(millraced, rig, *arguments), WORLD, message)


@pytest.mark.parametrize("rule, message", REFUSED_CALLS.values(), ids=REFUSED_CALLS.keys())
def test_refused_by_kernel_or_sandbox(rig, millraced, rule, message):
    refused(rig, start(millraced, rig, *D0, wrap=refusing(rule)), WORLD, message)


@pytest.mark.parametrize("rule, message", [
    ("setsockopt,1=263,2=1:EPERM", rf"EPERM \(.*\); {SANDBOX}"),
    ("socket,0=17:EAFNOSUPPORT", r"EAFNOSUPPORT \(.*\); the kernel lacks this kind of socket, or a "
     r"systemd unit it in RestrictAddressFamilies= \(AF_NETLINK AF_PACKET AF_XDP\)")])
def test_promiscuous_mode_refused(rig, millraced, rule, message):
    refused(rig, start(millraced, rig, "-l", *BOTH, wrap=refusing(rule)), WORLD,
            rf"d0: cannot be made promiscuous: {message}")


@pytest.mark.parametrize("rule", ["bpf,0=18:EPERM", "bpf,0=15:EPERM", "socket,0=2:EPERM"],
                         ids=["BTF", "object info", "AF_INET"])
def test_works_without(rig, millraced, rule):
    """What it can do without is not missed, nor mentioned."""
    daemon = millraced(rig.dut, *D0, wrap=refusing(rule))
    assert "error" not in daemon.stderr and "warning" not in daemon.stderr
    daemon.stop()


@pytest.mark.parametrize("missing", ["cap_net_raw", "cap_net_admin", "cap_bpf"])
def test_missing_capability(rig, millraced, missing):
    """CAP_SYS_ADMIN stands for CAP_BPF and is taken away too."""
    refused(rig, start(millraced, rig, *D0, wrap=without(missing, "cap_sys_admin")), WORLD,
            rf"missing {missing.upper()}: {HAS_CAPABILITIES}")


def test_all_capabilities_missing(rig, millraced):
    wrap = without("cap_net_raw", "cap_net_admin", "cap_bpf", "cap_sys_admin")
    refused(rig, start(millraced, rig, *D0, wrap=wrap), WORLD,
            rf"missing CAP_NET_ADMIN, CAP_NET_RAW, CAP_BPF: {HAS_CAPABILITIES}")


def test_frames_over_memlock(rig, millraced):
    refused(rig, start(millraced, rig, *D0, wrap=without("cap_ipc_lock", "cap_sys_resource"),
                       limits={resource.RLIMIT_MEMLOCK: 65536}), WORLD,
            r"the frames need 41943040 bytes of locked memory, RLIMIT_MEMLOCK allows 65536 and cannot "
            r"be raised: EPERM \(Operation not permitted\); `ulimit -l 40960`, LimitMEMLOCK= or "
            r"CAP_IPC_LOCK allow it, a smaller --ring-size needs less")


def test_cpu_that_is_not_allowed(rig, millraced):
    refused(rig, start(millraced, rig, *D0, "--cpus=1", wrap=lambda argv: ["taskset", "-c", "0", *argv]),
            WORLD, r"--cpus: CPU 1 does not exist or is not allowed here; `taskset -cp \$\$` lists "
                   r"those that are")


@pytest.mark.parametrize("mode", ["-t", "-l"])
def test_queue_that_cannot_send(rig1, millraced, mode):
    rig = rig1(queues=2, peer_queues=1)
    rig.dut.run("ethtool", "-L", "d0", "tx", 1)
    refused(rig, start(millraced, rig, mode, *D0, "-q", 1), WORLD,
            rf"d0 q1: no TX queue of this number \(1 active\), so {'txpush' if mode == '-t' else 'l2fwd'} "
            r"could not send; choose another with -q, or see `ethtool -L d0`")
    millraced(rig.dut, "-r", *D0, "-q", 1).stop()


def test_queue_of_another_socket(rig, millraced, closing):
    squatter = closing(Squatter(rig.dut, "d0"))
    refused(rig, start(millraced, rig, *D0), WORLD,
            r"d0 q0: already bound by another AF_XDP socket \(EBUSY\); end its owner or choose another "
            r"queue with -q")
    squatter.close()


def test_second_millraced(rig, millraced):
    first = millraced(rig.dut, *D0)
    attached = rig.dut.attached()
    refused(rig, start(millraced, rig, *D0), WORLD,
            rf"d0: another millraced serves it, whose XDP program {attached['d0']} 'millrace' \(native "
            rf"mode, held by pid {first.pid} \(millraced\)\) is attached; end pid {first.pid} first",
            attached)
    first.stop()


@pytest.mark.parametrize("kind, mode", [("xdpdrv", "native"), ("xdpgeneric", "skb")])
def test_foreign_program(rig, millraced, foreign_object, kind, mode):
    rig.dut.ip("link", "set", "d1", kind, "obj", foreign_object, "sec", "xdp")
    attached = rig.dut.attached()
    refused(rig, start(millraced, rig, "-l", *BOTH), WORLD,
            rf"d1: XDP program {attached['d1']} 'foreign_pass' \({mode} mode\) is attached and is left "
            rf"alone; `ip link set dev d1 {kind} off`, or start with --replace", attached)
    rig.dut.ip("link", "set", "d1", kind, "off")


def mtu(rig, size):
    rig.gen.ip("link", "set", "g0", "mtu", size)
    rig.dut.ip("link", "set", "d0", "mtu", size)


@pytest.mark.parametrize("flags, size, message", [
    ([], 8901, r"d0: MTU 8901 does not fit frames of 4096 bytes, which take up to 3818; start with -F "
               r"\(any MTU\), or `ip link set dev d0 mtu 3818`"),
    ([], 3819, r"d0: MTU 3819 does not fit frames of 4096 bytes, which take up to 3818; start with -F "
               r"\(any MTU\), or `ip link set dev d0 mtu 3818`"),
    (["-f", "2048"], 3000,
     r"d0: MTU 3000 does not fit frames of 2048 bytes, which take up to 1770; start with -F \(any "
     r"MTU\), with -f 4096 \(up to 3818\), or `ip link set dev d0 mtu 1770`"),
], ids=["jumbo", "one too many", "larger chunks do"])
def test_mtu_beyond_a_chunk(rig1, millraced, attach, flags, size, message):
    """The kernel would drop longer frames and say nothing. What the message offers works."""
    rig = rig1()
    mtu(rig, size)
    refused(rig, start(millraced, rig, *D0, *flags, attach=attach), WORLD, message)
    millraced(rig.dut, *D0, *flags, "-F", attach=attach).stop()
    if "-f 4096" in message:
        millraced(rig.dut, *D0, "-f", 4096, attach=attach).stop()
    mtu(rig, int(re.search(r"mtu (\d+)`", message).group(1)))
    millraced(rig.dut, *D0, *flags, attach=attach).stop()


def test_mtu_raised_while_forwarding_gets_one_warning_a_value(rig1, millraced):
    rig = rig1()
    daemon = millraced(rig.dut, *D0)
    for change in (["mtu", 8901], ["alias", "x"], ["mtu", 9000], ["mtu", 1500], ["mtu", 1600]):
        rig.dut.ip("link", "set", "d0", *change)
    daemon.next_record()
    assert [text for _, text in daemon.err if "MTU is" in text] == [
        f"millraced: warning: d0: MTU is {size} now, and frames of 4096 bytes take up to 3818: larger "
        "packets are dropped; `ip link set dev d0 mtu 3818`, or start with -F (any MTU)"
        for size in (8901, 9000)]
    daemon.stop()


def test_mtu_does_not_matter_with_several_descriptors_a_packet(rig1, millraced):
    rig = rig1()
    daemon = millraced(rig.dut, *D0, "-F")
    rig.dut.ip("link", "set", "d0", "mtu", 8901)
    daemon.next_record()
    assert "MTU" not in daemon.stderr
    daemon.stop()


def test_every_limit_on_open_files_until_it_suffices(rig, millraced):
    """From the first at which the loader finds its libraries."""
    for limit in range(4, 64):
        wrap = lambda argv: ["prlimit", f"--nofile={limit}", *argv]  # noqa: E731, B023
        daemon = start(millraced, rig, "-l", *BOTH, "-d", 1, wrap=wrap)
        code, _ = daemon.wait(10)
        if code == 0:
            break
        assert code == WORLD, str(daemon)
        lines = daemon.stderr.split("\n")
        assert len(lines) == 1 and re.fullmatch(rf"{ERROR}.*EMFILE \(.*\); {RAISE_FILES}", lines[0]), \
            f"limit {limit}: {daemon}"
        assert f"RLIMIT_NOFILE is {limit}:" in lines[0]
    assert 10 < limit < 50, f"needs {limit}?"
    assert rig.dut.attached() == {}
    assert [rig.dut.promiscuity(port) for port in rig.ports] == [0, 0]


@pytest.mark.skipif(SANITIZED, reason="AddressSanitizer itself takes terabytes of address space")
@pytest.mark.parametrize("mebibytes", [8, 16, 32, 64, 92])
def test_too_little_address_space(rig, millraced, mebibytes):
    message = (r"(no memory for 20480 frames of 4096 bytes \(\d+ MiB\): ENOMEM \(Cannot allocate memory\)"
               r"; RLIMIT_AS is \d+ KiB: raise it \(`ulimit -v`, LimitAS=\); lower --frames-per-queue or "
               r"--ring-size|forward main: queue 0: no thread on CPU \d+: EAGAIN \(.*\); raise RLIMIT_NPROC \(`ulimit "
               r"-u`\), RLIMIT_AS \(`ulimit -v`\) or TasksMax=)")
    wrap = lambda argv: ["prlimit", f"--as={mebibytes << 20}", *argv]  # noqa: E731  (the shell needs more)
    refused(rig, start(millraced, rig, "-l", *BOTH, wrap=wrap), WORLD, message)


def full(rig, *arguments, stdout):
    return subprocess.run(rig.dut.command(MILLRACED, *arguments), stdout=stdout, text=True,
                          stderr=subprocess.PIPE, timeout=20)


@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_standard_output_full(rig, flags):
    with open("/dev/full", "w") as device:
        done = full(rig, *D0, *flags, stdout=device)
    errors = [line for line in done.stderr.split("\n") if "error" in line]
    assert done.returncode == WORLD and len(errors) == 1, done
    assert re.fullmatch(rf"{ERROR}standard output takes no report: ENOSPC \(.*\)", errors[0])
    assert rig.dut.attached() == {}


def test_standard_output_closed(rig):
    """The reader of a pipe is gone: an error, not a death by SIGPIPE that leaves something behind."""
    reader, writer = os.pipe()
    os.close(reader)
    done = full(rig, *D0, stdout=writer)
    os.close(writer)
    errors = [line for line in done.stderr.split("\n") if "error" in line]
    assert done.returncode == WORLD and len(errors) == 1, done
    assert re.fullmatch(rf"{ERROR}standard output takes no report: EPIPE \(.*\)", errors[0])
    assert rig.dut.attached() == {}


def test_no_standard_output_at_all(rig):
    done = subprocess.run(["sh", "-c", f"exec {shlex.join(rig.dut.command(MILLRACED, *D0, '-d', 1))} >&-"],
                          stderr=subprocess.PIPE, text=True, timeout=20)
    assert done.returncode == 0 and "error" not in done.stderr, done
    assert rig.dut.attached() == {}


@pytest.mark.parametrize("locale", ["xx_XX.UTF-8", "C", "de_DE"])
def test_any_locale_or_none(rig, millraced, locale):
    """Numbers stay machine-readable, and a locale that is not installed does not matter."""
    daemon = millraced(rig.dut, *D0, wrap=lambda argv: ["env", f"LC_ALL={locale}", *argv])
    daemon.next_record()
    assert "error" not in daemon.stderr and "warning" not in daemon.stderr
    daemon.stop()


HUGE_PAGES = pathlib.Path("/proc/sys/vm/nr_hugepages")


@pytest.fixture
def huge_pages():
    """Reserve huge pages, host-wide, for the length of a test."""
    before = HUGE_PAGES.read_text()

    def reserve(number):
        try:
            HUGE_PAGES.write_text(str(number))
        except OSError as error:
            pytest.skip(f"vm.nr_hugepages cannot be set: {error}")
        if int(HUGE_PAGES.read_text()) != number:
            pytest.skip(f"this host has no {number} huge pages to reserve")

    try:
        yield reserve
    finally:
        HUGE_PAGES.write_text(before)


def uses_huge_pages(daemon):
    maps = pathlib.Path(f"/proc/{daemon.pid}/smaps").read_text()
    umem = maps[maps.index("millrace-umem"):]
    return re.search(r"^KernelPageSize:\s+(\d+) kB$", umem, re.M).group(1) == "2048"


@pytest.mark.alone
@pytest.mark.parametrize("flags, reserved, used, says", [
    ([], 0, False, None),
    (["--huge-pages"], 0, False, r"warning: \d+ huge pages a worker are needed, 0 of 0 are free: using "
                                 r"small pages; `sysctl vm.nr_hugepages=N` reserves more"),
    ([], 4, False, r"\d+ huge pages a worker are needed, 4 of 4 are free: using small pages; `sysctl "
                   r"vm.nr_hugepages=N` reserves more"),
    (["--huge-pages"], 4, False, r"warning: \d+ huge pages a worker are needed, 4 of 4 are free: using "
                                 r"small pages; `sysctl vm.nr_hugepages=N` reserves more"),
    ([], 64, True, None),
    (["--huge-pages"], 64, True, None),
], ids=["none", "none but asked", "few", "few but asked", "enough", "enough and asked"])
def test_huge_pages_are_used_when_there_and_else_said_once(rig1, millraced, huge_pages, flags, reserved,
                                                           used, says):
    huge_pages(reserved)
    rig = rig1(queues=2)
    daemon = millraced(rig.dut, *D0, "-q", "0-1", "--ring-size=1024", *flags)
    assert uses_huge_pages(daemon) == used
    said = [text for _, text in daemon.err if "huge" in text]
    assert len(said) == (1 if says else 0), daemon.stderr
    assert not says or re.fullmatch("millraced: " + says, said[0]), said[0]
    daemon.stop()


def info_lines(daemon):
    return [text.removeprefix("millraced: ") for _, text in daemon.err]


@pytest.mark.parametrize("flags, commands", [
    (["-l", *D0], "`ethtool -K g0 tx off`"),
    (["-l", *BOTH], "`ethtool -K g0 tx off`, `ethtool -K s0 tx off`"),
    (["-l", "-S", *D0], "`ethtool -K g0 tx off tso off gso off`"),
], ids=["one", "two", "skb"])
def test_advice_on_offloads_names_the_far_ends(rig2, millraced, flags, commands):
    """They are in other namespaces. What it says can be typed there as it is."""
    rig = rig2()
    daemon = millraced(rig.dut, *flags)
    advice = [line for line in info_lines(daemon) if "ethtool" in line]
    assert len(advice) == 1 and advice[0].endswith(f"{commands} on the far end"), advice
    owner = {"g0": rig.gen, "s0": rig.sink}
    for command in re.findall(r"`(.*?)`", commands):
        owner[command.split()[2]].run(*command.split())
    daemon.stop()


@pytest.mark.parametrize("mode", ["-r", "-t"])
def test_no_advice_on_offloads_where_nothing_is_forwarded(rig1, millraced, mode):
    rig = rig1()
    daemon = millraced(rig.dut, mode, *D0)
    assert "ethtool" not in daemon.stderr
    daemon.stop()


@pytest.mark.parametrize("queues, says", [
    ("0", "d0: queues 1-3"), ("1,3", "d0: queues 0,2"), ("0-2", "d0: queue 3"), ("all", None),
])
def test_queues_without_a_worker_are_named(rig1, millraced, queues, says):
    rig = rig1(queues=4)
    daemon = millraced(rig.dut, *D0, "-q", queues)
    said = [line for line in info_lines(daemon) if "not served" in line]
    assert said == ([f"warning: {says}: not served, their frames go to the host; -q all serves them"]
                    if says else [])
    daemon.stop()
    daemon = millraced(rig.dut, "-t", *D0, "-q", queues)
    assert "not served" not in daemon.stderr, "the host gets every frame in any case"
    daemon.stop()
