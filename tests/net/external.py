"""The example program of configs/external-xdp.bpf.c as an operator would load it, in a bpffs of its own."""

import ctypes
import os
import pathlib

from lab import run

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
    libbpf = ctypes.CDLL("libbpf.so.1", use_errno=True)
    map_fd = libbpf.bpf_obj_get(str(xskmap).encode())
    if map_fd < 0:
        raise OSError(ctypes.get_errno(), str(xskmap))
    number = ctypes.c_uint32(key)
    try:
        if libbpf.bpf_map_update_elem(map_fd, ctypes.byref(number),
                                      ctypes.byref(ctypes.c_uint32(fd)),
                                      ctypes.c_uint64(BPF_NOEXIST)) < 0:
            return False
        libbpf.bpf_map_delete_elem(map_fd, ctypes.byref(number))
        return True
    finally:
        os.close(map_fd)


def put(xskmap, key, fd):
    """Somebody else's socket into a slot."""
    libbpf = ctypes.CDLL("libbpf.so.1", use_errno=True)
    map_fd = libbpf.bpf_obj_get(str(xskmap).encode())
    try:
        if libbpf.bpf_map_update_elem(map_fd, ctypes.byref(ctypes.c_uint32(key)),
                                      ctypes.byref(ctypes.c_uint32(fd)), ctypes.c_uint64(0)) < 0:
            raise OSError(ctypes.get_errno(), f"{xskmap}, key {key}")
    finally:
        os.close(map_fd)
