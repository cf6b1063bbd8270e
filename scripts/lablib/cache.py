# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Folders that are either whole or made again.

Each entry is a folder with a manifest: what was asked for, and every file with its hash. The
manifest is written last and the folder renamed into place, so a fill that was cut short leaves
nothing that could be taken for an entry; a file that was changed, cut or lost is found by its hash,
and the entry is made anew.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import pathlib
import shutil

MANIFEST = "manifest.json"


def _digest(path):
    if path.is_symlink():
        return f"-> {os.readlink(path)}"
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _files(folder):
    """{path relative to the folder: digest} of everything in it but the manifest."""
    return {str(path.relative_to(folder)): _digest(path) for path in sorted(folder.rglob("*"))
            if path.is_symlink() or path.is_file() and path != folder / MANIFEST}


class Cache:
    """`log`: is told why an entry is made (again)."""

    def __init__(self, folder, log=lambda text: None):
        self.folder = pathlib.Path(folder)
        self._log = log

    @contextlib.contextmanager
    def _locked(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        with open(self.folder / "lock", "w", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def fault(self, name, request):
        """Why an entry cannot be used, or None when it can."""
        folder = self.folder / name
        if not folder.exists():
            return "not there yet"
        try:
            manifest = json.loads((folder / MANIFEST).read_text())
        except (OSError, ValueError):
            return "no manifest that can be read"
        if not isinstance(manifest, dict) or manifest.get("request") != request:
            return "made for another request"
        there = _files(folder)
        for path, digest in manifest.get("files", {}).items():
            if there.get(path) != digest:
                return f"{path} is {'damaged' if path in there else 'missing'}"
        return None

    def get(self, name, request, make, works=lambda folder: None):
        """The entry's folder; `make(folder)` fills a new one where it is not whole.

        `request` is what the entry depends on, as JSON has it. `works(folder)` says why an entry
        is of no use although it is whole, None if it is of use.
        """
        folder = self.folder / name
        with self._locked():
            why = self.fault(name, request) or works(folder)
            if why is None:
                return folder
            self._log(f"{name}: {why}: making it")
            fresh = self.folder / f"{name}.new"
            shutil.rmtree(fresh, ignore_errors=True)
            fresh.mkdir()
            try:
                make(fresh)
                manifest = {"request": request, "files": _files(fresh)}
                (fresh / MANIFEST).write_text(json.dumps(manifest, indent=1))
                shutil.rmtree(folder, ignore_errors=True)
                fresh.rename(folder)
            finally:
                shutil.rmtree(fresh, ignore_errors=True)
            return folder
