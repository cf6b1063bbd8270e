"""One run of millraced in a namespace: start, ready signal, JSON lines, end, and the frame audit.

Every stop ends with the audit: balance 0 for every worker in every line, nothing unexplained by any
program, and in the final line (printed after the ledger walk) every frame back in its pool.
"""

import array
import collections
import contextlib
import fcntl
import json
import os
import pathlib
import re
import resource
import signal
import subprocess
import termios
import threading
import time

from lab import SLOWNESS, wait_until

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
MILLRACED = pathlib.Path(os.environ.get("MILLRACED", REPOSITORY / "build/millraced"))
READY = "millraced: forwarding"
BOUND = re.compile(r"millraced: (?P<interface>\S+) q(?P<queue>\d+): (?P<attach>native|skb), "
                   r"(?P<copy>zero-copy|copy), (?P<wakeup>(no )?need_wakeup), cpu (?P<cpu>\d+), "
                   r"worker (?P<worker>\d+)")
END_LIMIT = 2.0 * SLOWNESS
ATTACH_FLAG = {"native": ["-N"], "skb": ["-S"], "auto": []}
WAITING_FLAG = {"adaptive": [], "spin": ["--wait=spin"], "poll": ["-p"]}


class Daemon:
    """`limits` is {resource.RLIMIT_X: bytes, or (soft, hard)}; `wrap` turns an argument vector into
    another."""

    def __init__(self, namespace, *args, json_lines=True, wrap=None, limits=None):
        self.json_lines = json_lines
        self.argv = [str(MILLRACED), *map(str, args)] + (["--json"] if json_lines else [])
        argv = wrap(self.argv) if wrap else self.argv
        self.out, self.err = [], []  # (monotonic time, text) of each line
        self._news = threading.Condition()
        self.started = time.monotonic()

        def limit():
            for which, size in limits.items():
                resource.setrlimit(which, size if isinstance(size, tuple) else (size, size))

        self.process = subprocess.Popen(
            namespace.command(*argv), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, errors="replace",
            preexec_fn=limit if limits else None, env={**os.environ, "LC_ALL": "C"})
        self._readers = [threading.Thread(target=self._read, args=pair, daemon=True)
                         for pair in ((self.process.stdout, self.out),
                                      (self.process.stderr, self.err))]
        for reader in self._readers:
            reader.start()

    def _read(self, stream, lines):
        for line in stream:
            with self._news:
                lines.append((time.monotonic(), line.rstrip("\n")))
                self._news.notify_all()
        with self._news:
            self._news.notify_all()

    # What it said

    @property
    def pid(self):
        return self.process.pid

    @property
    def stderr(self):
        return "\n".join(text for _, text in self.told())

    def told(self):
        """The lines of its standard error, (monotonic time, text): all that it has written until now."""
        unread = array.array("i", [1])
        deadline = time.monotonic() + SLOWNESS
        while unread[0] and time.monotonic() < deadline:
            fcntl.ioctl(self.process.stderr, termios.FIONREAD, unread)
            time.sleep(0.001)  # also where nothing is unread: a line may be on its way to the list
        with self._news:
            return list(self.err)

    @property
    def stdout(self):
        return "\n".join(text for _, text in self.out)

    @property
    def records(self):
        return [json.loads(text) for _, text in list(self.out)]

    @property
    def bound(self):
        """What the start-up lines say of each (interface, queue)."""
        found = [BOUND.match(text) for _, text in list(self.err)]
        return {(m["interface"], int(m["queue"])): m.groupdict() for m in found if m}

    def said(self, text):
        """The lines of its standard error so far that have the text."""
        return [line for _, line in self.told() if text in line]

    def warnings(self, pattern=""):
        """The warnings so far in which the pattern is found."""
        return [text for _, text in self.told()
                if "warning: " in text and re.search(pattern, text)]

    def __str__(self):
        return (f"{' '.join(self.argv)}\nexit: {self.process.poll()}\nstderr:\n{self.stderr}\n"
                f"stdout (tail):\n" + "\n".join(text for _, text in self.out[-3:]))

    # Its life

    @property
    def running(self):
        return self.process.poll() is None

    def wait_ready(self, timeout=10):
        wait_until(lambda: READY in self.stderr or not self.running, timeout * SLOWNESS,
                   f"ready line of {self}")
        if READY not in self.stderr:
            for reader in self._readers:
                reader.join(2)
        assert READY in self.stderr, f"ended instead of forwarding: {self}"
        return self

    def next_record(self, timeout=15):
        """The first JSON line that is printed after this call."""
        known = len(self.out)
        with self._news:
            self._news.wait_for(lambda: len(self.out) > known or not self.running, timeout)
        assert len(self.out) > known, f"no JSON line within {timeout} s: {self}"
        return json.loads(self.out[known][1])

    def quiet_record(self):
        """A line made when all that was sent so far has come to its end; the fourth in any case.

        A worker kept off its CPU for long is reported as it was last seen: then ask again.
        """
        time.sleep(0.1)
        for _ in range(4):
            record = self.next_record()
            if settled(record):
                break
        return record

    def cpu_seconds(self):
        """CPU time of all its threads so far, to the nanosecond."""
        tasks = pathlib.Path(f"/proc/{self.pid}/task")
        return sum(int((one / "schedstat").read_text().split()[0]) for one in tasks.iterdir()) / 1e9

    def send(self, number):
        self.process.send_signal(number)

    def wait(self, timeout):
        """Wait for the end; return (exit code, seconds waited)."""
        start = time.monotonic()
        try:
            code = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running after {timeout:g} s: {self}") from None
        took = time.monotonic() - start
        for reader in self._readers:
            reader.join(5)
        return code, took

    def kill(self):
        if self.running:
            self.process.kill()
        self.process.wait(10)
        for reader in self._readers:
            reader.join(5)

    def stop(self, number=signal.SIGTERM):
        """A clean end by a signal: exit 0 in time, then the audit. Returns the final record."""
        assert self.running, f"ended by itself: {self}"
        self.send(number)
        code, took = self.wait(END_LIMIT + 8)
        assert code == 0, f"exit {code}: {self}"
        assert took <= END_LIMIT, f"took {took:.2f} s to end: {self}"
        return self.audit()

    def ended(self, timeout, code=0):
        """It ends by itself with `code`; then the audit. Returns the final record."""
        got, _ = self.wait(timeout)
        assert got == code, f"exit {got}, want {code}: {self}"
        return self.audit()

    def fails(self, code=1, timeout=10):
        """It refuses to start: the exit code and what it says on standard error."""
        got, _ = self.wait(timeout)
        assert got == code, f"exit {got}, want {code}: {self}"
        assert READY not in self.stderr
        assert self.stderr.strip(), "refused without a word"
        return self.stderr

    def audit(self):
        if not self.json_lines:
            return None
        records = self.records
        assert records, f"no JSON line at all: {self}"
        for record in records:
            check_balance(record)
        check_final(records[-1])
        if "deleted, or moved" not in self.stderr:
            assert not any(one["departed"] for one in records[-1]["programs"]), f"nothing left: {records[-1]}"
        return records[-1]


