"""Asked to end, or killed, at every system call of start-up (RIG-2): nothing stays behind.

strace delivers the signal as the main thread enters its n-th call of a name. By default a spread of
the calls; every one of them with --full.
"""

import os
import pathlib
import re
import signal
import time

import pytest
from daemon import END_LIMIT, READY
from lab import SANITIZED, wait_until

DURATION = 4  # longer than an end may take
FLAGS = ["-l", "-i", "d0", "-i", "d1", "-Q", "-d", DURATION]
# Signals are blocked from here on; what comes before is the loader's.
FIRST_STEP = re.compile(r"rt_sigprocmask\(SIG_BLOCK, \[HUP INT TERM\]")
CALL = re.compile(r"(\w+)\(")
# Those of start-up that ask something of the kernel; the rest reads files or memory of our own.
INTERESTING = {"bpf", "socket", "bind", "setsockopt", "getsockopt", "sendto", "recvmsg", "ioctl",
               "mmap", "memfd_create", "ftruncate", "madvise", "clone", "clone3", "sendmsg", "capset", "prctl",
               "eventfd2", "epoll_create1", "signalfd4", "timerfd_create", "sched_setaffinity"}
SPREAD = 30
BPF_PINS = pathlib.Path("/sys/fs/bpf")


def strace(*options):
    # LeakSanitizer is a tracer too, and there can be only one.
    leaks = ["-E", "ASAN_OPTIONS=detect_leaks=0:exitcode=99"] if SANITIZED else []
    return lambda argv: ["strace", "-qq", *leaks, *map(str, options), *argv]


def steps(rig, millraced, tmp_path):
    """([(name, n)], seconds): the n-th call of that name, in the order of start-up, and its length."""
    trace = tmp_path / "trace"
    daemon = millraced(rig.dut, *FLAGS, wrap=strace("-o", trace), json_lines=False, ready=False)
    code, took = daemon.wait(20)
    assert code == 0, str(daemon)
    lines = trace.read_text().split("\n")
    first = next(n for n, line in enumerate(lines) if FIRST_STEP.match(line))
    last = next(n for n, line in enumerate(lines) if f'"{READY}' in line)
    seen, found = {}, []
    for n, line in enumerate(lines[:last]):
        match = CALL.match(line)
        if not match:
            continue
        name = match.group(1)
        seen[name] = seen.get(name, 0) + 1
        if n > first and name in INTERESTING:
            found.append((name, seen[name]))
    return found, took - DURATION


def chosen(found, full):
    """All; or the last of every name, and others evenly over the whole."""
    if full:
        return found
    last = set(dict(found).items())
    return [one for n, one in enumerate(found)
            if one in last or n % max(1, len(found) // (SPREAD - len(last))) == 0]


def pins():
    return sorted(os.listdir(BPF_PINS)) if BPF_PINS.is_dir() else []


def interrupted(rig, millraced, step, number, limit):
    name, n = step
    inject = strace("-e", f"trace={name}", "-o", "/dev/null",
                    "-e", f"inject={name}:signal={number.name}:when={n}")
    daemon = millraced(rig.dut, *FLAGS, wrap=inject, json_lines=False, ready=False)
    code, took = daemon.wait(10)
    where = f"{number.name} at {name} {n}: {daemon}"
    assert took < limit, f"took {took:.1f} s: {where}"
    return daemon, code, where


def nothing_is_left(rig, where):
    assert [rig.dut.promiscuity(port) for port in rig.ports] == [0, 0], where
    assert rig.dut.attached() == {}, where


def test_sigterm_at_every_step_of_start_up(rig2, millraced, tmp_path, request):
    rig, before = rig2(), pins()
    found, start_up = steps(rig, millraced, tmp_path)
    for step in chosen(found, request.config.option.full):
        daemon, code, where = interrupted(rig, millraced, step, signal.SIGTERM,
                                         start_up + END_LIMIT)
        assert code == 0, where
        assert "error" not in daemon.stderr, where
        assert READY in daemon.stderr or "ended before forwarding began" in daemon.stderr, where
        nothing_is_left(rig, where)
    assert pins() == before
    millraced(rig.dut, "-l", "-i", "d0", "-i", "d1").stop()


def test_sigkill_at_every_step_of_start_up(rig2, millraced, tmp_path, request):
    rig, before = rig2(), pins()
    found, start_up = steps(rig, millraced, tmp_path)
    for step in chosen(found, request.config.option.full):
        _, code, where = interrupted(rig, millraced, step, signal.SIGKILL,
                                         start_up + END_LIMIT)
        assert code == -signal.SIGKILL, where
        wait_until(lambda: not any("xdp" in link for link in rig.dut.links().values()), 2, where)
        nothing_is_left(rig, where)
    assert pins() == before
    millraced(rig.dut, "-l", "-i", "d0", "-i", "d1").stop()


class KernelLog:
    """What the kernel has to say from now on that is a warning or graver."""

    def __init__(self):
        self._fd = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
        os.lseek(self._fd, 0, os.SEEK_END)

    def close(self):
        os.close(self._fd)

    def grave(self):
        lines = []
        while True:
            try:
                lines.append(os.read(self._fd, 8192).decode(errors="replace"))
            except BlockingIOError:
                break
        # "4,51166,33458131766,-;text": facility * 8 + level; 4 is a warning. That of the audit log is of
        # how much others do at once.
        return [line for line in lines
                if int(line.split(",")[0]) <= 4 and "kauditd_printk_skb" not in line]


def test_ends_under_flood_leave_the_kernel_quiet(request, rig2, flood, millraced, closing, attach):
    """SIGTERM while every ring is full, again and again: the kernel has nothing to complain about."""
    rig = rig2()
    rig.gro_on("d0", "s0")
    log = closing(KernelLog())
    flood(rig.sink, "sink", "s0")
    flood(rig.gen, "gen", "g0")
    for number in range(100 if request.config.getoption("--full") else 2):
        received = rig.sink.link("s0")["stats64"]["rx"]["packets"]
        daemon = millraced(rig.dut, "-l", "-i", "d0", "-i", "d1", attach=attach)
        wait_until(lambda: rig.sink.link("s0")["stats64"]["rx"]["packets"] > received + 100,
                   5, "frames that cross")
        time.sleep(number % 10 / 100)
        daemon.stop()
        assert rig.dut.attached() == {}
        assert not log.grave(), f"after end {number}"
    # What is freed later is heard of later.
    time.sleep(0.5)
    assert not log.grave()
