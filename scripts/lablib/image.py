# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The guest's file system: a cpio archive that the kernel unpacks into memory.

In it: this machine's Python with the modules that the guest's programs import, ip, ethtool and the
rest of their libraries, a kernel's modules, and the tree of this repository as far as the guest
needs it, at /millrace: the build, the helpers of tests/net, tests/lab.
"""

import importlib.util
import io
import json
import os
import pathlib
import py_compile
import re
import shutil
import stat
import subprocess
import tempfile

from . import Unavailable
from .tables import LAB, REPOSITORY

HOME = "/millrace"
INIT = f"{HOME}/tests/lab/guest/init.py"
PROGRAMS = ("ip", "ethtool", "bpftool")
# xdpsock, to be compared with, where XDPSOCK names it.
XDPSOCK = os.environ.get("XDPSOCK")
# libxdp's own programs: the dispatcher, which millraced loads by that library, and xdpsock's.
LIBXDP = pathlib.Path("/usr/lib/x86_64-linux-gnu/bpf")
LIBXDP_PROGRAMS = ("xdp-dispatcher.o", "xsk_def_xdp_prog.o", "xsk_def_xdp_prog_5.3.o")
# For scripts/lab shell, where the machine has them.
SHELL_PROGRAMS = ("bash", "cat", "cp", "cut", "dmesg", "env", "free", "grep", "head", "kill", "less",
                  "ls", "mkdir", "mount", "mv", "ping", "ps", "rm", "sed", "sleep", "sort", "strace",
                  "tail", "tcpdump", "uname", "wc", "xxd")
BUILT = ("millraced", "millracectl", "tests/tools/flood", "tests/tools/beside")
PYTHON = "/usr/bin/python3"
# What the library imports only when it is used.
LATE = ["encodings.ascii", "encodings.idna", "encodings.latin_1", "encodings.utf_8", "traceback"]
IMPORT_ALL = """
import importlib, json, sys
folders, names, late = json.loads(sys.argv[1])
sys.path[:0] = folders
for name in names + late:
    importlib.import_module(name)
files = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
print(json.dumps(sorted(files - {None})))
"""
ROOT = 0o040755


class Archive:
    """A cpio archive (newc), written in order; all files belong to root."""

    def __init__(self):
        self._out = io.BytesIO()
        self._names = set()
        self._serial = 0

    def _entry(self, name, mode, data=b"", mtime=0, device=(0, 0)):
        name = name.strip("/")
        self._serial += 1
        encoded = name.encode() + b"\0"
        fields = (self._serial, mode, 0, 0, 1, int(mtime), len(data), 0, 0, *device, len(encoded), 0)
        self._out.write(b"070701" + b"".join(b"%08X" % field for field in fields) + encoded)
        self._pad()
        self._out.write(data)
        self._pad()

    def _pad(self):
        self._out.write(b"\0" * (-self._out.tell() % 4))

    def __contains__(self, name):
        return name.strip("/") in self._names

    def _new(self, name):
        """Whether name is not there yet; the folders above it are made."""
        name = name.strip("/")
        if name in self._names:
            return False
        above = name.rpartition("/")[0]
        if above:
            self.folder(above)
        self._names.add(name)
        return True

    def folder(self, name):
        if self._new(name):
            self._entry(name, ROOT)

    def file(self, name, data, mode=0o644, mtime=0):
        if self._new(name):
            self._entry(name, stat.S_IFREG | mode, data, mtime)

    def link(self, name, target):
        if self._new(name):
            self._entry(name, stat.S_IFLNK | 0o777, target.encode())

    def character_device(self, name, major, minor):
        if self._new(name):
            self._entry(name, stat.S_IFCHR | 0o600, device=(major, minor))

    def bytes(self):
        self._entry("TRAILER!!!", 0)
        return self._out.getvalue()


class Tree:
    """Files of this machine put into an archive at their own places."""

    def __init__(self, archive):
        self.archive = archive
        self._seen = set()
        for name in ("bin", "sbin", "lib", "lib64"):
            if os.path.islink(f"/{name}"):
                target = os.readlink(f"/{name}").lstrip("/")
                archive.folder(target)
                archive.link(name, target)

    def copy(self, path, at=None):
        """One file, at its own path or another one; links on the way to it are followed."""
        path = pathlib.Path(path)
        place = at or str(path.parent.resolve() / path.name)
        status = path.stat()
        self.archive.file(place, path.read_bytes(), status.st_mode & 0o777, status.st_mtime)

    def program(self, path, at=None):
        """A program or library with everything that it is linked with."""
        self.copy(path, at)
        for library in libraries(path):
            if library not in self._seen:
                self._seen.add(library)
                self.copy(library)


def libraries(path):
    """Paths of the shared libraries of a program; none for a static one or a script."""
    done = subprocess.run(["ldd", str(path)], capture_output=True, text=True, check=False)
    missing = re.findall(r"^\s*(\S+) => not found", done.stdout, re.MULTILINE)
    if missing:
        raise Unavailable(f"{path} needs {missing[0]}, which this machine has not")
    return re.findall(r"^\s*(?:\S+ => )?(/\S+) \(0x", done.stdout, re.MULTILINE)


def guest_sources():
    """Our Python files that go into the guest."""
    helpers = [path for path in sorted((REPOSITORY / "tests/net").glob("*.py"))
               if not path.name.startswith(("test_", "conftest"))]
    return [*helpers, *sorted((LAB / "guest").glob("*.py")),
            *sorted((LAB / "scenarios").glob("*.py"))]


def library_modules(sources):
    """Files of Python's own library that are loaded once these sources are imported.

    They are really imported, by another Python: what stands inside functions of a library for other
    systems and rare cases, and what that imports in turn, would be ten times as much.
    """
    names = [path.stem for path in sources]
    ours = sorted({str(path.parent) for path in sources})
    done = subprocess.run([PYTHON, "-ISB", "-c", IMPORT_ALL, json.dumps([ours, names, LATE])],
                          check=True, capture_output=True, text=True)
    return [pathlib.Path(path) for path in json.loads(done.stdout)
            if not path.startswith(str(REPOSITORY))]


def _add_compiled(archive, source, place, folder):
    """Beside a source at `place` its byte code, which an emulated CPU would make slowly."""
    compiled = py_compile.compile(
        str(source), cfile=f"{folder}/code", dfile=place, doraise=True,
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    archive.file(importlib.util.cache_from_source(place), pathlib.Path(compiled).read_bytes())


def _add_python(tree):
    tree.program(PYTHON)
    sources = guest_sources()
    with tempfile.TemporaryDirectory(prefix="millrace-lab-") as folder:
        for path in library_modules(sources):
            if path.suffix != ".py":
                tree.program(path)
                continue
            tree.copy(path)
            ready = pathlib.Path(importlib.util.cache_from_source(str(path)))
            if ready.exists():
                tree.copy(ready)
        for path in sources:
            place = f"{HOME}/{path.relative_to(REPOSITORY)}"
            tree.copy(path, place)
            _add_compiled(tree.archive, path, place, folder)


def _search(name):
    return shutil.which(name, path="/usr/sbin:/usr/bin:/sbin:/bin")


def _add_xdpsock(tree):
    if not os.path.exists(XDPSOCK):
        raise Unavailable(f"XDPSOCK names {XDPSOCK}, which is not there")
    tree.program(XDPSOCK, f"{HOME}/build/xdpsock")


def _add_libxdp(tree):
    folder = pathlib.Path(os.environ.get("LIBXDP_OBJECT_PATH", LIBXDP))
    for name in LIBXDP_PROGRAMS:
        if (folder / name).exists():
            tree.copy(folder / name, f"{LIBXDP}/{name}")


def build(kernel, build_folder, plan, shell=False):
    """The archive for one run. `plan` is what init.py reads from /millrace/plan.json."""
    archive = Archive()
    for name in ("proc", "sys", "dev", "run", "tmp", "root", "var", "etc"):
        archive.folder(name)
    archive.character_device("dev/console", 5, 1)
    tree = Tree(archive)
    _add_python(tree)
    for name in PROGRAMS + (SHELL_PROGRAMS if shell else ()):
        path = _search(name)
        if path:
            tree.program(path)
        elif name in PROGRAMS:
            raise Unavailable(f"no {name} on this machine (scripts/install-deps)")
    if shell:
        archive.link("bin/sh", "bash")
    for name in BUILT:
        path = pathlib.Path(build_folder) / name
        if not path.exists():
            raise Unavailable(f"{path} is not built: scripts/build")
        tree.program(path, f"{HOME}/build/{name}")
    _add_libxdp(tree)
    if XDPSOCK:
        _add_xdpsock(tree)
    for path in sorted((kernel.folder / "modules").iterdir()):
        tree.copy(path, f"/lib/modules/{path.name}")
    archive.file(f"{HOME}/plan.json", json.dumps(plan).encode())
    # The kernel starts what it is told by rdinit=.
    archive.file("etc/passwd", b"root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n")
    archive.file("etc/group", b"root:x:0:\nnogroup:x:65534:\n")
    return archive.bytes()
