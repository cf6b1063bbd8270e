# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The Debian package of this tree, as it stands here."""

import hashlib
import pathlib
import shutil
import subprocess
import tempfile

from .tables import REPOSITORY

FILE = "millrace_0.1.0_amd64.deb"


def sources():
    """Names of the files that a clone would have, and those that a commit would add."""
    names = subprocess.run(["git", "ls-files", "-z", "-co", "--exclude-standard"],
                           cwd=REPOSITORY, check=True, capture_output=True).stdout
    return sorted(name for name in names.decode().split("\0")
                  if name and (REPOSITORY / name).exists())


def digest():
    """Changes with what a package is made of: everything but the tests and the scripts."""
    said = hashlib.sha256()
    for name in sources():
        if not name.startswith(("tests/", "scripts/")):
            said.update(name.encode() + b"\0" + (REPOSITORY / name).read_bytes())
    return said.hexdigest()


class Packages:
    """The package of this tree, and one of a later version; both are in `folder`."""

    def __init__(self, folder):
        self.folder, self.tree = folder, folder / "millrace"
        self.tree.mkdir()
        for name in sources():
            (self.tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(REPOSITORY / name, self.tree / name)

    def build(self, *options):
        done = subprocess.run(["dpkg-buildpackage", "-us", "-uc", "-b", *options], cwd=self.tree,
                              text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C",
                                   "DEB_BUILD_OPTIONS": "nocheck noautodbgsym"})
        assert done.returncode == 0, done.stdout[-4000:]

    def build_later(self):
        """Built anew where the first was, with what made that."""
        changelog = self.tree / "debian/changelog"
        first = changelog.read_text()
        changelog.write_text(first.replace("(0.1.0)", "(0.1.1)", 1) + "\n" + first)
        meson = self.tree / "meson.build"
        meson.write_text(meson.read_text().replace("version: '0.1.0'", "version: '0.1.1'", 1))
        (self.tree / "debian/debhelper-build-stamp").unlink()
        self.build("-nc")


def make(folder):
    """Builds the package of this tree into a folder of the cache."""
    with tempfile.TemporaryDirectory(prefix="millrace-package-") as place:
        packages = Packages(pathlib.Path(place))
        packages.build()
        shutil.copy(packages.folder / FILE, folder / FILE)
