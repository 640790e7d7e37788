"""Removes folders of ours that nobody needs, unless a process has their files open. The caller holds the mutex."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from imprint import touch
from imprint.paths import Home
from imprint.runtime import target
from imprint.runtime.installer import space
from imprint.runtime.managed import generations
from imprint.runtime.managed.deferred import Deferred
from imprint.runtime.target import Pointer


def sweep_unfinished(home: Home, pointer: Pointer | None) -> None:
    """Remove what a killed run left: generations that were never finished, and files it tried links with.

    A finished generation may be what that run had only to point to, so it stays. Raises StateNewerError and StateError
    for a manifest that a newer Imprint wrote or that cannot be read: later would be too late to stop.
    """
    for folder in generations.folders(home):
        target.read_manifest(home, folder.name)
    space.remove_trials(home.cache, home.runtimes)
    folders = unneeded(home, pointer)
    remove(tuple(folder for folder in folders if not (folder / "manifest.json").exists()), home.runtimes)


def unneeded(home: Home, pointer: Pointer | None) -> tuple[Path, ...]:
    """Return the generations that are neither current nor kept for a way back."""
    kept = {pointer.generation, pointer.previous} if pointer is not None else set()
    return tuple(folder for folder in generations.folders(home) if folder.name not in kept)


def remove(candidates: Iterable[Path], within: Path) -> tuple[tuple[str, ...], tuple[Deferred, ...]]:
    """Remove folders; return the names of those that are gone, and those that a process still uses."""
    removed: list[str] = []
    left: list[Deferred] = []
    for folder in candidates:
        users = users_of(folder)
        if users:
            left.append(Deferred(folder, space.used_by(folder), users[0]))
            continue
        # Without its manifest a half-removed folder is seen as unfinished, not as a generation to return to.
        touch.forget_file(folder / "manifest.json", within=within)
        touch.remove_tree(folder, within=within)
        removed.append(folder.name)
    return tuple(removed), tuple(left)


def users_of(folder: Path) -> tuple[int, ...]:
    """Return the processes that have files below `folder` mapped; empty where the system does not tell (not Linux)."""
    prefix = os.fsencode(folder) + b"/"
    return tuple(pid for pid in _processes() if prefix in _maps(pid))


def _processes() -> Iterator[int]:
    with contextlib.suppress(OSError):
        for name in os.listdir("/proc"):  # noqa: PTH208 - names only
            if name.isdecimal() and int(name) != os.getpid():
                yield int(name)


def _maps(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/maps").read_bytes()
    except OSError:
        return b""
