"""Removes generations that nothing needs, and what the cache holds for them alone. The caller holds the mutex."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from imprint.errors import ImprintError
from imprint.paths import Home
from imprint.runtime import generations, space, target
from imprint.runtime.target import Manifest, Pointer
from imprint.runtime.uv import Uv


@dataclass(frozen=True, slots=True)
class Deferred:
    """A folder that stays for now because the process `pid` has its files open; `size` in bytes."""

    path: Path
    size: int
    pid: int


@dataclass(frozen=True, slots=True)
class Pruned:
    """What pruning did: the ids it removed, what waits, and the bytes that became free on the disk."""

    removed: tuple[str, ...] = ()
    deferred: tuple[Deferred, ...] = ()
    freed: int = 0


def sweep(home: Home, pointer: Pointer | None, *, unfinished_only: bool = False) -> Pruned:
    """Remove every generation but the current and the one kept for a rollback.

    With `unfinished_only` those with a manifest stay: one of them may be what a killed run had only to point to.
    """
    kept = {pointer.generation, pointer.previous} if pointer is not None else set()
    others = (folder for folder in generations.folders(home) if folder.name not in kept)
    return _remove(tuple(folder for folder in others if not (unfinished_only and (folder / "manifest.json").exists())))


def prune(home: Home, uv: Uv, *, keep_previous: bool = True, unused: Collection[str] = ()) -> Pruned:
    """Decide about the generation before the current one, remove the rest, and clean the cache of what only they used.

    The one before is kept when `keep_previous` and it adds less than `generations.KEEP_BELOW` bytes. `unused` names
    distributions of a generation that is gone already. What cannot be cleaned in time stays for the next run.
    """
    before = space.free_at(home.root)
    pointer = target.read_pointer(home)
    if pointer is None:
        return Pruned()
    if pointer.previous is not None and not (keep_previous and _is_small(home, pointer)):
        pointer = Pointer(pointer.generation, pointer.since, None)
        target.write_pointer(home, pointer)
    manifests = {folder.name: target.read_manifest(home, folder.name) for folder in generations.folders(home)}
    swept = sweep(home, pointer)
    _clean(uv, swept.removed, manifests, unused)
    after = space.free_at(home.root)
    cleaned = bool(swept.removed or unused)
    freed = max(0, after - before) if cleaned and before is not None and after is not None else 0
    return Pruned(swept.removed, swept.deferred, freed)


def users_of(folder: Path) -> tuple[int, ...]:
    """Return the processes that have files below `folder` mapped; empty where the system does not tell (not Linux)."""
    prefix = os.fsencode(folder) + b"/"
    return tuple(pid for pid in _processes() if prefix in _maps(pid))


def _is_small(home: Home, pointer: Pointer) -> bool:
    if pointer.previous is None:
        return False
    current = target.generation_folder(home, pointer.generation)
    return space.added_by(target.generation_folder(home, pointer.previous), (current,)) < generations.KEEP_BELOW


def _remove(candidates: tuple[Path, ...]) -> Pruned:
    removed: list[str] = []
    deferred: list[Deferred] = []
    for folder in candidates:
        users = users_of(folder)
        if users:
            deferred.append(Deferred(folder, space.used_by(folder), users[0]))
            continue
        # Without its manifest a half-removed folder is seen as unfinished, not as a generation to return to.
        with contextlib.suppress(OSError):
            (folder / "manifest.json").unlink()
        shutil.rmtree(folder, ignore_errors=True)
        removed.append(folder.name)
    return Pruned(tuple(removed), tuple(deferred))


def _clean(uv: Uv, removed: tuple[str, ...], manifests: dict[str, Manifest | None], unused: Collection[str]) -> None:
    gone = {*unused, *(name for found in removed for name in _names(manifests.get(found)))}
    used = {name for found, manifest in manifests.items() if found not in removed for name in _names(manifest)}
    # The cache is only a convenience: one that is busy or damaged must not fail a run that did its work.
    with contextlib.suppress(ImprintError):
        if gone - used:
            uv.clean(sorted(gone - used))
    with contextlib.suppress(ImprintError):
        uv.prune()


def _names(manifest: Manifest | None) -> tuple[str, ...]:
    return tuple(manifest.distributions) if manifest is not None else ()


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
