"""Reads what installed distributions say about themselves: what they require and which files they claim.

`inventory.py` says what is broken; this module adds what a decision about removing or replacing needs. Nothing is
imported or changed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from imprint import access
from imprint.runtime.distributions.inventory import Distribution, Inventory, is_build, is_runtime
from imprint.runtime.distributions.records import is_name, normalize, read_rows, read_text

VENDOR_PREFIX = "nvidia-"


@dataclass(frozen=True, slots=True)
class InstalledDistribution:
    """One installed distribution.

    `name` is normalized; `version` is None when unreadable; `requires` are its Requires-Dist lines and `extras` the
    extras it offers; `files` maps recorded paths, relative to the folder of packages, to their recorded hash ("" for
    none); `size` is the sum of the recorded sizes in bytes; `problems` are the kinds of `inventory.Problem`; `folder`
    is its dist-info. `origin` is `wheel` for what Imprint may replace, else why not: `egg` (no wheel installed it),
    `link` (its dist-info is one) or `editable` (it is a checkout). `tops` are the modules it says it consists of.
    """

    name: str
    version: str | None
    requires: tuple[str, ...] = ()
    extras: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    size: int = 0
    problems: tuple[str, ...] = ()
    folder: Path | None = None
    origin: str = "wheel"
    tops: tuple[str, ...] = ()

    @property
    def is_build(self) -> bool:
        """Whether it is a build of ONNX Runtime: named like one and, where that shows, owner of `onnxruntime/`."""
        if self.origin == "egg" and self.tops:
            return "onnxruntime" in self.tops and is_runtime(self.name)
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


def read_held(inventory: Inventory) -> tuple[InstalledDistribution, ...]:
    """Return every distribution of an inventory with its requirements and files; what is unreadable is left empty.

    Old-style `.egg-info` metadata is included for what it requires, never as something to remove.
    """
    found = [_held(distribution) for distribution in inventory.distributions]
    if inventory.packages is not None:
        found.extend(_egg(path) for path in sorted(inventory.packages.glob("*.egg-info")))
    return tuple(found)


def recorded_files(info: Path) -> dict[str, str]:
    """Return the paths in the RECORD of a dist-info folder with their hashes; empty when it cannot be read.

    What is compiled at run time is left out: whoever removes a module removes that.
    """
    rows = read_rows(info) or ()
    return {row[0]: row[1] if len(row) > 1 else "" for row in rows if "__pycache__/" not in row[0]}


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


def _held(distribution: Distribution) -> InstalledDistribution:
    headers = parse_headers(_read(distribution.folder / "METADATA"))
    return InstalledDistribution(
        name=distribution.name,
        version=distribution.version,
        requires=tuple(headers.get("requires-dist", ())),
        extras=tuple(normalize(extra) for extra in headers.get("provides-extra", ())),
        files=recorded_files(distribution.folder),
        size=distribution.size,
        problems=tuple(sorted({problem.kind for problem in distribution.problems})),
        folder=distribution.folder,
        origin=_origin(distribution.folder),
        tops=tuple((_read(distribution.folder / "top_level.txt")).split()),
    )


def _origin(info: Path) -> str:
    if info.is_symlink():
        return "link"
    direct = _read(info / "direct_url.json")
    try:
        editable = json.loads(direct)["dir_info"]["editable"] is True if direct else False
    except (ValueError, KeyError, TypeError, RecursionError):
        editable = False
    return "editable" if editable else "wheel"


def _egg(path: Path) -> InstalledDistribution:
    headers = parse_headers(_read(path / "PKG-INFO" if access.is_folder(path) else path))
    name = headers.get("name", [""])[0]
    name = name if is_name(name) else path.stem.partition("-")[0]
    requires = headers.get("requires-dist") or _before_sections(_read(path / "requires.txt"))
    return InstalledDistribution(
        normalize(name),
        next(iter(headers.get("version", [])), None),
        tuple(requires),
        folder=path,
        files=_installed_files(path),
        origin="egg",
        tops=tuple(_read(path / "top_level.txt").split()),
    )


def _installed_files(egg: Path) -> dict[str, str]:
    """Return what `setup.py install` and old versions of pip listed, relative to the folder of packages."""
    lines = _read(egg / "installed-files.txt").splitlines()
    return {os.path.normpath(f"{egg.name}/{line}"): "" for line in lines if line.strip()}


def _before_sections(text: str) -> Sequence[str]:
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith("["):
            break
        if line.strip():
            lines.append(line.strip())
    return lines


def _read(path: Path) -> str:
    return read_text(path) or ""
