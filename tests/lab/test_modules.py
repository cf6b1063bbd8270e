# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Load order of kernel modules, from what stands in the modules."""

import lzma
import struct

import pytest
from lablib import modules


def module(depends):
    """A minimal ELF file with a .modinfo section."""
    info = b"license=GPL\0depends=" + depends.encode() + b"\0name=x\0"
    names = b"\0.modinfo\0.shstrtab\0"
    header = bytearray(64)
    header[:6] = b"\x7fELF\x02\x01"
    table = 64 + len(info) + len(names)
    struct.pack_into("<Q", header, 40, table)
    struct.pack_into("<HHH", header, 58, 64, 3, 2)

    def section(name, kind, offset, length):
        return struct.pack("<IIQQQQ", name, kind, 0, 0, offset, length).ljust(64, b"\0")

    return (bytes(header) + info + names + section(0, 0, 0, 0) + section(1, 1, 64, len(info)) +
            section(10, 3, 64 + len(info), len(names)))


def test_needs_are_read_from_the_module():
    assert modules.needs(module("dca,i2c-algo-bit")) == ["dca", "i2c_algo_bit"]
    assert modules.needs(module("")) == []


def test_what_is_no_module_is_refused():
    with pytest.raises(ValueError):
        modules.needs(b"#!/bin/sh\n".ljust(100))


def test_each_comes_after_what_it_needs_and_once():
    needs = {"igb": ["dca", "i2c"], "i2c": ["core"], "dca": ["core"], "core": []}
    ordered, left_out = modules.order(["igb", "dca"], needs.get)
    assert sorted(ordered) == sorted(needs) and not left_out
    assert all(ordered.index(below) < ordered.index(name)
               for name, all_below in needs.items() for below in all_below)


def test_what_is_not_there_leaves_out_what_needs_it_and_nothing_else():
    needs = {"a": ["gone"], "b": ["a"], "c": []}
    assert modules.order(["b", "c", "gone"], needs.get) == (["c"], ["b", "gone"])


def test_a_circle_is_named():
    with pytest.raises(ValueError, match="a -> b -> a"):
        modules.order(["a"], {"a": ["b"], "b": ["a"]}.get)


def test_choice_from_packed_and_plain_files_and_what_is_built_in(tmp_path):
    folder = tmp_path / "kernel/drivers"
    folder.mkdir(parents=True)
    (folder / "net-card.ko").write_bytes(module("virtio,helper"))
    (folder / "helper.ko.xz").write_bytes(lzma.compress(module("")))
    (folder / "unrelated.ko").write_bytes(module(""))
    built_in = modules.builtin("kernel/drivers/virtio.ko\nkernel/net/unix-socket.ko\n")
    orders, images, absent = modules.choose(["net_card", "unix_socket", "macsec"],
                                            modules.index(tmp_path), built_in)
    assert orders == {"net_card": ["helper", "net_card"], "unix_socket": []}
    assert images == {"helper": module(""), "net_card": module("virtio,helper")}
    assert absent == ["macsec"]
