"""A reader of standard output that stops reading holds nothing up (RIG-1).

Plain subprocesses here: the Daemon class reads all the time.
"""

import fcntl
import json
import signal
import subprocess
import time

import pytest
from daemon import MILLRACED, READY, WAITING_FLAG, stopped
from lab import SLOWNESS


@pytest.fixture
def unread(closing):
    """millraced with a full, small pipe for standard output that nobody reads."""
    class Unread:
        def __init__(self, namespace, *flags):
            self.process = subprocess.Popen(
                namespace.command(str(MILLRACED), *flags), stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            fcntl.fcntl(self.process.stdout, fcntl.F_SETPIPE_SZ, 4096)
            while READY.encode() not in (line := self.process.stderr.readline()):
                assert line, "ended instead of forwarding"

        def end(self, number=signal.SIGTERM):
            start = time.monotonic()
            self.process.send_signal(number)
            code = self.process.wait(10)
            return code, time.monotonic() - start

        def close(self):
            if self.process.poll() is None:
                self.process.kill()
            self.process.wait(10)
            self.process.stdout.close()
            self.process.stderr.close()

    return lambda *arguments: closing(Unread(*arguments))


@pytest.mark.parametrize("flags", [["--json"], []], ids=["json", "rows"])
def test_sigterm_ends_it_though_nobody_reads_its_output(rig1, unread, waiting, flags):
    rig = rig1()
    wait = WAITING_FLAG[waiting]
    daemon = unread(rig.dut, "-i", "d0", "-q", "0", *wait, *flags)
    # One JSON line is about 1 KiB, so a page is full after four of them.
    time.sleep(7 if flags else 2)
    code, took = daemon.end()
    assert code == 0
    assert took <= 2.0 * SLOWNESS
    said = daemon.process.stderr.read().decode()
    if flags:
        assert "reports were skipped: nobody reads standard output" in said
    assert rig.dut.attached() == {}


def test_a_late_reader_gets_whole_lines(rig1, unread):
    """What it missed is missing whole: no line is cut, none is mixed with another."""
    rig = rig1()
    daemon = unread(rig.dut, "-i", "d0", "--json")
    time.sleep(7)
    daemon.process.send_signal(signal.SIGTERM)
    out, _ = daemon.process.communicate(timeout=10)
    records = [json.loads(line) for line in out.splitlines()]
    assert len(records) >= 3
    assert records == sorted(records, key=lambda record: record["seconds"])


def test_reports_missed_while_stopped_do_not_come_in_a_burst(rig1, millraced):
    rig = rig1()
    daemon = millraced(rig.dut, "-i", "d0")
    daemon.next_record()
    with stopped(daemon.pid):
        time.sleep(4)
    time.sleep(1.5)
    daemon.stop()
    times = [record["seconds"] for record in daemon.records[:-1]]
    assert all(later - sooner > 0.3 for sooner, later in zip(times, times[1:])), times
