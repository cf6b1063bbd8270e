# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Which kernel modules, in which order: Debian's kernel packages have no modules.dep, depmod makes
it at installation. What a module needs stands in the module itself.
"""

import lzma
import pathlib
import struct
import subprocess

SUFFIXES = (".ko", ".ko.xz", ".ko.zst")
SHT_NOBITS = 8


def plain(name):
    """One spelling: file names have - where the kernel says _."""
    return name.replace("-", "_")


def read(path):
    """The bytes of a module, unpacked."""
    if path.suffix == ".xz":
        return lzma.decompress(path.read_bytes())
    if path.suffix == ".zst":
        return subprocess.run(["zstd", "-dcq", str(path)], check=True, capture_output=True).stdout
    return path.read_bytes()


def sections(image):
    """{name: bytes} of a 64-bit little-endian ELF file."""
    if image[:6] != b"\x7fELF\x02\x01":
        raise ValueError("not a 64-bit little-endian ELF file")
    table, = struct.unpack_from("<Q", image, 40)
    size, count, names_at = struct.unpack_from("<HHH", image, 58)
    headers = [struct.unpack_from("<IIQQQQ", image, table + n * size) for n in range(count)]
    names = image[headers[names_at][4]:headers[names_at][4] + headers[names_at][5]]
    return {names[name:names.index(b"\0", name)].decode(): image[offset:offset + length]
            for name, kind, _, _, offset, length in headers if kind != SHT_NOBITS}


def needs(image):
    """Names of the modules that must be there before this one, as its .modinfo says."""
    for entry in sections(image).get(".modinfo", b"").split(b"\0"):
        if entry.startswith(b"depends="):
            return [plain(name) for name in entry[8:].decode().split(",") if name]
    return []


def index(folder):
    """{name: path} of all modules under a folder."""
    return {plain(path.name.split(".ko")[0]): path for path in folder.rglob("*.ko*")
            if path.name.endswith(SUFFIXES)}


def builtin(text):
    """Names in a modules.builtin file."""
    return {plain(pathlib.Path(line).name.split(".ko")[0]) for line in text.splitlines() if line}


def order(wanted, needs_of):
    """All of `wanted` and what they need, each after what it needs; once each.

    needs_of(name) gives a module's own needs, None for one that is not there; such a one is left
    out with everything that needs it. Returns (names in order, wanted names left out).
    """
    ordered, absent, under_way = [], set(), []

    def visit(name):
        if name in absent:
            return False
        if name in ordered:
            return True
        if name in under_way:
            raise ValueError(f"modules need each other: {' -> '.join([*under_way, name])}")
        below = needs_of(name)
        if below is None:
            absent.add(name)
            return False
        under_way.append(name)
        good = all([visit(need) for need in below])
        under_way.pop()
        if good:
            ordered.append(name)
        else:
            absent.add(name)
        return good

    left_out = [name for name in map(plain, wanted) if not visit(name)]
    return ordered, left_out


def choose(wanted, paths, built_in):
    """What a guest needs to load each wanted module: ({wanted: names in load order},
    {name: unpacked bytes}, wanted names that this kernel has not).

    What is built in needs no loading and stands in no list.
    """
    images = {}

    def needs_of(name):
        if name in built_in:
            return []
        if name not in paths:
            return None
        if name not in images:
            images[name] = read(paths[name])
        return needs(images[name])

    orders, absent = {}, []
    for name in map(plain, wanted):
        ordered, left_out = order([name], needs_of)
        if left_out:
            absent.append(name)
        else:
            orders[name] = [one for one in ordered if one in images]
    used = {one for ordered in orders.values() for one in ordered}
    return orders, {name: images[name] for name in sorted(used)}, absent
