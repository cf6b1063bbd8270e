"""The command line: what is refused, with which exit code, and in which words (RIG-2 for names)."""

import re
import subprocess

import pytest
from daemon import MILLRACED
from lab import Rig2

USAGE, WORLD = 2, 1
D0, BOTH = ["-i", "d0"], ["-i", "d0", "-i", "d1"]
# {name: (arguments, exit code, what standard error must say)}
REFUSED = {
    "no interface": (["-r"], USAGE, r"-i\b|interface"),
    "no argument at all": ([], USAGE, r"-i\b|interface"),
    "two modes": (["-r", "-t", *D0], USAGE, r"mode"),
    "two other modes": (["-l", "--txpush", *D0], USAGE, r"mode"),
    "interface twice": (["-l", "-i", "d0", "-i", "d0"], USAGE, r"d0.*twice|twice.*d0"),
    "three for -l": (["-l", *BOTH, "-i", "lo"], USAGE, r"-l|two"),
    "-C without -t": (["-r", *D0, "-C", "5"], USAGE, r"-C"),
    "-s without -t": (["-l", *D0, "-s", "100"], USAGE, r"-s"),
    "-S and -N": (["-S", "-N", *D0], USAGE, r"-S.*-N|-N.*-S"),
    "-z and -c": (["-z", "-c", *D0], USAGE, r"-z.*-c|-c.*-z"),
    "-S and -z": (["-S", "-z", *D0], USAGE, r"-S.*-z|-z.*-S"),
    # Field case 26: the rule is named.
    "ring not a power of two": (["--ring-size=1000", *D0], USAGE, r"ring-size.*power of two"),
    "ring of 2": (["--ring-size=2", *D0], USAGE, r"ring-size.*16 to 65536"),
    "ring of 0": (["--ring-size=0", *D0], USAGE, r"ring-size"),
    "frames too few": (["--frames-per-queue=100", *D0], USAGE, r"frames-per-queue.*\d{4,}"),
    "batch beyond the rings": (["--ring-size=16", "-b", "64", *D0], USAGE, r"batch-size.*\b16\b"),
    "frame size odd": (["-f", "3000", *D0], USAGE, r"frame-size.*power of two"),
    "frame size small": (["-f", "1024", *D0], USAGE, r"frame-size"),
    "frame size large": (["-f", "8192", *D0], USAGE, r"frame-size"),
    "batch of 0": (["-b", "0", *D0], USAGE, r"batch"),
    "batch not a number": (["-b", "many", *D0], USAGE, r"batch.*many"),
    "size below 64": (["-t", "-s", "63", *D0], USAGE, r"tx-pkt-size.*64"),
    "size beyond the chunk": (["-t", "-s", "4000", *D0], USAGE, r"tx-pkt-size"),
    "interval of 0": (["-n", "0", *D0], USAGE, r"interval"),
    "queue not a number": (["-q", "x", *D0], USAGE, r"queue.*x"),
    "queue range backwards": (["-q", "3-1", *D0], USAGE, r"queue"),
    "queue twice": (["-q", "0,0", *D0], USAGE, r"queue.*twice"),
    "queue negative": (["-q", "-1", *D0], USAGE, r"queue|-1"),
    "value missing": (["-i"], USAGE, r"interface"),
    "stray word": ([*D0, "d1"], USAGE, r"d1"),
    "-m is not there": (["-m", *D0], USAGE, r"-m\b"),
    "-B is not there": (["-B", *D0], USAGE, r"-B\b"),
    "-F is not there": (["-F", *D0], USAGE, r"-F\b"),
    "-u is not there": (["-u", *D0], USAGE, r"-u\b"),
    "-M is not there": (["-M", *D0], USAGE, r"-M\b"),
    "-a is not there": (["-a", *D0], USAGE, r"-a\b"),
    "-x is not there": (["-x", *D0], USAGE, r"-x\b"),
    "-Q is not there": (["-Q", *D0], USAGE, r"-Q\b"),
    "-R is not there": (["-R", *D0], USAGE, r"-R\b"),
    "long unknown": (["--foo", *D0], USAGE, r"--foo"),
    "long unknown with value": (["--foo=bar", *D0], USAGE, r"--foo"),
    "no such interface": (["-i", "nix0"], WORLD, r"nix0"),
    "second interface missing": (["-l", "-i", "d0", "-i", "nix0"], WORLD, r"nix0"),
    "queue beyond": ([*D0, "-q", "1"], WORLD, r"d0.*ethtool -L"),
    "queues beyond": ([*BOTH, "-l", "-q", "0-3"], WORLD, r"ethtool -L"),
    "no such CPU": (["--cpus=4000", *D0], WORLD, r"4000"),
    "zero-copy on veth": (["-z", *D0], WORLD, r"d0"),
}


