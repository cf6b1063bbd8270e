"""Configuration files for a test: sections from Python, and a file that is written anew."""

import contextlib
import os
import signal

from control import millracectl, result
from lab import SLOWNESS, backlog_drops, wait_until
from wire import Stream, Taker


def section(head, keys):
    lines = [f"{key.replace('_', '-')} = {value}" for key, value in keys.items()]
    return "\n".join([f"[{head}]", *lines, ""])


def port(name, device, **keys):
    return section(f"port {name}", {"device": device, **keys})


def forward(name, mode, ports, **keys):
    return section(f"forward {name}", {"mode": mode, "ports": ports, **keys})


class File:
    """A configuration file with a control socket. `write` replaces what it says."""

    def __init__(self, path, sock):
        self.path, self.sock = path, sock

    def write(self, *sections):
        text = "\n".join([section("millrace", {"control-socket": self.sock}), *sections])
        beside = self.path.with_suffix(".new")
        beside.write_text(text)
        os.replace(beside, self.path)
        return self.path

    def ask(self, command, **arguments):
        return result(self.sock, command, **arguments)

    def reload(self):
        """By millracectl: exit status, lines on standard output, lines on standard error."""
        status, out, err = millracectl(self.sock, "reload", timeout=60)
        return status, out.splitlines(), err.splitlines()

    def take(self, *sections):
        """Write, reload, and it must be taken."""
        before = self.ask("status")["generation"]
        self.write(*sections)
        status, _, err = self.reload()
        assert (status, err) == (0, []), err
        now = self.ask("status")
        assert now["generation"] == before + 1 and now["last_reload"]["ok"] is True, now
        return now

    def refuse(self, *sections):
        """Write, reload, and it must not be taken. Returns the lines that say why."""
        before = self.ask("status")
        self.write(*sections)
        status, out, err = self.reload()
        assert status == 1 and out == [] and err, (status, out, err)
        now = self.ask("status")
        assert now["generation"] == before["generation"]
        assert now["last_reload"]["ok"] is False and now["last_reload"]["errors"] > 0
        return err

    def hang_up(self, daemon):
        """Reload by SIGHUP; wait until it was tried."""
        age = self.ask("status")["last_reload"]
        daemon.send(signal.SIGHUP)

        def tried():
            now = self.ask("status")["last_reload"]
            return now and (not age or now["age_seconds"] < age["age_seconds"])

        wait_until(tried, 10 * SLOWNESS, "a reload", step=0.05)
        return self.ask("status")


def forwards_of(status):
    """{forward: its workers} of a status."""
    found = {}
    for worker in status["workers"]:
        found.setdefault(worker["forward"], []).append(worker)
    return found


def devices_of(status):
    """{port: device} of a status."""
    return {one["port"]: one["device"] for one in status["ports"]}


@contextlib.contextmanager
def unharmed(task, build, sender, receiver, rate):
    """A numbered stream runs through meanwhile, and all of it arrives, once, in order, unchanged."""
    dropped = backlog_drops()
    taker, stream = Taker(task, receiver), Stream(task, sender, build, rate)
    try:
        yield stream
    finally:
        stream.stop()
        got = taker.stop()
    assert stream.refused == 0, f"{stream.refused} frames were never sent"
    assert receiver.lost() == 0, "the tap had no room"
    at = next((n for n, frame in enumerate(got) if frame != build(n)), len(got))
    assert at == len(got) == stream.given, (
        f"{receiver.where}: {len(got)} frames of {stream.given}, the first difference at {at}; "
        f"the host's backlogs dropped {backlog_drops() - dropped}")
