# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Faults made on purpose: what a patch says of itself, that it applies, and when it is caught."""

import pathlib
import subprocess

import pytest
from lablib import sabotage, tables
from lablib.machine import Result

PATCH = ("Breaks it.\n\nScenario: one\nScenario: two\nCaught: frames (lost|back)\n\n"
         "diff --git a/x b/x\n--- a/x\n+++ b/x\n")
AT = pathlib.Path("it.patch")


def test_a_patch_says_what_it_breaks_and_who_must_see_it():
    fault = sabotage.parse(PATCH, AT)
    assert (fault.name, fault.about, fault.scenarios) == ("it", "Breaks it.", ("one", "two"))
    assert fault.caught.pattern == "frames (lost|back)"


@pytest.mark.parametrize("left_out", ["Breaks it.", "Caught: frames (lost|back)\n",
                                      "Scenario: one\nScenario: two\n",
                                      "diff --git a/x b/x\n--- a/x\n"])
def test_a_patch_that_says_too_little_is_named(left_out):
    with pytest.raises(ValueError) as error:
        sabotage.parse(PATCH.replace(left_out, ""), AT)
    assert str(error.value).startswith("it.patch: want a line that says what it breaks")


def result(name, outcome, reason=""):
    return Result(name, outcome, reason, 1.0)


@pytest.mark.parametrize("two, console, said", [
    (result("two", "fail", "x"), "== two\nAssertionError: frames lost: {}\n", None),
    (result("two", "fail", "exit 1"), "== two\nsomething else\n", "for another reason: exit 1"),
    (result("two", "fail", "x"), "== one\nframes lost\n== two\nnothing\n", "for another reason"),
    (result("two", "pass"), "== two\nframes lost\n", "pass"),
    (result("two", "skip", "no such card"), "", "skip no such card"),
    (None, "", "it was not run"),
])
def test_a_fault_is_caught_by_a_failure_in_the_right_words(two, console, said):
    results = {"one": result("one", "fail"), "two": two}
    if two is None:
        del results["two"]
    by_scenario = {"one": "frames back", **sabotage.console_by_scenario("boot\n" + console)}
    by_scenario["one"] = "frames back"
    missed = sabotage.verdict(sabotage.parse(PATCH, AT), results, by_scenario)
    assert list(missed) == (["two"] if said else [])
    assert said is None or said in missed["two"]


def test_the_line_that_calls_it_by_its_name():
    fault = sabotage.parse(PATCH, AT)
    assert sabotage.words(fault, "a\nerror: frames lost: 3\nb\n") == "error: frames lost: 3"


def test_the_faults_that_are_here_name_scenarios_that_are_here():
    assert {"leak", "twice"} <= set(sabotage.faults())
    named = {name for fault in sabotage.faults().values() for name in fault.scenarios}
    assert named <= set(tables.scenarios())


@pytest.mark.parametrize("name", sabotage.faults())
def test_each_fault_applies_to_the_tree_and_changes_it(name):
    with sabotage.Copy() as copy:
        fault = sabotage.faults()[name]
        touched = subprocess.run(["git", "apply", "--numstat", str(fault.path)], check=True,
                                 capture_output=True, text=True).stdout.split()[2::3]
        before = {path: (copy.tree / path).read_text() for path in touched}
        assert before, f"{fault.path.name} touches nothing"
        copy.apply(fault)
        assert all((copy.tree / path).read_text() != text for path, text in before.items())
        with pytest.raises(sabotage.Broken) as error:
            copy.apply(fault)
        assert str(error.value).startswith(f"{fault.path.name} does not apply: ")
        copy.take_back(fault)
        assert before == {path: (copy.tree / path).read_text() for path in touched}
