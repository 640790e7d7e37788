"""Says which wheels a lock pins for another machine, and what a bundle of them holds.

Which files those are, and where, is the installer's answer; it has no command that fetches files without unpacking
them, so that is done here.
"""

from __future__ import annotations

import hashlib
import re
import tempfile
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from imprint.errors import ImprintError, IntegrityError
from imprint.hints import helps
from imprint.planning.model import Platform
from imprint.runtime.installer.uv import TargetPlatform, Uv
from imprint.values import Record

_GLIBC = (17, 28, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40)
"""The glibc 2.x that the installer knows platforms for (uv 0.13, read 2026-11-29)."""


class File(Record):
    """One wheel: its name, SHA-256, size (None where the index does not say), and where it is."""

    distribution: str
    version: str
    name: str
    sha256: str
    size: int | None
    where: str


def spot_of(platform: Platform, python: str) -> TargetPlatform:
    """Return a platform as the installer names it. Raises ImprintError (`platform-unknown`) when it has no name."""
    arch = platform.arch
    if platform.os == "linux" and arch in {"x86_64", "aarch64"}:
        libc = platform.libc
        if libc is not None and libc.name == "musl":
            return TargetPlatform(f"{arch}-unknown-linux-musl", python)
        stated = re.match(r"2\.(\d+)", (libc.version if libc is not None else None) or "")
        minor = int(stated[1]) if stated else 34 if arch == "aarch64" else 28
        return TargetPlatform(f"{arch}-manylinux_2_{max((m for m in _GLIBC if m <= minor), default=17)}", python)
    if platform.os == "windows" and arch in {"x86_64", "aarch64"}:
        return TargetPlatform(f"{arch}-pc-windows-msvc", python)
    if platform.os == "macos" and arch in {"x86_64", "aarch64"}:
        return TargetPlatform(f"{arch}-apple-darwin", python, platform.os_version or "14.0")
    raise ImprintError(
        f"there is nothing to collect for {platform.os or 'an unknown system'} {arch or ''}".rstrip(),
        hint=helps("name-a-platform"),
        code="platform-unknown",
    )


def files_of(uv: Uv, lock: Path, spot: TargetPlatform) -> tuple[File, ...]:
    """Return the wheels that a machine takes of a lock. Raises as `Uv.resolve`, and IntegrityError as `parse_files`."""
    with tempfile.TemporaryDirectory(dir=uv.home.root) as scratch:
        output = Path(scratch, "pylock.toml")
        uv.resolve(lock, spot, output)
        return parse_files(output.read_text("utf-8"), lock.read_text("utf-8"), lock.name)


def parse_files(text: str, lock: str, name: str) -> tuple[File, ...]:
    """Return the wheels of a pylock document.

    Raises IntegrityError for a wheel whose hash the lock does not name, and for what is no such document.
    """
    from packaging.pylock import Pylock, PylockValidationError

    found: list[File] = []
    try:
        for package in Pylock.from_dict(tomllib.loads(text)).packages:
            found += [
                File(
                    package.name,
                    str(package.version),
                    wheel.filename,
                    wheel.hashes.get("sha256", ""),
                    wheel.size,
                    where,
                )
                for wheel in package.wheels or ()
                if (where := wheel.url or wheel.path) is not None
            ]
    except (tomllib.TOMLDecodeError, PylockValidationError) as error:
        raise IntegrityError(f"the installer's answer about `{name}` cannot be read: {error}") from error
    for file in found:
        if f"sha256:{file.sha256}" not in lock:
            raise IntegrityError(
                f"`{file.name}` from the index is not one that `{name}` pins",
                hint=helps("deleted-another-mirror"),
            )
    return tuple(found)


def manifest_of(
    files: Mapping[str, tuple[File, ...]], locks: Mapping[str, str], spot: TargetPlatform
) -> dict[str, Any]:
    """Return what a bundle holds as its `manifest.json` says it: every file with its hash, and the lock it is for."""
    wheels: dict[str, dict[str, Any]] = {}
    for lock, found in files.items():
        for file in found:
            entry = wheels.setdefault(file.name, {"sha256": file.sha256, "bytes": file.size, "locks": []})
            entry["locks"].append(lock)
    return {
        "schema": 1,
        "platform": spot.triple,
        "python": spot.python,
        "locks": dict(locks),
        "wheels": dict(sorted(wheels.items())),
    }


def digests_of(locks: Mapping[str, Path]) -> dict[str, str]:
    """Return the SHA-256 of each lock."""
    return {name: digest_of(path) for name, path in locks.items()}


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
