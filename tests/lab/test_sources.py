# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Sources of other suites made of the machine's own: same mirror, same keys, no check weakened."""

import pytest
from lablib import Unavailable, sources

KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"
ONE_LINE = f"""
# deb http://commented.example/debian bookworm main
deb-src http://mirror.example/debian bookworm main
deb [arch=amd64] http://other.example/packages bookworm main
deb [ signed-by={KEYS} trusted=yes ] http://mirror.example/debian bookworm main contrib # the mirror
deb http://mirror.example/debian-security bookworm-security main
"""
DEB822 = f"""
# A comment
Types: deb deb-src
URIs: https://mirror.example/debian
Suites: bookworm bookworm-updates
Components: main
# in the middle
Signed-By: {KEYS}
Trusted: yes

Types: deb
URIs: https://mirror.example/debian-security
Suites: bookworm-security
Components: main
Enabled: no

Types: deb-src
URIs: https://mirror.example/sources
Suites: bookworm
Components: main
"""
WHOLE_KEY = """Types: deb
URIs: https://mirror.example/debian
Suites: bookworm
Components: main
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 abc
 -----END PGP PUBLIC KEY BLOCK-----
"""


def test_one_line_sources():
    found = sources.parse_one_line(ONE_LINE)
    assert [source.uri for source in found] == [
        "http://other.example/packages", "http://mirror.example/debian",
        "http://mirror.example/debian-security"]
    assert found[1] == sources.Source("http://mirror.example/debian", ["bookworm"],
                                      ["main", "contrib"], KEYS)


def test_deb822_sources_without_disabled_ones_and_sources_of_source():
    assert sources.parse_deb822(DEB822) == [sources.Source(
        "https://mirror.example/debian", ["bookworm", "bookworm-updates"], ["main"], KEYS)]


def test_a_key_that_stands_in_the_file_is_taken_over_whole():
    derived = sources.derive(sources.parse_deb822(WHOLE_KEY)[0], ["trixie"])
    assert sources.parse_deb822(derived)[0].keys == sources.parse_deb822(WHOLE_KEY)[0].keys
    assert "-----END PGP PUBLIC KEY BLOCK-----" in derived


def test_the_mirror_is_the_one_that_the_release_comes_from():
    found = [sources.Source("http://security.example", ["bookworm-security"], ["main"], None),
             sources.Source("http://tools.example", ["bookworm"], ["tools"], None),
             sources.Source("http://mirror.example", ["bookworm-updates", "bookworm"], ["main"],
                            KEYS)]
    assert sources.debian(found, "bookworm") == found[2]


def test_a_machine_that_follows_stable_has_the_same_mirror():
    found = [sources.Source("http://mirror.example", ["stable"], ["main"], None)]
    assert sources.debian(found, "bookworm") == found[0]


def test_no_mirror_is_said_with_the_suite():
    with pytest.raises(Unavailable, match="'bookworm'"):
        sources.debian(sources.parse_one_line("deb http://x.example nodistro main"), "bookworm")


def test_derived_sources_say_keys_and_never_trust_without():
    for text in (ONE_LINE, "deb [trusted=yes] http://mirror.example/debian bookworm main"):
        derived = sources.derive(sources.debian(sources.parse_one_line(text)[-2:], "bookworm"),
                                 ["trixie", "trixie-backports"])
        assert f"Signed-By: {KEYS}\n" in derived
        assert "Suites: trixie trixie-backports\n" in derived
        assert "rusted" not in derived and "allow" not in derived.lower()


def test_files_are_read_as_apt_reads_them(tmp_path):
    folder = tmp_path / "sources.list.d"
    folder.mkdir()
    (tmp_path / "sources.list").write_text("deb http://a.example bookworm main\n")
    (folder / "b.list").write_text("deb http://b.example bookworm main\n")
    (folder / "c.sources").write_text(DEB822)
    (folder / "d.list.save").write_text("deb http://old.example bookworm main\n")
    assert [source.uri for source in sources.read(tmp_path)] == [
        "http://a.example", "http://b.example", "https://mirror.example/debian"]


def test_another_system_is_named():
    assert sources.codename('ID=debian\nVERSION_CODENAME=bookworm\n') == "bookworm"
    with pytest.raises(Unavailable, match="Other Linux 9"):
        sources.codename('PRETTY_NAME="Other Linux 9"\nID=other\n')