@pytest.fixture(scope="module")
def rig():
    """One for all: whatever is refused leaves it as it was, and that is checked each time."""
    rig = Rig2()
    yield rig
    rig.close()


@pytest.mark.parametrize("arguments, code, says", REFUSED.values(), ids=REFUSED.keys())
def test_refused(rig, millraced, arguments, code, says):
    daemon = millraced(rig.dut, *arguments, ready=False, json_lines=False)
    said = daemon.fails(code)
    assert re.search(says, said), said
    assert daemon.stdout == "", "reports go to standard output, complaints do not"
    assert rig.dut.attached() == {}
    assert [rig.dut.promiscuity(port) for port in rig.ports] == [0, 0]


def test_generated_frames_beyond_the_mtu_are_refused(rig1, millraced):
    """The peer would drop them, and the kernel complete them as sent."""
    rig = rig1()
    said = millraced(rig.dut, "-t", "-s", 1519, *D0, ready=False).fails(WORLD)
    assert "d0" in said and "1518" in said and "mtu 1501" in said, said
    millraced(rig.dut, "-t", "-C", 10, "-s", 1518, *D0).ended(10)


def test_mtu_larger_than_a_chunk_is_refused(rig1, millraced):
    """MTU + 14 + 8 must fit frame-size - 256: the kernel would drop longer frames in silence."""
    rig = rig1()
    rig.gen.ip("link", "set", "g0", "mtu", 3819)
    rig.dut.ip("link", "set", "d0", "mtu", 3819)
    said = millraced(rig.dut, "-r", *D0, ready=False).fails(WORLD)
    assert "d0" in said and "3818" in said, f"names the largest MTU that fits: {said}"
    rig.gen.ip("link", "set", "g0", "mtu", 3500)
    rig.dut.ip("link", "set", "d0", "mtu", 3500)
    millraced(rig.dut, "-r", *D0).stop()


def ask(*arguments):
    return subprocess.run([MILLRACED, *arguments], capture_output=True, text=True, timeout=10)


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_names_every_flag(flag):
    done = ask(flag)
    assert done.returncode == 0 and done.stderr == ""
    for name in ("-r", "-t", "--txpush", "-l", "-i", "-q", "-p", "-S", "-N", "-z", "-c", "-b", "-f",
                 "-n", "-d", "-C", "-s", "--cpus", "--ring-size", "--frames-per-queue",
                 "--huge-pages", "--json", "--keep-privileges", "--help", "--version"):
        assert re.search(rf"(?<![\w-]){name}\b", done.stdout), name


def test_version():
    done = ask("--version")
    assert done.returncode == 0 and done.stderr == ""
    assert re.fullmatch(r"millraced \d+(\.\d+)*\S*( \(.+\))?\n", done.stdout), done.stdout


def test_help_into_a_closed_pipe_does_not_hang():
    with open("/dev/full", "w") as full:
        done = subprocess.run([MILLRACED, "--help"], stdout=full, timeout=10)
    assert done.returncode in (0, 1)


SHORT_AND_LONG = {
    "short": ["-l", "-i", "d0", "-q", "0", "-p", "-N", "-c", "-b", "32", "-f", "2048", "-n", "1",
              "-d", "1"],
    "long": ["--l2fwd", "--interface=d0", "--queue=0", "--poll", "--xdp-native", "--copy",
             "--batch-size=32", "--frame-size=2048", "--interval=1", "--duration=1"],
    "txpush": ["--txpush", "--interface", "d0", "--tx-pkt-count=5", "--tx-pkt-size=100"],
    "txonly": ["--txonly", "-i", "d0", "-C", "5", "-s", "100"],
    "skb": ["--rxdrop", "-id0", "--xdp-skb", "-d1"],
}


@pytest.mark.parametrize("arguments", SHORT_AND_LONG.values(), ids=SHORT_AND_LONG.keys())
def test_xdpsocks_spellings_run(rig1, millraced, arguments):
    rig = rig1()
    millraced(rig.dut, *arguments, ready=False).ended(10)
