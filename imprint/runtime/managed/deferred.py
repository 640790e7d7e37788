"""Remembers what could not be freed yet, in `data/deferred.json`: folders in use, and packages to drop from the cache.

Names are written down before anything is fetched or removed, so that a run that is killed loses none of them. The
file is there only while something waits. The caller holds the mutex.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from imprint import touch
from imprint.errors import ImprintError
from imprint.paths import Home
from imprint.runtime.distributions.records import is_name
from imprint.state import files
from imprint.state.findings import Findings
from imprint.values import Record


class Deferred(Record):
    """A folder that stays for now because the process `pid` has its files open; `size` in bytes."""

    path: Path
    size: int
    pid: int


class Waiting(Record):
    """What waits: folders, and names of distributions that the cache may hold for nothing.

    `kept` are names that the cache holds on purpose, for another try of a GPU build whose check failed.
    """

    folders: tuple[Deferred, ...] = ()
    names: frozenset[str] = frozenset()
    kept: frozenset[str] = frozenset()

    @property
    def is_due(self) -> bool:
        """Whether there is something to free."""
        return bool(self.folders or self.names)


def path_of(home: Home) -> Path:
    """Return the file."""
    return home.data / "deferred.json"


def read(home: Home, findings: Findings | None = None) -> Waiting:
    """Return what waits; nothing when the file is missing or damaged (then it is set aside, unless told otherwise)."""
    findings = Findings(writing_in=home) if findings is None else findings
    value = files.read_state(home, path_of(home), findings)
    if value is None:
        return Waiting()
    try:
        folders = tuple(
            Deferred(Path(str(entry["path"])), int(entry["bytes"]), int(entry["pid"])) for entry in value["folders"]
        )
        return Waiting(folders, _names(value["names"]), _names(value.get("kept", ())))
    except (KeyError, TypeError, ValueError):
        findings.damaged(path_of(home), "does not say what waits")
        return Waiting()


def _names(value: Iterable[object]) -> frozenset[str]:
    # A name that is none came from elsewhere, and would wait for ever.
    return frozenset(name for name in map(str, value) if is_name(name))


def read_only(home: Home) -> Waiting:
    """Return what waits for a reader that changes nothing; nothing where that cannot be told."""
    try:
        return read(home, Findings())
    except ImprintError:
        return Waiting()


def write(home: Home, waiting: Waiting) -> None:
    """Replace what waits; without anything the file goes."""
    if waiting == Waiting():
        touch.forget_file(path_of(home), within=home.data)
        return
    value = {
        "schema": 1,
        "folders": [
            {"path": os.fspath(found.path), "bytes": found.size, "pid": found.pid} for found in waiting.folders
        ],
        "names": sorted(waiting.names),
        "kept": sorted(waiting.kept),
    }
    # A kill does not lose what is written; after a power cut only space is lost, until `imprint prune`.
    files.write_json(path_of(home), value, within=home.root, durable=False)


def note(home: Home, names: Iterable[str]) -> None:
    """Add names: whatever happens from here on, pruning will look whether something still uses them."""
    waiting = read(home)
    added = waiting.names | frozenset(names)
    if added != waiting.names:
        write(home, Waiting(waiting.folders, added, waiting.kept))


def forget(home: Home, names: Iterable[str]) -> None:
    """Take names off again: nothing has to be freed."""
    waiting = read(home)
    write(home, Waiting(waiting.folders, waiting.names - frozenset(names), waiting.kept))


def keep(home: Home, names: Iterable[str]) -> None:
    """Keep in the cache what another try of these distributions would download again."""
    waiting = read(home)
    kept = frozenset(names)
    write(home, Waiting(waiting.folders, waiting.names - kept, waiting.kept | kept))


def release(home: Home) -> None:
    """Let pruning free what was kept for another try."""
    waiting = read(home)
    if waiting.kept:
        write(home, Waiting(waiting.folders, waiting.names | waiting.kept))
