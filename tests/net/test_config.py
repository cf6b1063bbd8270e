"""The configuration file: --check and --print-config, what flags may stand beside it, and a run."""

import os
import pathlib
import socket
import subprocess
import time

import frames
import pytest
from daemon import MILLRACED, READY, total
from wire import exchange

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "configs/millrace.conf.example"
PATCH = """\
[port wan]
device = d0
attach = {attach}

[port lan]
device = d1
attach = {attach}

[forward main]
mode = patch
ports = wan lan
wait = {wait}
"""
WRONG = """\
[port wan]
device = d0
quues = 1

[forward main]
mode = patch
ports = wan
batch = 0
"""


def ask(*arguments):
    return subprocess.run([MILLRACED, *map(str, arguments)], capture_output=True, text=True,
                          timeout=20)


@pytest.fixture
def write(tmp_path):
    """Write a file and return its path."""
    def make(text, name="millrace.conf"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path
    return make


def test_the_example_is_correct(write, tmp_path):
    text = EXAMPLE.read_text()
    for made in ("/run/millrace/", "= millrace "):
        assert made in text
    path = write(text.replace("/run/millrace/", f"{tmp_path}/").replace("= millrace ", "= root "))
    done = ask("--check", path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{path}: correct; 2 ports, 1 forward\n")


@pytest.mark.parametrize("sock, group, messages", [
    ("nix/s", "root", ["control socket {folder}/nix/s: there is no folder {folder}/nix; make it with "
                       "`mkdir -p {folder}/nix`"]),
    ("file/s", "root", ["control socket {folder}/file/s: the folder {folder}/file: ENOTDIR "
                        "(Not a directory)"]),
    ("file", "root", ["control socket {folder}/file: there is a file that is no socket; it stays, "
                      "choose another path with --control-socket"]),
    ("s", "nix", ["control group 'nix': there is no such group; make it with `groupadd --system nix`"]),
    ("nix/s", "nix", ["control group 'nix': there is no such group; make it with `groupadd --system "
                      "nix`", "control socket {folder}/nix/s: there is no folder {folder}/nix; make "
                      "it with `mkdir -p {folder}/nix`"]),
], ids=["no folder", "a file", "no socket", "no group", "neither"])
def test_check_says_what_the_control_socket_lacks(write, tmp_path, sock, group, messages):
    """Exit status 1, and the first message is what a start ends with."""
    (tmp_path / "file").touch()
    path = write(f"[millrace]\ncontrol-socket = {tmp_path}/{sock}\ncontrol-group = {group}\n\n"
                 + PATCH.format(attach="auto", wait="poll"))
    wanted = [f"millraced: error: {message}".format(folder=tmp_path) for message in messages]
    done = ask("--check", path)
    assert done.returncode == 1 and done.stdout == ""
    assert [line for line in done.stderr.splitlines() if "error: " in line] == wanted
    started = ask("--config", path)
    assert started.returncode == 1 and started.stderr.splitlines() == wanted[:1]
    assert [one.name for one in sorted(tmp_path.iterdir())] == ["file", path.name], "untouched"


@pytest.mark.parametrize("answers", [True, False], ids=["a daemon answers", "left behind"])
def test_check_may_find_a_socket(write, tmp_path, answers):
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(str(tmp_path / "s"))
        if answers:
            listening.listen()
        path = write(f"[millrace]\ncontrol-socket = {tmp_path}/s\n\n"
                     + PATCH.format(attach="auto", wait="poll"))
        done = ask("--check", path)
        assert done.returncode == 0 and "control" not in done.stderr, done.stderr
    assert (tmp_path / "s").is_socket()


def test_check_says_all_that_is_wrong(write):
    path = write(WRONG)
    done = ask("--check", path)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.splitlines() == [
        f"millraced: error: {path}:3: [port wan]: quues: no such key; did you mean queues?",
        f"millraced: error: {path}:7: [forward main]: mode = patch: takes two ports, not 1",
        f"millraced: error: {path}:8: [forward main]: batch = 0: must be 1 to 1024"]


def test_more_than_a_hundred_errors_are_counted(write):
    path = write("wrong\n" * 130)
    lines = ask("--check", path).stderr.splitlines()
    assert len(lines) == 101
    assert lines[-1] == f"millraced: error: {path}: and 31 more"


def test_a_faulty_file_is_not_run(write):
    done = ask("--config", write(WRONG))
    assert done.returncode == 2 and "quues" in done.stderr and READY not in done.stderr


def test_warnings_do_not_fail_the_check(write):
    path = write(PATCH.format(attach="auto", wait="poll") + "[port dmz]\ndevice = d2\n")
    done = ask("--check", path)
    assert done.returncode == 0
    assert done.stderr.startswith(f"millraced: warning: {path}:13: [port dmz]: no forward serves it\n")
    assert all(line.startswith("millraced: warning: ") for line in done.stderr.splitlines())


@pytest.mark.parametrize("make, message", [
    (lambda path: None, "cannot be opened: ENOENT (No such file or directory)"),
    (lambda path: path.mkdir(), "is not a file but a directory"),
    (os.mkfifo, "is not a file but a device, pipe or socket"),
    (lambda path: path.write_bytes(b"[millrace]\n\0\n"),
     "2: has a byte 0x00; a configuration file is text"),
    (lambda path: path.write_bytes(b""), "has no forward; add a section [forward NAME]"),
], ids=["absent", "directory", "pipe", "NUL", "empty"])
def test_what_is_no_configuration(tmp_path, make, message):
    path = tmp_path / "x.conf"
    make(path)
    done = ask("--check", path)
    assert done.returncode == 2
    assert f"{path}:" in done.stderr and message in done.stderr


@pytest.mark.parametrize("text", [
    "\ufeff" + PATCH, PATCH.replace("\n", "\r\n"), PATCH.rstrip("\n"), "\n\n; x\n# y\n" + PATCH,
], ids=["byte order mark", "CRLF", "no last newline", "comments"])
def test_files_of_other_editors(write, text):
    done = ask("--check", write(text.format(attach="auto", wait="poll")))
    assert done.returncode == 0, done.stderr


def test_print_config_is_canonical(write):
    text = PATCH.format(attach="auto", wait="poll busy-poll") + "batch = 64\nring-size=1024 ; x\n"
    printed = ask("--config", write(text), "--print-config")
    assert printed.returncode == 0 and printed.stderr == ""
    first, _, rest = printed.stdout.partition("\n")
    assert first == "# millraced -l -i d0 -i d1 -q auto --wait=poll,busy-poll --pass=default -Q --ring-size=1024"
    assert rest == ("[port wan]\ndevice = d0\n\n[port lan]\ndevice = d1\n\n[forward main]\n"
                    "mode = patch\nports = wan lan\nwait = poll,busy-poll\nring-size = 1024\n")
    again = ask("--config", write(printed.stdout, "again.conf"), "--print-config")
    assert again.stdout == printed.stdout


def test_flags_and_the_file_they_print_are_the_same(write):
    flags = ["-l", "-i", "d0", "-i", "d1", "-q", "0,2-3", "-S", "-b", "16", "--cpus=1"]
    printed = ask(*flags, "--print-config")
    assert printed.returncode == 0
    assert printed.stdout.splitlines()[0] == "# millraced -l -i d0 -i d1 -q 0,2-3 -S -b 16 --cpus=1"
    again = ask("--config", write(printed.stdout), "--print-config")
    assert again.stdout.splitlines()[1:] == printed.stdout.splitlines()[1:]


def test_what_flags_cannot_say_is_said(write):
    text = PATCH.format(attach="auto", wait="poll").replace("device = d1",
                                                            "device = d1\npromiscuous = on")
    done = ask("--config", write(text), "--print-config")
    assert done.stdout.startswith("# no flags say this")


@pytest.mark.parametrize("flags, message", [
    (["-b", "32"], "-b, --batch-size: is the file's to say; write batch = 32 in its [forward NAME]"),
    (["-p"], "-p, --poll: is the file's to say; write wait = poll in its [forward NAME]"),
    (["-N"], "-N, --xdp-native: is the file's to say; write attach = native in its [port NAME]"),
    (["-i", "d0"], "-i, --interface: is the file's to say; write device = d0 in its [port NAME]"),
    (["--replace"], "--replace: is the file's to say; write replace = yes in its [port NAME]"),
    (["-l"], "-l, --l2fwd: is the file's to say; write mode = l2fwd in its [forward NAME]"),
    (["--check=y"], "--check=y: one file, and once; --check names its own"),
    (["--config="], "--config='': name a file"),
    (["--plan=xml"], "--plan=xml: must be --plan or --plan=json"),
    (["--plan", "--print-config"],
     "--check, --print-config and --plan exclude each other: give one"),
], ids=lambda value: " ".join(value) if isinstance(value, list) else "")
def test_flags_that_the_file_speaks_of_are_refused(write, flags, message):
    done = ask("--config", write(PATCH.format(attach="auto", wait="poll")), *flags)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr == f"millraced: error: {message}\n"


def test_help_config_names_every_key_of_the_example():
    done = ask("--help-config")
    assert done.returncode == 0 and done.stderr == ""
    for line in EXAMPLE.read_text().splitlines():
        key, equals, _ = line.removeprefix("# ").partition(" = ")
        if equals and not line.startswith("#  "):
            assert f"\n  {key.strip()} = " in done.stdout, key


@pytest.mark.parametrize("wait", ["spin", "poll"])
def test_a_patch_runs_from_a_file(rig2, tap, millraced, write, attach, wait):
    rig = rig2()
    near, far = tap(rig.gen, "g0"), tap(rig.sink, "s0")
    daemon = millraced(rig.dut, "--config", write(PATCH.format(attach=attach, wait=wait)))
    assert {one["attach"] for one in daemon.bound.values()} == {attach}
    there = [frames.numbered(n, 60 + n % 200) for n in range(2000)]
    exchange(near, far, there, there)
    exchange(far, near, there, there)
    final = daemon.stop()
    for port in rig.ports:
        assert total(final, "rx_packets", port) == total(final, "tx_packets", port) == len(there)


def test_a_file_is_run_without_reports(rig2, millraced, write):
    rig = rig2()
    path = write(PATCH.format(attach="auto", wait="poll"))
    daemon = millraced(rig.dut, "--config", path, json_lines=False)
    time.sleep(1.2)
    daemon.stop()
    assert daemon.stdout == ""
    daemon = millraced(rig.dut, "--config", path, "-n", "1", "-d", "1", json_lines=False)
    daemon.ended(10)
    assert "sock0@d0:0 l2fwd" in daemon.stdout or "sock0@d0:0 patch" in daemon.stdout
