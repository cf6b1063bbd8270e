# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""This machine's apt sources, and sources of other suites made of them.

The lab takes what it needs from the mirror that the machine trusts already: the same address, the
same keys, another suite. Nothing that weakens a check (trusted=yes, allow-insecure=yes) is taken
over.
"""

import collections
import pathlib
import re

from . import Unavailable

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
# Where a machine follows "stable" and not a name, the mirror is the same.
ALIASES = ("stable", "oldstable", "testing", "unstable", "sid")

# keys: what Signed-By says, one line or a whole key in several; None where it is left out.
Source = collections.namedtuple("Source", "uri suites components keys")


def parse_one_line(text):
    """Sources of a sources.list: deb [option=value ...] URI SUITE COMPONENT..."""
    found = []
    for line in text.splitlines():
        match = re.match(r"\s*deb\s+(?:\[([^]]*)\]\s*)?(\S+)\s+(\S+)\s*([^#]*)", line)
        if not match:
            continue
        options = dict(word.split("=", 1) for word in (match[1] or "").split() if "=" in word)
        keys = options.get("signed-by")
        found.append(Source(match[2], [match[3]], match[4].split(),
                            keys.replace(",", " ") if keys else None))
    return found


def _stanzas(text):
    """Each stanza of a deb822 file as {field: value}; lines of a longer value joined by newlines."""
    fields, name = {}, None
    for line in [*text.splitlines(), ""]:
        if not line.strip():
            if fields:
                yield fields
            fields, name = {}, None
        elif line.startswith("#"):
            continue
        elif line[0] in " \t":
            if name:
                fields[name] += "\n" + line
        elif ":" in line:
            name, value = line.split(":", 1)
            name = name.strip().lower()
            fields[name] = value.strip()


def parse_deb822(text):
    """Sources of a .sources file; those that are disabled or have no packages are left out."""
    found = []
    for fields in _stanzas(text):
        if fields.get("enabled", "yes").lower() in ("no", "false", "0"):
            continue
        if "deb" not in fields.get("types", "").split():
            continue
        for uri in fields.get("uris", "").split():
            found.append(Source(uri, fields.get("suites", "").split(),
                                fields.get("components", "").split(), fields.get("signed-by")))
    return found


def read(folder=pathlib.Path("/etc/apt")):
    """All sources of a machine, in the order in which apt reads them."""
    found = []
    main = folder / "sources.list"
    if main.exists():
        found += parse_one_line(main.read_text())
    for path in sorted((folder / "sources.list.d").glob("*")):
        if path.suffix == ".list":
            found += parse_one_line(path.read_text())
        elif path.suffix == ".sources":
            found += parse_deb822(path.read_text())
    return found


def codename(os_release):
    """The release that /etc/os-release names, or Unavailable where it is not Debian's."""
    said = dict(line.split("=", 1) for line in os_release.splitlines() if "=" in line)
    said = {key: value.strip('"') for key, value in said.items()}
    if said.get("ID") != "debian" or not said.get("VERSION_CODENAME"):
        raise Unavailable(f"the lab takes kernels from Debian's suites, and this is "
                          f"{said.get('PRETTY_NAME', 'another system')}")
    return said["VERSION_CODENAME"]


def debian(sources, release):
    """The source that the release itself comes from: the one whose mirror has the other suites."""
    for names in ((release,), ALIASES):
        for source in sources:
            if "main" in source.components and any(name in source.suites for name in names):
                return source
    raise Unavailable(f"no apt source of this machine has suite '{release}', component main: "
                      f"no mirror to take kernels from")


def derive(source, suites):
    """The text of a .sources file: `source`'s mirror and keys, these suites, component main."""
    keys = source.keys or KEYRING
    return (f"Types: deb\nURIs: {source.uri}\nSuites: {' '.join(suites)}\nComponents: main\n"
            f"Signed-By: {keys}\n")
