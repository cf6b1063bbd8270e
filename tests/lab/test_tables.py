# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a line of kernels.table and a scenario file may say, and what is said of a wrong one."""

import argparse
import pathlib

import pytest
from lablib import machine, tables

SCENARIO = '"""Does something.\n\nMore of it."""\nNICS = ("igb",)\nSECONDS = 60\n'


def test_a_line_is_a_kernel_and_the_order_is_kept():
    text = "# a comment\n\nb  suite-b  package-b  -\na  suite-a  package-a  igb,virtio  # newest\n"
    assert list(tables.parse_kernels(text).values()) == [
        tables.Kernel("b", "suite-b", "package-b", ()),
        tables.Kernel("a", "suite-a", "package-a", ("igb", "virtio"))]


@pytest.mark.parametrize("text, said", [
    ("a suite package\n", "x:1: want NAME SUITE PACKAGE ZERO-COPY, got 3 words"),
    ("\na suite package igb ixgbe\n", "x:2: want NAME"),
    ("a suite package igb,ixgbe\n", "x:1: no NIC 'ixgbe'"),
    ("a suite package -\na other package -\n", "x:2: kernel 'a' is there already"),
])
def test_a_wrong_line_is_named(text, said):
    with pytest.raises(ValueError) as error:
        tables.parse_kernels(text, "x")
    assert str(error.value).startswith(said)


def test_a_scenario_says_what_it_is_without_being_run():
    text = SCENARIO + "raise SystemExit('this ran')\n"
    assert tables.parse_scenario(text, pathlib.Path("one.py")) == tables.Scenario(
        "one", "Does something.", ("igb",), 60, "usual", False, False, pathlib.Path("one.py"))
    assert tables.parse_scenario(text + 'MACHINE = "counted"\n',
                                 pathlib.Path("one.py")).machine == "counted"
    assert tables.parse_scenario(text + "ZERO_COPY = True\n", pathlib.Path("one.py")).zero_copy
    assert tables.parse_scenario(text + "LONG = True\n", pathlib.Path("one.py")).long


@pytest.mark.parametrize("text, said", [
    (SCENARIO.replace("SECONDS", "OTHER"), "missing: SECONDS"),
    (SCENARIO[SCENARIO.index("NICS"):], "missing: a docstring"),
    (SCENARIO.replace('"igb"', '"ixgbe"'), "no NIC 'ixgbe'"),
    (SCENARIO + 'MACHINE = "quick"\n',
     "no machine 'quick' (of usual, three, counted, numa, installed)"),
])
def test_a_scenario_that_says_too_little_is_named(text, said):
    with pytest.raises(ValueError) as error:
        tables.parse_scenario(text, pathlib.Path("one.py"))
    assert str(error.value).startswith("one.py: ") and said in str(error.value)


def test_counting_has_boots_of_its_own_and_few_of_them():
    row, igb, virtio = tables.Kernel("a", "s", "p", ("igb",)), tables.NICS["igb"], tables.NICS["virtio"]
    usual = tables.Scenario("one", "", ("igb",), 1, "usual", False, False, None)
    counted = usual._replace(name="two", machine="counted")
    other = usual._replace(name="three")
    assert tables.by_machine([counted, usual, other]) == [[usual, other], [counted]]
    assert tables.by_machine([counted]) == [[counted]]
    assert [tables.in_all(one, row, igb) for one in (usual, counted)] == [True, True]
    assert [tables.in_all(one, row, virtio) for one in (usual, counted)] == [True, False]


def test_a_third_wire_is_only_where_a_scenario_wants_it():
    """The others keep their cards, and these their addresses."""
    row, kernel = tables.kernels()["newest"], argparse.Namespace(release="7", modules=[])
    usual = tables.Scenario("one", "", ("mixed",), 1, "usual", False, False, None)
    two, three = (machine.plan(kernel, row, tables.NICS["mixed"], [usual._replace(machine=name)])
                  for name in ("usual", "three"))
    assert machine.plan(kernel, row, tables.NICS["mixed"], [])["ports"] == two["ports"]
    assert [*two["ports"]] == ["d0", "d1", "g0", "s0"]
    assert {**two["ports"], "d2": three["ports"]["d2"], "s1": three["ports"]["s1"]} == three["ports"]
    assert len(set(three["ports"].values())) == 6
    assert (two["zero_copy"], three["zero_copy"]) == (["d0"], ["d0", "d2"])
    for name, wires in (("usual", 2), ("three", 3)):
        argv = machine.cards(tables.NICS["mixed"], tables.MACHINES[name])
        models = [word.partition(",")[0] for word in argv if ",netdev=d" in word]
        assert models == ["igb", "e1000e", "igb"][:wires]


def test_what_is_about_zero_copy_is_skipped_where_there_is_none():
    """The refusal itself is a scenario, which runs there."""
    with_it, without = (tables.Kernel("a", "s", "p", kinds) for kinds in (("igb",), ()))
    scenario = tables.Scenario("one", "", ("igb", "virtio"), 1, "usual", True, False, None)
    assert tables.unfit(scenario, with_it, tables.NICS["igb"]) is None
    assert "virtio binds no zero-copy" in tables.unfit(scenario, with_it, tables.NICS["virtio"])
    assert "zc_refused" in tables.unfit(scenario, without, tables.NICS["igb"])
    assert tables.unfit(scenario._replace(zero_copy=False), without, tables.NICS["igb"]) is None
    assert not tables.scenarios()["zc_refused"].zero_copy


def test_the_tables_that_are_here():
    assert list(tables.kernels())[-1] == "newest", "scripts/lab shell boots the last line"
    assert tables.kernels()["newest"].zero_copy
    assert all(scenario.seconds > 0 and scenario.nics for scenario in tables.scenarios().values())
    names = tables.module_names()
    assert len(names) == len(set(names))
    assert {driver for nic in tables.NICS.values() for driver in nic.drivers} <= set(names)
