"""The example program of configs/external-xdp.bpf.c as an operator would load it, in a bpffs of its own."""

import os
import pathlib

from lab import run
from xsk import Xskmap

SOURCE = pathlib.Path(__file__).resolve().parents[2] / "configs/external-xdp.bpf.c"
MODE_WORD = {"native": "xdpdrv", "skb": "xdpgeneric"}
BPF_NOEXIST = 1


def compiled(folder, slots=64):
    """The example's object file, its map with so many slots."""
    text = SOURCE.read_text()
    assert "max_entries, 64" in text
    text = text.replace("max_entries, 64", f"max_entries, {slots}")
    source = folder / "external.c"
    source.write_text(text)
    multiarch = run("gcc", "-print-multiarch").strip()
    run("clang", "-O2", "-g", "-Wall", "-Werror", "-target", "bpf", "-idirafter",
        f"/usr/include/{multiarch}", "-c", source, "-o", folder / "external.o")
    return folder / "external.o"


class Bpffs:
    """A bpf file system, seen by whatever is started in a namespace afterwards."""

    def __init__(self, folder):
        self.path = folder / "bpf"
        self.path.mkdir()
        run("mount", "-t", "bpf", "bpf", self.path)

    def close(self):
        run("umount", self.path)

    def entries(self):
        """Path, inode and modification time of everything in it."""
        found = {}
        for here, _, names in os.walk(self.path):
            for name in names:
                path = os.path.join(here, name)
                found[path] = os.stat(path).st_ino, os.stat(path).st_mtime_ns
        return found


class External:
    """The program in a bpffs, loaded and its map pinned; attached when told."""

    def __init__(self, bpffs, name, compiled_object):
        self.program, self.maps = bpffs.path / name, bpffs.path / f"{name}-maps"
        run("bpftool", "prog", "load", compiled_object, self.program, "pinmaps", self.maps)
        self.xskmap = self.maps / "xsks"

    def attach(self, namespace, ifname, mode):
        namespace.run("bpftool", "net", "attach", MODE_WORD[mode], "pinned", self.program, "dev",
                      ifname)
        return namespace.attached()[ifname]

    def detach(self, namespace, ifname, mode):
        namespace.run("bpftool", "net", "detach", MODE_WORD[mode], "dev", ifname)


def slot_is_free(xskmap, key, fd):
    """Whether nobody's socket but that of `fd` is in a slot; which then is in it for a moment.

    The kernel does not tell what is in an XSKMAP, but it refuses a second one.
    """
    with Xskmap(xskmap) as slots:
        if not slots.put(key, fd, BPF_NOEXIST):
            return False
        slots.empty(key)
        return True
