"""Hashed requirement files as values: parse one, and say entry by entry how two differ."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_PIN = re.compile(r"(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^\s;]+)\s*(?:;\s*(?P<marker>.+))?")
_HASH = re.compile(r"--hash=(sha256:[0-9a-f]{64})")


class LockfileError(ValueError):
    """A line that `uv pip compile --generate-hashes` would not have written."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One pinned distribution. `marker` limits it to some environments, "" to none; `hashes` name its files."""

    name: str
    version: str
    marker: str
    hashes: frozenset[str]


def parse_lockfile(text: str) -> list[Entry]:
    """Return the entries in file order. Errors: LockfileError for an entry without a pin or without hashes."""
    entries = []
    for line in _logical_lines(text):
        requirement = _HASH.sub("", line).strip()
        match = _PIN.fullmatch(requirement)
        hashes = frozenset(_HASH.findall(line))
        if match is None:
            raise LockfileError(f"not a pinned requirement: {requirement}")
        if not hashes:
            raise LockfileError(f"no hashes: {requirement}")
        entries.append(Entry(match["name"], match["version"], match["marker"] or "", hashes))
    return entries


def without_hashes(text: str) -> str:
    """Return the same pins without their hashes."""
    return re.sub(r" \\\n\s+--hash=\S+", "", text)


def _logical_lines(text: str) -> Iterator[str]:
    joined = re.sub(r"\\\n", " ", text)
    for line in joined.splitlines():
        content = line.strip()
        if content and not content.startswith("#"):
            yield content


def diff(old: list[Entry], new: list[Entry]) -> list[str]:
    """Return one line per package and marker that differs, by name; empty when the two pin the same files.

    A package that is split by Python version has several entries; they are paired by marker. When only the marker
    moved, that reads as one entry gone and one come.
    """
    before = {(entry.name, entry.marker): entry for entry in old}
    after = {(entry.name, entry.marker): entry for entry in new}
    lines = []
    for key in sorted(before.keys() | after.keys()):
        line = _describe(before.get(key), after.get(key))
        if line is not None:
            lines.append(line)
    return lines


def _describe(old: Entry | None, new: Entry | None) -> str | None:
    if old == new:
        return None
    shown = new or old
    assert shown is not None  # noqa: S101 - two missing entries are equal, which is handled above
    marker = f" ; {shown.marker}" if shown.marker else ""
    versions = f"{old.version if old else '(none)'} -> {new.version if new else '(none)'}"
    added = len((new.hashes if new else frozenset()) - (old.hashes if old else frozenset()))
    removed = len((old.hashes if old else frozenset()) - (new.hashes if new else frozenset()))
    if old and new and old.version == new.version:
        versions = f"{new.version} (same version)"
    return f"{shown.name}{marker}: {versions}, hashes +{added} -{removed}"
