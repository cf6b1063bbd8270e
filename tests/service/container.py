# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A real systemd in a container: this host's files under an overlay, which is gone at the end.

Boots in about a second. What runs in it sees the host's file system as it is, changes only the
overlay, and has a network of its own.
"""

import os
import pathlib
import subprocess
import tempfile
import time

BOOT_SECONDS = 60


def wait_until(condition, timeout, what, step=0.05):
    """Poll `condition` until it gives something true; return that, or fail naming `what`."""
    end = time.monotonic() + timeout
    while True:
        found = condition()
        if found:
            return found
        assert time.monotonic() < end, f"not within {timeout:g} s: {what}"
        time.sleep(step)


class Container:
    """`shared` is a folder of the host that is /mnt in it."""

    def __init__(self, shared):
        self.name = f"millrace{os.getpid()}"
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="millrace-container-"))
        self.process, self.leader = None, None
        try:
            self._boot(shared)
        except BaseException:
            self.close()
            raise

    def _boot(self, shared):
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", self.folder], check=True)
        for name in ("upper", "work", "merged"):
            (self.folder / name).mkdir()
        merged = self.folder / "merged"
        subprocess.run(["mount", "-t", "overlay", "overlay", "-o",
                        f"lowerdir=/,upperdir={self.folder}/upper,workdir={self.folder}/work",
                        merged], check=True)
        # What keeps services of a build machine from running is in their way here.
        (merged / "usr/sbin/policy-rc.d").unlink(missing_ok=True)
        # Nobody reads manuals here, and their index takes longer than a package.
        (merged / "var/lib/man-db/auto-update").unlink(missing_ok=True)
        self.console = open(self.folder / "console", "wb")
        self.process = subprocess.Popen(
            ["systemd-nspawn", "-q", "-D", merged, "--boot", "--register=no", "--keep-unit",
             "--private-network", f"--machine={self.name}", "--capability=all",
             "--system-call-filter=bpf perf_event_open", "--console=pipe", f"--bind={shared}:/mnt",
             "systemd.unit=basic.target"],
            env={**os.environ, "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY": "1"},
            stdin=subprocess.DEVNULL, stdout=self.console, stderr=subprocess.STDOUT)
        self.leader = wait_until(self._find_leader, BOOT_SECONDS, f"a first process; {self.said}")
        wait_until(self._is_up, BOOT_SECONDS, f"a system that runs; {self.said}")

    def _find_leader(self):
        assert self.process.poll() is None, f"systemd-nspawn ended; {self.said}"
        for task in pathlib.Path(f"/proc/{self.process.pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                try:
                    command = pathlib.Path(f"/proc/{child}/comm").read_text().strip()
                except OSError:
                    continue
                if command == "systemd":
                    return int(child)
        return None

    def _is_up(self):
        done = self.run("systemctl", "is-system-running", check=False)
        return done.stdout.strip() in ("running", "degraded")

    @property
    def said(self):
        return f"see {self.folder}/console"

    def run(self, *argv, check=True, timeout=120, stdin=None):
        """A command in it, to its end."""
        done = subprocess.run(
            ["nsenter", "-t", str(self.leader), "-m", "-u", "-i", "-n", "-p", "-C", "--",
             "env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", "TERM=dumb",
             "DEBIAN_FRONTEND=noninteractive", *map(str, argv)],
            text=True, errors="replace", capture_output=True, timeout=timeout, input=stdin)
        assert not check or done.returncode == 0, (
            f"{' '.join(map(str, argv))}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    def path(self, path):
        """A file of it, as the host sees it."""
        return pathlib.Path(f"/proc/{self.leader}/root{path}")

    def close(self):
        if self.process and self.process.poll() is None:
            if self.leader:
                self.run("systemctl", "poweroff", "--force", check=False, timeout=20)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(20)
        if self.process:
            self.console.close()
        for place in (self.folder / "merged", self.folder):
            subprocess.run(["umount", "-l", place], stderr=subprocess.DEVNULL, check=False)
        self.folder.rmdir()
