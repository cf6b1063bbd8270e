"""Talking to the control socket of a daemon: by the protocol, by millracectl, as somebody else."""

import contextlib
import json
import os
import pathlib
import socket
import subprocess
import tempfile

from daemon import MILLRACED

MILLRACECTL = MILLRACED.with_name("millracectl")


class Folder:
    """A folder for a socket that everybody may enter, unlike pytest's own."""

    def __init__(self):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="mrctl"))
        self.path.chmod(0o755)
        self.socket = self.path / "sock"

    def close(self):
        for left in self.path.iterdir():
            left.unlink()
        self.path.rmdir()


class Client:
    """One connection. `answer` is what came for a request; `result` insists that it was good."""

    def __init__(self, path, timeout=20):
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(timeout)
        self._buffer = b""
        self._socket.connect(str(path))

    def close(self):
        self._socket.close()

    def send(self, data):
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._socket.sendall(data)

    def line(self):
        """The next line, or None when there will be none."""
        while b"\n" not in self._buffer:
            try:
                piece = self._socket.recv(65536)
            except ConnectionResetError:
                piece = b""
            if not piece:
                return None
            self._buffer += piece
        line, self._buffer = self._buffer.split(b"\n", 1)
        return json.loads(line)

    def request(self, command, **arguments):
        self.send(json.dumps({"version": 1, "command": command,
                              "arguments": arguments}).encode() + b"\n")

    def answer(self, command, **arguments):
        self.request(command, **arguments)
        return self.line()

    def result(self, command, **arguments):
        answer = self.answer(command, **arguments)
        assert answer["version"] == 1 and answer["ok"] is True, answer
        return answer["result"]


def result(path, command, **arguments):
    with contextlib.closing(Client(path)) as client:
        return client.result(command, **arguments)


def code(answer):
    """The code of an error."""
    assert answer["ok"] is False and answer["error"]["message"], answer
    return answer["error"]["code"]


def millracectl(path, *arguments, timeout=20):
    """What millracectl does: exit status, standard output, standard error."""
    done = subprocess.run([MILLRACECTL, "-s", path, *map(str, arguments)], capture_output=True,
                          text=True, timeout=timeout, env={**os.environ, "LC_ALL": "C"})
    return done.returncode, done.stdout, done.stderr


def as_user(uid, gid, groups, function):
    """What the function returns, which JSON can say, in a process of another user.

    No program is run, so the build folder may be closed to that user.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.setgroups(groups)
            os.setresgid(gid, gid, gid)
            os.setresuid(uid, uid, uid)
            os.write(writing, json.dumps(function()).encode())
        except BaseException as error:  # the parent sees it
            os.write(writing, json.dumps({"error": repr(error)}).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    return json.loads(said)
