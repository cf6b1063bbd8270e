# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""An entry of the cache is whole, or it is made again."""

import pytest
from lablib.cache import MANIFEST, Cache

REQUEST = {"suite": "s"}


class Maker:
    """Fills an entry, and counts how often."""

    def __init__(self):
        self.times = 0

    def __call__(self, folder):
        self.times += 1
        (folder / "sub").mkdir()
        (folder / "sub/file").write_text("content")
        (folder / "link").symlink_to("sub/file")


@pytest.fixture
def made(tmp_path):
    cache, maker = Cache(tmp_path / "cache"), Maker()
    folder = cache.get("entry", REQUEST, maker)
    assert maker.times == 1 and (folder / "link").read_text() == "content"
    return cache, maker, folder


def test_a_whole_entry_is_not_made_again(made):
    cache, maker, folder = made
    assert cache.get("entry", REQUEST, maker) == folder and maker.times == 1


@pytest.mark.parametrize("damage", [
    lambda folder: (folder / "sub/file").write_text("other"),
    lambda folder: (folder / "sub/file").write_text("conten"),
    lambda folder: (folder / "sub/file").unlink(),
    lambda folder: ((folder / "link").unlink(), (folder / "link").symlink_to("/etc/passwd")),
    lambda folder: (folder / MANIFEST).unlink(),
    lambda folder: (folder / MANIFEST).write_text("{"),
    lambda folder: (folder / MANIFEST).write_text("[]"),
], ids=["changed", "cut", "lost", "link", "no-manifest", "half-manifest", "other-manifest"])
def test_a_damaged_entry_is_made_again(made, damage):
    cache, maker, folder = made
    damage(folder)
    again = cache.get("entry", REQUEST, maker)
    assert maker.times == 2 and (again / "link").read_text() == "content"
    assert cache.fault("entry", REQUEST) is None


def test_another_request_or_an_entry_of_no_use_is_made_again(made):
    cache, maker, _ = made
    cache.get("entry", {"suite": "other"}, maker)
    assert maker.times == 2
    cache.get("entry", {"suite": "other"}, maker, works=lambda folder: "it does not start")
    assert maker.times == 3


def test_a_fill_that_fails_leaves_what_was_there_and_nothing_half_done(made):
    cache, maker, folder = made

    def fails(fresh):
        (fresh / "half").write_text("x")
        raise OSError("no network")

    with pytest.raises(OSError):
        cache.get("entry", {"suite": "other"}, fails)
    assert cache.get("entry", REQUEST, maker) == folder and maker.times == 1
    assert sorted(path.name for path in cache.folder.iterdir()) == ["entry", "lock"]


def test_what_was_cut_short_is_swept_away(made):
    cache, maker, folder = made
    (cache.folder / "entry.new").mkdir()
    (cache.folder / "entry.new/rest").write_text("x")
    (folder / "sub/file").unlink()
    again = cache.get("entry", REQUEST, maker)
    assert not (again / "rest").exists()
