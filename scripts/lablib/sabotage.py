# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Builds that are broken on purpose, to see that the lab notices.

Each tests/lab/sabotage/NAME.patch begins with what it breaks, in a line, then names the scenarios
that must fail (Scenario: NAME, a line each) and what must be said there (Caught: a regular
expression). The patch itself follows. It goes onto a copy of the tree; one that does not apply any
more is an error: the code has moved on, and the patch must follow it.
"""

import collections
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from . import tables

FOLDER = tables.LAB / "sabotage"
# What a build does not need, or must not take from the tree that it is a copy of.
NOT_COPIED = {".git", ".lab", "__pycache__", ".pytest_cache"}
# The programs that go into a guest: image.BUILT.
TARGETS = ("millraced", "millracectl", "tests/tools/flood")
WORDS = 110

Fault = collections.namedtuple("Fault", "name about scenarios caught path")


def parse(text, path):
    """The Fault that a patch says it is."""
    head = re.split(r"^(?:diff --git |--- )", text, maxsplit=1, flags=re.MULTILINE)
    scenarios = re.findall(r"^Scenario: (\w+)$", head[0], re.MULTILINE)
    caught = re.findall(r"^Caught: (.+)$", head[0], re.MULTILINE)
    about = head[0].split("\n")[0]
    if len(head) != 2 or not about or not scenarios or len(caught) != 1:
        raise ValueError(f"{path.name}: want a line that says what it breaks, Scenario: NAME once or "
                         f"more, Caught: EXPRESSION once, then the patch")
    return Fault(path.stem, about, tuple(scenarios), re.compile(caught[0]), path)


def faults():
    found = [parse(path.read_text(), path) for path in sorted(FOLDER.glob("*.patch"))]
    return {fault.name: fault for fault in found}


def _left_out(folder, names):
    """Of a folder's names those that are not copied; what is built is where meson says so."""
    return [name for name in names
            if name in NOT_COPIED or (pathlib.Path(folder) / name / "build.ninja").exists()]


class Broken(Exception):
    """A patch does not apply, or a tree does not build; the text says which and why."""


class Copy:
    """`with Copy() as copy`: the tree as it is, beside the one that is worked on."""

    def __init__(self):
        self._folder = tempfile.TemporaryDirectory(prefix="millrace-sabotage-")
        self.tree = pathlib.Path(self._folder.name) / "tree"
        self.build_folder = self.tree / "build"
        shutil.copytree(tables.REPOSITORY, self.tree, symlinks=True, ignore=_left_out)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._folder.cleanup()

    def _run(self, what, *argv):
        # Else git would look for a repository above, and leave out what is not in it without a word.
        environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(self.tree.parent.resolve())}
        done = subprocess.run(list(map(str, argv)), cwd=self.tree, text=True, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment)
        if done.returncode:
            raise Broken(f"{what}: {done.stdout.strip()}")

    def apply(self, fault):
        self._run(f"{fault.path.name} does not apply", "git", "apply", fault.path)

    def take_back(self, fault):
        self._run(f"{fault.path.name} cannot be taken back", "git", "apply", "-R", fault.path)

    def build(self):
        if not (self.build_folder / "build.ninja").exists():
            self._run("meson", "meson", "setup", self.build_folder)
        self._run("the copy does not build", "ninja", "-C", self.build_folder, *TARGETS)


def verdict(fault, results, console):
    """{scenario: why the fault was not caught there}; empty when it was everywhere.

    `results`: {scenario: machine.Result} of the broken build. `console`: the guest's, by scenario.
    """
    missed = {}
    for name in fault.scenarios:
        result = results.get(name)
        if result is None:
            missed[name] = "it was not run"
        elif result.outcome != "fail":
            missed[name] = f"{result.outcome} {result.reason}".strip()
        elif not fault.caught.search(console.get(name, "")):
            missed[name] = f"it failed, but for another reason: {result.reason}"
    return missed


def words(fault, console):
    """The line in which the fault was called by its name, as far as one looks."""
    line = next(line for line in console.splitlines() if fault.caught.search(line))
    return line[:WORDS]


def console_by_scenario(text):
    """{scenario: its part of a guest's console}; init.py writes `== NAME` before each."""
    parts = re.split(r"^== (\w+)\s*$", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2]))
