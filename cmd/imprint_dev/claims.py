"""Reads `locks/platforms.toml`: how each lock is compiled, and the machines it claims to have wheels for."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any


class ClaimsError(ValueError):
    """The claims are malformed; the message names the place."""


@dataclass(frozen=True, slots=True)
class TargetPlatform:
    """One machine a lock is claimed for. `triple` is uv's name of it, `macos` its oldest macOS or None."""

    platform: str
    triple: str
    macos: str | None
    python: str

    def __str__(self) -> str:
        return f"{self.platform}, Python {self.python}"


@dataclass(frozen=True, slots=True)
class Lock:
    """One lock: `python` is the oldest interpreter it serves, `no_deps` leaves dependencies out on purpose."""

    name: str
    python: str
    no_deps: bool
    spots: tuple[TargetPlatform, ...]


def parse_claims(text: str) -> dict[str, Lock]:
    """Return the locks by name, in the order of the file. Errors: ClaimsError naming the place."""
    document = tomllib.loads(text)
    _only(document, {"platforms", "locks"}, "the file")
    platforms: dict[str, Any] = document.get("platforms", {})
    for name, platform in platforms.items():
        _only(platform, {"uv", "macos"}, f"platforms.{name}")
    return {name: _lock(name, body, platforms) for name, body in document.get("locks", {}).items()}


def _lock(name: str, body: Mapping[str, Any], platforms: Mapping[str, Any]) -> Lock:
    _only(body, {"python", "no_deps", "claims"}, f"locks.{name}")
    return Lock(
        name=name,
        python=body["python"],
        no_deps=body.get("no_deps", False),
        spots=tuple(_spots(name, body["claims"], platforms)),
    )


def _spots(name: str, claims: list[Mapping[str, Any]], platforms: Mapping[str, Any]) -> Iterator[TargetPlatform]:
    for position, claim in enumerate(claims):
        where = f"locks.{name}.claims[{position}]"
        _only(claim, {"platforms", "pythons"}, where)
        for platform in claim["platforms"]:
            if platform not in platforms:
                raise ClaimsError(f"{where} names the platform `{platform}`, which [platforms] lacks")
            known = platforms[platform]
            for python in claim["pythons"]:
                yield TargetPlatform(platform, known["uv"], known.get("macos"), python)


def _only(table: Mapping[str, Any], allowed: set[str], where: str) -> None:
    unknown = sorted(set(table) - allowed)
    if unknown:
        raise ClaimsError(f"{where} has unknown keys: {', '.join(unknown)}")
