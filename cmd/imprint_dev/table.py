"""`data/builds.json` as a file: which of its fields come out of wheels, how two readings differ, how it is written."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

_WIDTH = 120
FLOORS = {("linux", "x86_64"): "2.28", ("linux", "aarch64"): "2.28", ("macos", "aarch64"): "14"}
"""The product's own floors: the oldest glibc and macOS it promises to run on, even where a wheel's tag says less."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What the wheels of one build on one platform say; the fields of the same names in the table.

    `toolkit` belongs to the build and `version` to the release. Sizes are bytes of the whole lock.
    """

    version: str
    toolkit: str | None
    libc: str | None
    os_version: str | None
    abis: list[str]
    native: list[str]
    ptx: list[dict[str, str]]
    links: list[str]
    download_bytes: int
    installed_bytes: int


@dataclass(frozen=True, slots=True)
class Place:
    """One platform's entry in the table, with the objects of the document that hold it."""

    build: dict[str, Any]
    release: dict[str, Any]
    platform: dict[str, Any]

    @property
    def lock(self) -> str:
        """The lock's name in `locks/platforms.toml`."""
        return str(self.release["lock"]).removesuffix(".txt")

    @property
    def system(self) -> tuple[str, str]:
        """Operating system and architecture."""
        return self.platform["os"], self.platform["arch"]

    def __str__(self) -> str:
        return f"{self.build['name']} {self.release['version']} {' '.join(self.system)}"


def places(document: dict[str, Any]) -> Iterator[Place]:
    """Yield every platform of every release of every build."""
    for build in document["builds"]:
        for release in build["releases"]:
            for platform in release["platforms"]:
                yield Place(build, release, platform)


def differences(place: Place, reading: Reading) -> list[str]:
    """Return one line per field in which the table is not what the wheels say."""
    holders = _holders(place)
    return [
        f"{place}: {field} is {json.dumps(holders[field].get(field))}, the wheels say {json.dumps(value)}"
        for field, value in asdict(reading).items()
        if holders[field].get(field) != value
    ]


def fill(place: Place, reading: Reading, lock_text: str) -> None:
    """Put what the wheels say into the document, with a stamp of what was read."""
    holders = _holders(place)
    for field, value in asdict(reading).items():
        holders[field][field] = value
    place.platform["read"] = stamp(place, lock_text)


def stamp(place: Place, lock_text: str) -> str:
    """Return a digest of the lock and of the fields that were read out of its wheels.

    A stamp that differs from the one in the table says that either was changed and the wheels were not read again,
    without a download.
    """
    fields = {field: holder.get(field) for field, holder in _holders(place).items()}
    return hashlib.sha256((lock_text + json.dumps(fields)).encode()).hexdigest()[:16]


def _holders(place: Place) -> dict[str, dict[str, Any]]:
    fields = Reading.__dataclass_fields__
    return dict.fromkeys(fields, place.platform) | {"toolkit": place.build, "version": place.release}


def later(one: str | None, other: str | None) -> str | None:
    """Return the later of two versions like `2.28`; None is earlier than any."""
    known = [version for version in (one, other) if version is not None]
    return max(known, key=lambda version: [int(part) for part in version.split(".")], default=None)


def render(document: dict[str, Any]) -> str:
    """Return the document as text: what fits on a line is on one, so that a change shows as a small difference."""
    return _render(document, 0, 0) + "\n"


def _render(value: Any, indent: int, column: int) -> str:  # noqa: ANN401 - any JSON value
    flat = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, dict | list) or not value or (indent and column + len(flat) < _WIDTH):
        return flat
    inner = " " * (indent + 2)
    if isinstance(value, dict):
        keys = [json.dumps(key) + ": " for key in value]
        rows = [
            key + _render(one, indent + 2, indent + 2 + len(key)) for key, one in zip(keys, value.values(), strict=True)
        ]
        opening, closing = "{}"
    else:
        rows = [_render(one, indent + 2, indent + 2) for one in value]
        opening, closing = "[]"
    return opening + "\n" + ",\n".join(inner + row for row in rows) + "\n" + " " * indent + closing
