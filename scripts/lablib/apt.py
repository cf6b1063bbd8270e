# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""An apt with sources, lists and archives of its own.

The host's apt is neither changed nor asked for packages. What comes from it: its configuration of
proxies and the like, and (where asked) its list of installed packages, to know what need not be
fetched. Every package is checked by apt itself: signed suite, hash of the list, hash of the file.
"""

import os
import pathlib
import re
import subprocess
import tempfile

from . import Unavailable, sources

# The host's hooks would act on the host's folders. Its switches that weaken checks count for its own
# sources only.
CONFIGURATION = """
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear DPkg;
#clear Dir::State;
#clear Dir::Cache;
Dir::State "{root}/state";
Dir::State::lists "lists";
Dir::State::status "{status}";
Dir::State::extended_states "extended_states";
Dir::Cache "{root}/cache";
Dir::Cache::archives "archives";
Dir::Cache::srcpkgcache "";
Dir::Cache::pkgcache "";
Dir::Etc::sourcelist "{root}/lab.sources";
Dir::Etc::sourceparts "{root}/none";
Dir::Etc::preferences "{root}/no-preferences";
Dir::Etc::preferencesparts "{root}/none";
Dir::Log "{root}";
Debug::NoLocking "true";
Acquire::Languages "none";
Acquire::Retries "2";
Acquire::AllowInsecureRepositories "false";
Acquire::AllowWeakRepositories "false";
Acquire::AllowDowngradeToInsecureRepositories "false";
APT::Get::AllowUnauthenticated "false";
APT::Sandbox::User "root";
APT::Get::Assume-Yes "true";
APT::Install-Recommends "false";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
"""
HOST_STATUS = "/var/lib/dpkg/status"


class Apt:
    """`with Apt(text of a .sources file) as apt`. `status`: a list of installed packages."""

    def __init__(self, source_text, status=None):
        self._folder = tempfile.TemporaryDirectory(prefix="millrace-lab-apt-")
        self.root = pathlib.Path(self._folder.name)
        try:
            for name in ("state/lists/partial", "cache/archives/partial", "none"):
                (self.root / name).mkdir(parents=True)
            (self.root / "lab.sources").write_text(source_text)
            (self.root / "nothing-installed").touch()
            (self.root / "no-preferences").touch()
            (self.root / "apt.conf").write_text(CONFIGURATION.format(
                root=self.root, status=status or self.root / "nothing-installed"))
            self._run("apt-get", "update", "--error-on=any")
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self._folder.cleanup()

    def _run(self, *argv):
        archives = self.root / "cache/archives"
        try:
            done = subprocess.run(argv, cwd=archives, text=True, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, env={
                                      **os.environ, "LC_ALL": "C", "DEBIAN_FRONTEND":
                                      "noninteractive", "APT_CONFIG": str(self.root / "apt.conf")})
        except FileNotFoundError:
            raise Unavailable(f"no {argv[0]} on this machine") from None
        if done.returncode:
            errors = re.findall(r"^(?:E|W|Err\S*): ?(.*)$", done.stdout, re.MULTILINE)
            why = errors[0] if errors else f"exit status {done.returncode}"
            raise Unavailable(f"{' '.join(argv[:2])}: {why}")
        return done.stdout

    def candidate(self, package, release=None):
        """The version that would be installed, None where there is none."""
        said = self._run("apt-cache", *(["-t", release] if release else []), "policy", package)
        match = re.search(r"^ +Candidate: (\S+)$", said, re.MULTILINE)
        return match[1] if match and match[1] != "(none)" else None

    def depends(self, package):
        """What its candidate depends on: names, no versions."""
        said = self._run("apt-cache", "show", "--no-all-versions", package)
        line = re.search(r"^Depends: (.*)$", said, re.MULTILINE)
        return re.findall(r"(?:^|[,|])\s*([^\s,|]+)", line[1]) if line else []

    def download(self, package):
        """Fetch one package; the path of its .deb, gone with this object."""
        before = self._archives()
        self._run("apt-get", "download", package)
        return next(path for path in self._archives() if path not in before)

    def download_missing(self, package, release=None):
        """Fetch a package and all it needs that is not installed; the paths of the .debs."""
        self._run("apt-get", "install", "--download-only",
                  *(["-t", release] if release else []), package)
        return self._archives()

    def _archives(self):
        return sorted((self.root / "cache/archives").glob("*.deb"))


def of_this_machine(*suites, status=None):
    """An Apt on the machine's own Debian mirror, with these suites."""
    release = sources.codename(pathlib.Path("/etc/os-release").read_text())
    source = sources.debian(sources.read(), release)
    return Apt(sources.derive(source, suites), status)
