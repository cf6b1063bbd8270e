# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The disk of a guest that is booted as a host is: systemd, and the package installed in it.

As the container of tests/service, the guest has this machine's files, which it reads over 9p, under
an overlay. What differs from them, the package first of all, is on the disk: installed here into such an
overlay by dpkg, which then is put into an ext4 image. So what is enabled there, is so after a boot.
"""

import contextlib
import os
import pathlib
import shutil
import subprocess
import tempfile

from . import Unavailable, image, package

MEBIBYTES = 256  # the package, and what the guest writes
CONFIG = "etc/millrace/millrace.conf"
# Not for what is tried here, each of them costs an emulated CPU up to seconds of every boot.
MASKED = ("postgresql.service", "systemd-timesyncd.service", "serial-getty@ttyS0.service",
          "getty.target", "apt-daily.timer", "apt-daily-upgrade.timer", "man-db.timer",
          "dpkg-db-backup.timer", "fstrim.timer", "e2scrub_all.timer", "e2scrub_reap.service",
          "ssh.service", "systemd-firstboot.service", "systemd-hwdb-update.service",
          "ldconfig.service", "modprobe@.service", "systemd-pstore.service",
          "systemd-binfmt.service", "proc-sys-fs-binfmt_misc.automount", "systemd-update-utmp.service",
          "systemd-update-utmp-runlevel.service", "systemd-random-seed.service",
          "systemd-sysusers.service", "sys-kernel-debug.mount", "sys-kernel-tracing.mount",
          "dev-hugepages.mount", "dev-mqueue.mount", "systemd-logind.service",
          "systemd-journal-flush.service", "systemd-machine-id-commit.service",
          "systemd-user-sessions.service")
UNIT = f"""[Unit]
Description=The scenario of the lab
[Service]
ExecStart=/usr/bin/python3 {image.HOME}/tests/lab/guest/host.py
StandardOutput=tty
StandardError=tty
TTYPath=/dev/ttyS0
[Install]
WantedBy=multi-user.target
"""


class NotInstalled(Exception):
    """The package does not go onto a disk: a fault of its own, and no reason to skip."""


@contextlib.contextmanager
def overlay():
    """A folder within the block: this machine's files in `merged`, what is written there also in `upper`."""
    with tempfile.TemporaryDirectory(prefix="millrace-overlay-") as folder:
        folder = pathlib.Path(folder)
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", folder], check=True)
        try:
            for name in ("upper", "work", "merged"):
                (folder / name).mkdir()
            subprocess.run(["mount", "-t", "overlay", "overlay", "-o",
                            f"lowerdir=/,upperdir={folder}/upper,workdir={folder}/work",
                            folder / "merged"], check=True)
            yield folder
        finally:
            for place in (folder / "merged", folder):
                subprocess.run(["umount", "-l", place], stderr=subprocess.DEVNULL, check=False)


def inside(root, *argv):
    done = subprocess.run(["chroot", root, "env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C",
                           "DEBIAN_FRONTEND=noninteractive", *argv],
                          text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    if done.returncode:
        raise NotInstalled(f"{' '.join(argv)}: exit {done.returncode}: {done.stdout[-2000:]}")


def install(root, deb, scenario):
    """The package, the scenario's configuration, the service enabled; and the scenario itself."""
    shutil.copy(deb, root / "root/millrace.deb")
    inside(root, "dpkg", "-i", "/root/millrace.deb")
    (root / CONFIG).write_text(scenario.with_suffix(".conf").read_text())
    for path in image.guest_sources():
        place = root / image.HOME.lstrip("/") / path.relative_to(image.REPOSITORY)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, place)
    (root / "etc/systemd/system/millrace-lab.service").write_text(UNIT)
    # What this machine may be, the guest is not: in a container systemd leaves devices and bpffs alone.
    (root / ".dockerenv").unlink(missing_ok=True)
    # It would empty this machine's /tmp, file by file over 9p, into the overlay: minutes.
    (root / "etc/tmpfiles.d/tmp.conf").symlink_to("/dev/null")
    inside(root, "systemctl", "mask", *MASKED)
    inside(root, "systemctl", "set-default", "multi-user.target")
    inside(root, "systemctl", "enable", "millraced", "millrace-lab")


def build(cache, scenario, place):
    """Write the image for the scenario whose file is `scenario` to `place`."""
    if os.geteuid() != 0:
        raise Unavailable("a disk for a guest is made by root: chroot, and an overlay")
    if not shutil.which("mke2fs"):
        raise Unavailable("no mke2fs on this machine (scripts/install-deps)")
    folder = cache.get("package", {"digest": package.digest()}, package.make)
    try:
        _make(folder / package.FILE, scenario, place)
    except subprocess.CalledProcessError as why:
        raise Unavailable(f"no disk for a guest: {why}") from why


def _make(deb, scenario, place):
    with overlay() as made:
        install(made / "merged", deb, scenario)
        with tempfile.TemporaryDirectory(prefix="disk-", dir=place.parent) as tree:
            subprocess.run(["cp", "-a", made / "upper", tree], check=True)
            (pathlib.Path(tree) / "work").mkdir()
            subprocess.run(["mke2fs", "-q", "-t", "ext4", "-d", tree, place, f"{MEBIBYTES}M"],
                           check=True, stdout=subprocess.DEVNULL)
