# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The package, from its build to its purge, as a service under a systemd of its own.

One boot, in which the tests follow each other as they stand here: gen(g0) <-> d0, d1 <-> sink(s0).
"""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

import pytest

from container import Container, wait_until
from lablib.package import Packages

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
CONFIG = "/etc/millrace/millrace.conf"
DROP_IN = "/etc/systemd/system/millraced.service.d/test.conf"
CONFIGURATION = """\
[millrace]
control-socket = /run/millrace/control.sock
control-group = millrace
ring-size = 256
frames-per-queue = 2048

[port wan]
device = d0

[port lan]
device = d1
wait-for-device = yes

[forward main]
mode = patch
ports = wan lan
wait = poll
batch = {batch}
"""
CAPABILITIES = {"cap_net_admin", "cap_net_raw", "cap_bpf", "cap_ipc_lock"}
# systemd's count of what is left open, of 10; configs/millraced.service.in has the reasons.
EXPOSURE_LIMIT = 1.8


class Host:
    """What the tests ask of the container."""

    def __init__(self, container):
        self.container, self.run = container, container.run

    def show(self, *names, unit="millraced"):
        text = self.run("systemctl", "show", unit, *(f"-p{name}" for name in names)).stdout
        values = dict(line.split("=", 1) for line in text.splitlines())
        return [values[name] for name in names]

    @property
    def status(self):
        return self.show("StatusText")[0]

    @property
    def pid(self):
        pid = int(self.show("MainPID")[0])
        assert pid > 0, self.journal("-n", "30")  # and `kill 0` would be meant for us
        return pid

    @property
    def helper(self):
        return int(self.run("pgrep", "-x", "millrace-opener").stdout)

    def journal(self, *more):
        return self.run("journalctl", "-u", "millraced", "-o", "cat", *more).stdout

    def said(self, pattern):
        """The journal has a line like this; it comes there a moment after it was said."""
        return wait_until(lambda: re.search(pattern, self.journal(), re.MULTILINE), 10,
                          f"{pattern!r} in the journal:\n{self.journal('-n', '30')}")[0]

    def programs(self):
        """Devices with an XDP program."""
        links = json.loads(self.run("ip", "-j", "-d", "link", "show").stdout)
        return {link["ifname"] for link in links if link.get("xdp")}

    def configure(self, batch=64):
        self.container.path(CONFIG).write_text(CONFIGURATION.format(batch=batch))

    def drop_in(self, text):
        path = self.container.path(DROP_IN)
        path.parent.mkdir(exist_ok=True)
        path.write_text("[Service]\n" + text)
        self.run("systemctl", "daemon-reload")

    def ping(self):
        self.run("ip", "netns", "exec", "gen", "ping", "-q", "-i", "0.05", "-c", "5", "-W", "1",
                 "192.0.2.2")

    def tcp(self):
        """Bytes that came through in a second."""
        self.run("ip", "netns", "exec", "sink", "iperf3", "-s", "-1", "-D")
        time.sleep(0.2)
        done = self.run("ip", "netns", "exec", "gen", "iperf3", "-J", "-t", "1", "-c", "192.0.2.2")
        return json.loads(done.stdout)["end"]["sum_received"]["bytes"]

    def wait_for_another(self, pid, timeout=30):
        """The service is up again as another process."""
        def another():
            state, main = self.show("ActiveState", "MainPID")
            return state == "active" and int(main) not in (0, pid) and int(main)
        return wait_until(another, timeout, f"a millraced in the place of {pid}")


@pytest.fixture(scope="module")
def packages():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="millrace-packages-"))
    yield Packages(folder)
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def host(packages):
    container = Container(packages.folder)
    try:
        wires = [("gen", "g0", "d0", "192.0.2.1/24"), ("sink", "s0", "d1", "192.0.2.2/24")]
        for namespace, far, near, address in wires:
            inside = ["ip", "netns", "exec", namespace]
            container.run("ip", "netns", "add", namespace)
            container.run("ip", "link", "add", near, "numrxqueues", 1, "numtxqueues", 1, "type",
                          "veth", "peer", far, "numrxqueues", 1, "numtxqueues", 1, "netns",
                          namespace)
            container.run("ip", "link", "set", near, "up")
            container.run(*inside, "ip", "link", "set", far, "up")
            container.run(*inside, "ip", "address", "add", address, "dev", far)
            container.run(*inside, "ethtool", "-K", far, "tx", "off")
        yield Host(container)
    finally:
        container.close()


def test_what_it_is_built_with_is_listed():
    """A host that has everything builds a package whose list lacks something."""
    control = (REPOSITORY / "debian/control").read_text()
    installed = (REPOSITORY / "scripts/install-deps").read_text()
    files = [REPOSITORY / "meson.build", REPOSITORY / "tests/meson.build"]
    names = re.findall(r"dependency\('([\w-]+)'", "".join(file.read_text() for file in files))
    assert {"libbpf", "cmocka"} <= set(names)
    for name in set(names) - {"threads"}:
        folder = subprocess.run(["pkg-config", "--variable=pcfiledir", name], check=True, text=True,
                                capture_output=True).stdout.strip()
        owner = subprocess.run(["dpkg", "-S", f"{folder}/{name}.pc"], check=True, text=True,
                               capture_output=True).stdout.split(":")[0]
        assert re.search(rf"^ {owner}\b", control, re.MULTILINE), f"debian/control lacks {owner}"
        assert re.search(rf"\s{owner}\s", installed), f"scripts/install-deps lacks {owner}"


def test_it_builds_and_lintian_has_nothing_to_say(packages):
    packages.build()
    changes = next(packages.folder.glob("*.changes"))
    done = subprocess.run(["lintian", "--allow-root", "--fail-on", "error,warning", changes],
                          text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout


def test_as_installed_it_touches_nothing(host):
    host.run("apt-get", "install", "-y", "--no-install-recommends", "/mnt/millrace_0.1.0_amd64.deb")
    assert host.show("ActiveState", "UnitFileState") == ["inactive", "disabled"]
    assert host.run("id", "-un", "millrace").stdout == "millrace\n"
    assert host.run("systemctl", "start", "millraced", check=False).returncode == 1
    host.said(f"^error: {CONFIG}: has no forward")
    host.run("systemctl", "stop", "millraced")
    assert host.programs() == set()
    verified = host.run("systemd-analyze", "verify", "millraced.service", "millraced@x.service")
    assert "millrace" not in verified.stderr


def test_edited_and_enabled_it_forwards(host):
    host.configure()
    host.run("systemctl", "enable", "--now", "millraced")
    assert host.show("ActiveState", "UnitFileState") == ["active", "enabled"]
    assert re.fullmatch(r"2 of 2 ports up.*", host.status)
    assert host.programs() == {"d0", "d1"}
    host.ping()
    assert host.tcp() > 1 << 20
    wait_until(lambda: re.search(r", [1-9]\d* frames/s in, [1-9]\d* out$", host.status), 5,
               "rates in the status")
    wait_until(lambda: host.status == "2 of 2 ports up, 0 frames/s in, 0 out", 5,
               "rates that are over")
    host.said("^forwarding$")
    entries = [json.loads(line) for line in host.journal("-o", "json").splitlines()]
    said = {entry["MESSAGE"]: entry["PRIORITY"] for entry in entries}
    assert said["forwarding"] == "6"
    assert {priority for text, priority in said.items() if text.startswith("error: ")} == {"3"}


def test_each_process_has_what_its_part_takes(host):
    def state(pid):
        return dict(line.split(":\t", 1) for line in
                    host.container.path(f"/proc/{pid}/status").read_text().splitlines())

    user = host.run("id", "-u", "millrace").stdout.strip()
    for pid, wanted in (host.pid, set()), (host.helper, CAPABILITIES):
        now = state(pid)
        assert set(now["Uid"].split()) == {user}
        assert now["NoNewPrivs"] == "1" and now["Seccomp"] == "2"
        names = host.run("capsh", f"--decode={now['CapPrm']}").stdout.strip().split("=")[1]
        assert set(filter(None, names.split(","))) == wanted
        assert now["CapEff"] == now["CapPrm"]
    done = host.run("systemd-analyze", "security", "--no-pager", "millraced.service")
    exposure = re.search(r"Overall exposure level for millraced.service: ([\d.]+)", done.stdout)
    assert float(exposure[1]) <= EXPOSURE_LIMIT, done.stdout


def test_a_reload_is_waited_for_and_its_result_told(host):
    pid = host.pid
    host.configure(batch=32)
    host.run("systemctl", "reload", "millraced")
    host.said("^configuration read again: 1 forward$")
    host.configure(batch="many")
    refused = host.run("systemctl", "reload", "millraced", check=False)
    assert refused.returncode == 1
    host.said(rf"^error: {CONFIG}:18: \[forward main\]: batch = many")
    assert host.show("ActiveState", "MainPID") == ["active", str(pid)]
    assert "the last reload was not taken over" in host.status
    host.ping()
    host.configure()
    host.run("systemctl", "reload", "millraced")
    assert "reload" not in host.status
    assert host.pid == pid


def test_a_port_that_goes_is_named_and_comes_back(host):
    host.run("ip", "link", "set", "d1", "down")
    wait_until(lambda: "1 of 2 ports up" in host.status and "lan: down" in host.status, 5,
               "a port that is down in the status")
    host.run("ip", "link", "set", "d1", "up")
    wait_until(lambda: host.status.startswith("2 of 2 ports up"), 5, "it is up again")
    host.ping()


def test_killed_it_comes_back(host):
    host.drop_in("RestartSec=200ms\n")
    pid = host.pid
    host.run("kill", "-KILL", pid)
    host.wait_for_another(pid)
    assert host.show("NRestarts") == ["1"]
    assert host.programs() == {"d0", "d1"}
    host.ping()


def test_without_its_helper_it_forwards_and_says_so(host):
    pid = host.pid
    host.run("kill", "-KILL", host.helper)
    wait_until(lambda: "the helper process is gone" in host.status, 5, "the status says it")
    host.ping()
    assert host.pid == pid
    host.run("systemctl", "restart", "millraced")
    assert "helper" not in host.status
    assert host.helper
    host.ping()


def test_a_worker_that_is_held_ends_and_restarts_it(host):
    host.drop_in("RestartSec=200ms\nWatchdogSec=2s\n")
    host.run("systemctl", "restart", "millraced")
    pid = host.pid
    tasks = host.container.path(f"/proc/{pid}/task")
    tid = next(task.name for task in tasks.iterdir()
               if (task / "comm").read_text().startswith("poller-"))
    # Idle, and fed all the same.
    time.sleep(3)
    assert host.pid == pid
    holder = subprocess.Popen(
        ["nsenter", "-t", str(host.container.leader), "-p", "-m", sys.executable, "-", tid],
        stdin=open(pathlib.Path(__file__).with_name("hold.py")), stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout.readline() == "held\n"
        host.wait_for_another(pid)
    finally:
        holder.kill()
        holder.wait()
    host.said(r"^error: forward main: worker 0 on CPU \d+ has not come round for \d+ ms")
    host.said(r"Watchdog timeout \(limit 2s\)!")
    host.ping()


def test_locked_memory_that_is_too_little_is_named(host):
    host.run("systemctl", "stop", "millraced")
    host.drop_in("LimitMEMLOCK=64K\nRestart=no\nAmbientCapabilities=\nCapabilityBoundingSet=\n"
                 "AmbientCapabilities=CAP_NET_ADMIN CAP_NET_RAW CAP_BPF\n"
                 "CapabilityBoundingSet=CAP_NET_ADMIN CAP_NET_RAW CAP_BPF\n")
    assert host.run("systemctl", "start", "millraced", check=False).returncode == 1
    host.said(r"^error: the frames need \d+ bytes .* allows 65536 .*LimitMEMLOCK= or CAP_IPC_LOCK")
    assert host.programs() == set()
    host.run("rm", "-r", str(pathlib.Path(DROP_IN).parent))
    host.run("systemctl", "daemon-reload")


def test_a_stop_leaves_nothing(host):
    host.run("systemctl", "start", "millraced")
    start = time.monotonic()
    host.run("systemctl", "stop", "millraced")
    assert time.monotonic() - start < 5
    assert host.show("ActiveState", "Result") == ["inactive", "success"]
    assert host.programs() == set()
    assert host.run("pgrep", "millrace", check=False).stdout == ""
    assert not host.container.path("/run/millrace/control.sock").exists()


def test_an_upgrade_keeps_the_file_and_restarts_what_runs(host, packages):
    other = CONFIGURATION.format(batch=64).replace("/millrace/", "/millrace/other/")
    host.container.path("/etc/millrace/other.conf").write_text(other)
    host.run("systemctl", "enable", "--now", "millraced@other")
    assert host.programs() == {"d0", "d1"}
    host.run("systemctl", "reload", "millraced@other")
    before = int(host.show("MainPID", unit="millraced@other")[0])
    packages.build_later()
    host.run("apt-get", "install", "-y", "--no-install-recommends", "/mnt/millrace_0.1.1_amd64.deb")
    assert host.run("millraced", "--version").stdout == "millraced 0.1.1 (0.1.1)\n"
    state, now = host.show("ActiveState", "MainPID", unit="millraced@other")
    assert state == "active" and int(now) != before
    host.run("systemctl", "disable", "--now", "millraced@other")
    assert host.container.path(CONFIG).read_text() == CONFIGURATION.format(batch=64)
    # millraced.service did not run, and does not now; it is enabled, and stays so.
    assert host.show("ActiveState", "UnitFileState") == ["inactive", "enabled"]
    host.run("systemctl", "start", "millraced")
    host.ping()


def test_a_purge_leaves_nothing(host):
    host.run("rm", "/etc/millrace/other.conf")
    host.run("apt-get", "purge", "-y", "millrace")
    assert host.programs() == set()
    assert host.run("pgrep", "millrace", check=False).stdout == ""
    assert host.run("getent", "passwd", "millrace", check=False).returncode == 2
    assert host.run("getent", "group", "millrace", check=False).returncode == 2
    units = host.run("systemctl", "list-unit-files", "millraced*", check=False)
    assert "0 unit files" in units.stdout
    left = host.run("find", "/etc", "/run", "/usr", "/lib/systemd", "/var/lib", "-xdev", "-name",
                    "*millrace*", "-not", "-path", "/usr/src/*").stdout.split()
    assert [path for path in left if not path.startswith(("/run/systemd/", "/run/log/"))] == []
