"""Reads what installed distributions say about themselves: what they require and which files they claim.

`inventory.py` says what is broken; this module adds what a decision about removing or replacing needs. Nothing is
imported or changed.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from imprint.runtime.inventory import Distribution, Inventory, is_build, normalize

VENDOR_PREFIX = "nvidia-"


@dataclass(frozen=True, slots=True)
class Held:
    """One installed distribution.

    `name` is normalized; `version` is None when unreadable; `requires` are its Requires-Dist lines and `extras` the
    extras it offers; `files` maps recorded paths, relative to the folder of packages, to their recorded hash ("" for
    none); `size` is the sum of the recorded sizes in bytes; `problems` are the kinds of `inventory.Problem`.
    """

    name: str
    version: str | None
    requires: tuple[str, ...] = ()
    extras: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    size: int = 0
    problems: tuple[str, ...] = ()
    folder: Path | None = None

    @property
    def is_build(self) -> bool:
        """Whether it is a build of ONNX Runtime: named like one and, where that shows, owner of `onnxruntime/`."""
        return is_build(self.name, self.files)

    @property
    def package_folders(self) -> frozenset[str]:
        """The top folders its modules lie in, such as `nvidia`; not its metadata, and nothing outside."""
        tops = (path.partition("/") for path in self.files)
        return frozenset(
            top for top, slash, _ in tops if slash and top != ".." and not top.endswith((".dist-info", ".data"))
        )


def is_vendor(name: str) -> bool:
    """Whether a normalized name is one of NVIDIA's wheels."""
    return name.startswith(VENDOR_PREFIX)


def read_held(inventory: Inventory) -> tuple[Held, ...]:
    """Return every distribution of an inventory with its requirements and files; what is unreadable is left empty.

    Old-style `.egg-info` metadata is included for what it requires, never as something to remove.
    """
    found = [_held(distribution) for distribution in inventory.distributions]
    if inventory.packages is not None:
        found.extend(_egg(path) for path in sorted(inventory.packages.glob("*.egg-info")))
    return tuple(found)


def recorded_files(info: Path) -> dict[str, str]:
    """Return the paths in the RECORD of a dist-info folder with their hashes; empty when it cannot be read.

    Compiled files are left out: whoever removes a module removes those.
    """
    try:
        with (info / "RECORD").open(encoding="utf-8", newline="") as file:
            rows = [row for row in csv.reader(file) if row and row[0] and not row[0].endswith(".pyc")]
    except (OSError, ValueError, csv.Error):
        return {}
    return {row[0]: row[1] if len(row) > 1 else "" for row in rows}


def parse_headers(text: str) -> dict[str, list[str]]:
    """Return the header fields of a METADATA file by lower-case name; the description is not read."""
    fields: dict[str, list[str]] = {}
    for line in text.splitlines():
        if not line.strip():
            break
        key, colon, value = line.partition(":")
        if colon and not line[0].isspace():
            fields.setdefault(key.lower(), []).append(value.strip())
    return fields


def _held(distribution: Distribution) -> Held:
    headers = parse_headers(_text(distribution.folder / "METADATA"))
    return Held(
        name=distribution.name,
        version=distribution.version,
        requires=tuple(headers.get("requires-dist", ())),
        extras=tuple(normalize(extra) for extra in headers.get("provides-extra", ())),
        files=recorded_files(distribution.folder),
        size=distribution.size,
        problems=tuple(sorted({problem.kind for problem in distribution.problems})),
        folder=distribution.folder,
    )


def _egg(path: Path) -> Held:
    headers = parse_headers(_text(path / "PKG-INFO" if path.is_dir() else path))
    name = headers.get("name", [path.stem.partition("-")[0]])[0]
    requires = headers.get("requires-dist") or _before_sections(_text(path / "requires.txt"))
    return Held(normalize(name), next(iter(headers.get("version", [])), None), tuple(requires))


def _before_sections(text: str) -> Sequence[str]:
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith("["):
            break
        if line.strip():
            lines.append(line.strip())
    return lines


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", errors="replace")
    except OSError:
        return ""
