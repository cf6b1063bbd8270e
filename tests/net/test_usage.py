"""The command line: help, version, and xdpsock's spellings. What is refused: test_mistakes.py."""

import re
import subprocess

import pytest
from daemon import MILLRACED

D0 = ["-i", "d0"]


def test_generated_frames_up_to_the_mtu_are_sent(rig1, millraced):
    """One byte more is refused, see test_mistakes.py: the peer would drop it."""
    rig = rig1()
    millraced(rig.dut, "-t", "-C", 10, "-s", 1518, *D0).ended(10)


def ask(*arguments):
    return subprocess.run([MILLRACED, *arguments], capture_output=True, text=True, timeout=10)


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_names_every_flag(flag):
    done = ask(flag)
    assert done.returncode == 0 and done.stderr == ""
    for name in ("-r", "-t", "--txpush", "-l", "-i", "-q", "-p", "-S", "-N", "--replace", "-z", "-c",
                 "-m", "-B", "-b", "-f", "-u", "-M", "-F", "-n", "-d", "-C", "-O", "-s", "--sizes",
                 "-P", "-V", "-J", "-K", "-G", "-H", "--pps", "-T", "-y", "-w", "-W", "-U", "-x",
                 "-a", "-I", "-Q", "-R", "--cpus", "--ring-size", "--frames-per-queue",
                 "--huge-pages", "--json", "--keep-privileges", "--promiscuous", "--vlan-offload",
                 "--confirm", "--config", "--check",
                 "--print-config", "--plan", "--control-socket", "--control-group", "--user",
                 "--help-config",
                 "--help", "--version"):
        assert re.search(rf"(?<![\w-]){name}\b", done.stdout), name


def test_version():
    done = ask("--version")
    assert done.returncode == 0 and done.stderr == ""
    assert re.fullmatch(r"millraced \d+(\.\d+)*\S*( \(.+\))?\n", done.stdout), done.stdout


@pytest.mark.parametrize("flag", ["--help", "--version"])
def test_help_that_is_not_taken_is_an_error(flag):
    with open("/dev/full", "w") as full:
        done = subprocess.run([MILLRACED, flag], stdout=full, stderr=subprocess.PIPE, text=True,
                              timeout=10)
    assert done.returncode == 1
    assert "standard output takes no text: ENOSPC" in done.stderr


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
