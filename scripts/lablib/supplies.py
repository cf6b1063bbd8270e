# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The kernels and QEMU: fetched by apt, unpacked without being installed, kept in the cache."""

import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from . import Unavailable, apt, modules, sources, tables

QEMU_OLDEST = 8  # the first that has igb
QEMU = "qemu-system-x86_64"
QEMU_PACKAGE = "qemu-system-x86"
MULTIARCH = "x86_64-linux-gnu"
# What an entry of the cache looks like: raise it with _make_kernel().
FORM = 1
# A package that is a part of a kernel, not one that is merely needed to install it.
PART = re.compile(r"linux-(image|base|binary|modules)-\d\S*-amd64$")

# release: what `uname -r` will say. modules: {name that a guest may ask for: names in load order}.
# absent: wanted and not in this kernel.
Kernel = collections.namedtuple("Kernel", "image release folder modules absent")
# argv: how to start it, with its firmware's folders. environment: added to the own.
Qemu = collections.namedtuple("Qemu", "argv environment version")


def _unpack(package, folder):
    subprocess.run(["dpkg-deb", "-x", str(package), str(folder)], check=True)


# Kernels

def _parts(host, package):
    """The packages with the image and its modules, found by what a meta-package depends on.

    One package until 7.2; linux-base, linux-binary and linux-modules since.
    """
    if not host.candidate(package):
        raise Unavailable(f"the suite has no package {package}")
    parts, left = [], [package]
    while left:
        name = left.pop()
        parts.append(name)
        left += [need for need in host.depends(name)
                 if PART.match(need) and need not in parts and need not in left]
    return parts


def _make_kernel(row, folder):
    with apt.of_this_machine(row.suite) as host, tempfile.TemporaryDirectory(
            prefix="unpack-", dir=folder.parent) as unpacked:
        unpacked = pathlib.Path(unpacked)
        for part in _parts(host, row.package):
            _unpack(host.download(part), unpacked)
        images = [path for where in ("boot", "usr/lib/modules") for path in
                  sorted((unpacked / where).rglob("vmlinuz*"))]
        if len(images) != 1:
            raise Unavailable(f"{row.package} of {row.suite} has {len(images)} kernel images")
        trees = [path.parent for path in unpacked.rglob("modules.builtin")]
        if len(trees) != 1:
            raise Unavailable(f"{row.package} of {row.suite} has modules of {len(trees)} kernels")
        orders, images_of, absent = modules.choose(
            tables.module_names(), modules.index(trees[0]),
            modules.builtin((trees[0] / "modules.builtin").read_text()))
        shutil.copy(images[0], folder / "vmlinuz")
        (folder / "modules").mkdir()
        for name, image in images_of.items():
            (folder / "modules" / f"{name}.ko").write_bytes(image)
        (folder / "kernel.json").write_text(json.dumps({
            "release": trees[0].name, "modules": orders, "absent": absent}))


def kernel(cache, row):
    """The Kernel of a line of the table; from the cache, or fetched."""
    request = {"form": FORM, "suite": row.suite, "package": row.package, "modules": tables.module_names()}
    folder = cache.get(f"kernel-{row.name}", request, lambda fresh: _make_kernel(row, fresh))
    said = json.loads((folder / "kernel.json").read_text())
    return Kernel(folder / "vmlinuz", said["release"], folder, said["modules"], said["absent"])


def kernel_release(cache, row):
    """What `uname -r` would say, None while it has not been fetched."""
    try:
        said = json.loads((cache.folder / f"kernel-{row.name}" / "kernel.json").read_text())
        return said["release"]
    except (OSError, ValueError, KeyError):
        return None


# QEMU

def _version(argv, environment):
    """(8, 2, 1), or None where it does not run."""
    try:
        done = subprocess.run([*argv, "--version"], capture_output=True, text=True, check=False,
                              env={**os.environ, **environment})
    except OSError:
        return None
    match = re.search(r"version (\d+)\.(\d+)\.(\d+)", done.stdout)
    return tuple(map(int, match.groups())) if match and done.returncode == 0 else None


def _unpacked_qemu(folder):
    root = folder / "root"
    environment = {"LD_LIBRARY_PATH": f"{root}/usr/lib/{MULTIARCH}:{root}/lib/{MULTIARCH}",
                   "QEMU_MODULE_DIR": f"{root}/usr/lib/{MULTIARCH}/qemu"}
    argv = [str(root / "usr/bin" / QEMU)]
    for share in ("usr/share/qemu", "usr/share/seabios", "usr/lib/ipxe/qemu"):
        argv += ["-L", str(root / share)]
    return Qemu(argv, environment, _version(argv, environment))


def _major(version):
    """8 of a package version like 1:8.2.1+ds-1."""
    return int(re.match(r"(?:\d+:)?(\d+)", version)[1]) if version else 0


def _make_qemu(folder):
    release = sources.codename(pathlib.Path("/etc/os-release").read_text())
    backports = f"{release}-backports"
    with apt.of_this_machine(release, status=apt.HOST_STATUS) as host:
        if _major(host.candidate(QEMU_PACKAGE)) >= QEMU_OLDEST:
            packages = host.download_missing(QEMU_PACKAGE)
            return _unpack_all(packages, folder)
    with apt.of_this_machine(release, backports, status=apt.HOST_STATUS) as host:
        version = host.candidate(QEMU_PACKAGE, backports)
        if _major(version) < QEMU_OLDEST:
            raise Unavailable(f"igb needs QEMU {QEMU_OLDEST}; {backports} has {version or 'none'}")
        return _unpack_all(host.download_missing(QEMU_PACKAGE, backports), folder)


def _unpack_all(packages, folder):
    for package in packages:
        _unpack(package, folder / "root")
    # Never read by what the lab runs, and a third of the size.
    for unused in ("usr/share/doc", "usr/share/man", "usr/share/locale"):
        shutil.rmtree(folder / "root" / unused, ignore_errors=True)


def qemu(cache):
    """The machine's own QEMU if it is new enough, else one from the cache, or fetched."""
    own = shutil.which(QEMU)
    version = own and _version([own], {})
    if version and version[0] >= QEMU_OLDEST:
        return Qemu([own], {}, version)
    folder = cache.get("qemu", {"package": QEMU_PACKAGE, "oldest": QEMU_OLDEST}, _make_qemu,
                       lambda there: None if _unpacked_qemu(there).version else
                       "it does not start")
    found = _unpacked_qemu(folder)
    if not found.version:
        raise Unavailable("QEMU was fetched and does not start: "
                          f"try {' '.join(found.argv[:1])} --version")
    return found