@contextlib.contextmanager
def stopped(pid):
    """The process does nothing meanwhile. kill() returns while its threads still run on other CPUs."""
    def stands():
        stats = [(one / "stat").read_text() for one in pathlib.Path(f"/proc/{pid}/task").iterdir()]
        return all(stat.rpartition(")")[2].split()[0] == "T" for stat in stats)

    os.kill(pid, signal.SIGSTOP)
    try:
        wait_until(stands, 5 * SLOWNESS, "every thread stopped", step=0.001)
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def check_balance(record):
    assert record["workers"] and record["sockets"], record
    for worker in record["workers"]:
        assert worker["balance"] == 0, f"frames out of balance: {record}"
        assert worker["total"] > 0, record
    for program in record["programs"]:
        assert program["unexplained"] in (0, None), f"frames vanished: {record}"


def check_final(record):
    for worker in record["workers"]:
        assert worker["lost"] == 0, f"frames lost: {record}"
        assert worker["pool"] == worker["total"] - worker["lost"], f"frames not back: {record}"


def settled(record):
    """Every frame that was seen is accounted for and none is left in a ring."""
    return (not any(total(record, ring) for ring in ("rx", "tx", "completion")) and
            all(one["seen"] in (None, explained(record, one["interface"]))
                for one in record["programs"]))


def total(record, field, interface=None):
    """A socket field summed over all queues (of one interface)."""
    return sum(socket[field] for socket in record["sockets"]
               if interface in (None, socket["interface"]))


def balanced(record):
    """For all frames of a bridge: received + copies + probes = sent + dropped."""
    got = sum(total(record, count) for count in ("rx_packets", "copies", "probes"))
    dropped = sum(sum(one["drops"].values()) for one in record["sockets"])
    return got == total(record, "tx_packets") + dropped


def no_drops_but(record, *reasons):
    return all(not count or reason in reasons
               for one in record["sockets"] for reason, count in one["drops"].items())


def drops(record):
    """{reason: how many over all sockets}, of those that there were."""
    sums = collections.Counter()
    for one in record["sockets"]:
        sums.update(one["drops"])
    return {reason: count for reason, count in sums.items() if count}


def program(record, interface):
    return next(p for p in record["programs"] if p["interface"] == interface)


def explained(record, interface):
    """Right side of the port's equation: passed + departed + received + rx_dropped + rx_ring_full."""
    one = program(record, interface)
    return (one["passed"] or 0) + (one["departed"] or 0) + sum(
        total(record, field, interface) for field in ("rx_packets", "rx_dropped", "rx_ring_full"))
