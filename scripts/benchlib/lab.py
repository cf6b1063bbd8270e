# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The network namespaces of a run and the processes in them."""

import contextlib
import itertools
import json
import os
import pathlib
import shlex
import signal
import subprocess
import tempfile
import threading
import time

READY_S = 10  # to load and attach; a start-up that takes longer is a failure


class Failure(Exception):
    """One cell of one round could not be measured; the text says why."""


def run(*argv, check=True):
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if check and done.returncode:
        reason = done.stderr.strip().splitlines() or [f"exit {done.returncode}"]
        raise Failure(f"{shlex.join(argv)}: {reason[-1]}")
    return done.stdout


def cpu_ns(pid, but=()):
    """CPU time of all threads of a process so far, but of these."""
    return sum(int((task / "schedstat").read_text(encoding="ascii").split()[0])
               for task in pathlib.Path(f"/proc/{pid}/task").iterdir() if task.name not in but)


class Tool:
    """A process in a namespace whose lines are kept with the time they came."""

    def __init__(self, namespace, argv):
        self.argv = argv
        self.lines = []
        self.stderr = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            ["ip", "netns", "exec", namespace, *argv],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self.stderr,
            text=True,
            start_new_session=True,  # ^C is ours to handle
        )
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.append((time.monotonic(), line))

    def fail(self, what):
        self.stderr.seek(0)
        said = self.stderr.read().strip().splitlines()
        said = said or [line.strip() for _, line in self.lines if line.strip()]
        raise Failure(f"{self.argv[0]} {what}" + (f": {said[-1]}" if said else ""))

    def wait_for(self, ready, what):
        """Until ready() is true; the process must live so long."""
        deadline = time.monotonic() + READY_S
        while not ready():
            if self.process.poll() is not None:
                self.reader.join(1)
                self.fail(f"ended with {self.process.returncode}")
            if time.monotonic() > deadline:
                self.fail(f"{what}: not within {READY_S} s")
            time.sleep(0.02)

    def stop(self, patience_s=3):
        """The exit status, or None if it had to be killed."""
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGINT)
        try:
            status = self.process.wait(patience_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            status = None
        self.reader.join(1)
        return status

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.reader.join(1)
        self.process.stdout.close()
        self.stderr.close()


class Lab:
    """Two namespaces, a veth pair for each of `widths` with so many queues at both ends, and every
    process started in them."""

    serial = itertools.count()

    def __init__(self, widths=(1,), gro=False, busy_poll=False):
        stem = f"mrbench-{os.getpid()}-{next(Lab.serial)}"
        self.ends, self.mid = f"{stem}-e", f"{stem}-m"
        self.widths, self.gro, self.busy_poll = widths, gro, busy_poll
        self.tools = []

    def __enter__(self):
        try:
            self._build()
        except BaseException:
            self.close()
            raise
        return self

    def _build(self):
        quiet = "for f in /proc/sys/net/ipv6/conf/*/disable_ipv6; do echo 1 >$f; done"
        for namespace in (self.ends, self.mid):
            run("ip", "netns", "add", namespace)
            run("ip", "netns", "exec", namespace, "sh", "-c", quiet, check=False)
        for i, width in enumerate(self.widths):
            queues = ("numtxqueues", str(width), "numrxqueues", str(width))
            run(
                *("ip", "-n", self.ends, "link", "add", f"g{i}", *queues, "type", "veth"),
                *("peer", "name", f"d{i}", *queues, "netns", self.mid),
            )
            run("ip", "-n", self.ends, "link", "set", f"g{i}", "up")
            run("ip", "-n", self.mid, "link", "set", f"d{i}", "up")
            if self.gro:  # or veth refuses frames redirected towards a generic program
                run("ip", "netns", "exec", self.mid, "ethtool", "-K", f"d{i}", "gro", "on")
            if self.busy_poll:
                self._prefer_busy_poll(f"d{i}")

    def _prefer_busy_poll(self, dev):
        """Leaves the device's NAPI to who polls it; without, SO_PREFER_BUSY_POLL means nothing."""
        sets = f"cd /sys/class/net/{dev} && echo 2 >napi_defer_hard_irqs"
        sets += " && echo 200000 >gro_flush_timeout"
        run("ip", "netns", "exec", self.mid, "sh", "-c", sets)

    def start(self, namespace, argv):
        tool = Tool(namespace, argv)
        self.tools.append(tool)
        return tool

    def attached(self, dev):
        return "xdp" in self._link(dev)

    def in_bridge(self, dev):
        return "master" in self._link(dev)

    def filters(self, dev):
        return run("tc", "-n", self.mid, "filter", "show", "dev", dev, "ingress").strip()

    def _link(self, dev):
        return json.loads(run("ip", "-j", "-n", self.mid, "link", "show", dev))[0]

    def close(self):
        for tool in self.tools:
            tool.close()
        for namespace in (self.ends, self.mid):
            run("ip", "netns", "del", namespace, check=False)

    def __exit__(self, *exc):
        # A second ^C must not leave half of it behind.
        kept = {s: signal.signal(s, signal.SIG_IGN) for s in (signal.SIGINT, signal.SIGTERM)}
        self.close()
        for number, handler in kept.items():
            signal.signal(number, handler)
