"""Removes generations that nothing needs, and what the cache holds for them alone. The caller holds the mutex.

Only our own cache is ever touched, never by force and never for long: what is busy waits for the next run.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterable
from pathlib import Path

from imprint import access
from imprint.errors import BusyError, ImprintError
from imprint.ownership import TOOL_ENVIRONMENT
from imprint.paths import Home
from imprint.runtime import target
from imprint.runtime.checkpoint import reached
from imprint.runtime.distributions import inventory
from imprint.runtime.foreign import journal
from imprint.runtime.installer import space
from imprint.runtime.installer.uv import Uv
from imprint.runtime.managed import deferred, generations
from imprint.runtime.managed.deferred import Deferred, Waiting
from imprint.runtime.managed.removal import remove, unneeded
from imprint.runtime.target import Manifest, Pointer
from imprint.values import Record


class Pruned(Record):
    """What pruning did: the ids it removed, what waits, and the bytes that became free on the disk.

    `waiting` are packages that the cache could not drop now; the next run tries again.
    """

    removed: tuple[str, ...] = ()
    deferred: tuple[Deferred, ...] = ()
    freed: int = 0
    waiting: tuple[str, ...] = ()


def is_due(home: Home, pointer: Pointer | None) -> bool:
    """Whether there is anything to prune although nothing changed: a deferred deletion, or rests of a killed run."""
    return bool(unneeded(home, pointer)) or (os.path.lexists(deferred.path_of(home)) and deferred.read(home).is_due)


def prune(home: Home, uv: Uv, *, keep_previous: bool = True, known: Iterable[str] = ()) -> Pruned:
    """Decide about the generation before the current one, remove the rest, and clean the cache of what only they used.

    The one before is kept when `keep_previous` and it adds less than `generations.KEEP_BELOW` bytes. `known` names
    further distributions that the cache need not hold when no target uses them. What is kept for another try stays.
    """
    before = space.free_at(home.root)
    pointer = target.read_pointer(home)
    wanted = _wanted(home, pointer, keep_previous=keep_previous)
    if wanted is not None and wanted != pointer:
        target.write_pointer(home, wanted)
    going, noted = _going(home, wanted), deferred.read(home)
    unused = _unused(home, noted, going, known)
    if unused:
        # Before the first folder goes: its manifest, which names what the cache holds for it, goes with it.
        deferred.write(home, Waiting((), unused, noted.kept))
    reached("prune-noted")
    removed, left = remove(going, home.runtimes)
    reached("prune-removed")
    used = _used(home)
    # What a record names that this Imprint cannot read has to stay in the cache, until one can.
    unknown = unused if used is None else frozenset()
    unused = unused - used if used is not None else frozenset()
    waiting = _clean(uv, unused)
    reached("prune-cleaned")
    deferred.write(home, Waiting(left, unknown.union(waiting), noted.kept))
    after = space.free_at(home.root)
    freed = max(0, after - before) if before is not None and after is not None and (removed or unused) else 0
    return Pruned(removed, left, freed, waiting)


class Freeable(Record):
    """The bytes that pruning would free now: in generations, and in the cache alone.

    `kept` are those of the cache that it keeps for another try of a GPU, until somebody prunes.
    """

    generations: int = 0
    cache: int = 0
    kept: int = 0


def freeable(home: Home, *, known: Iterable[str] = ()) -> Freeable:
    """Return what `prune` would free, decided as it decides; nothing is changed."""
    going = _going(home, _wanted(home, target.read_pointer(home), keep_previous=True))
    others = tuple(folder for folder in generations.folders(home) if folder not in going)
    used, noted = _used(home, without=going), deferred.read_only(home)
    unused = _unused(home, noted, going, known) - used if used is not None else frozenset()
    kept = noted.kept - used if used is not None else frozenset()
    return Freeable(
        sum(space.added_by(folder, others) for folder in going),
        _alone(home.cache, unused),
        _alone(home.cache, kept | unused) - _alone(home.cache, unused),
    )


def _alone(cache: Path, names: frozenset[str]) -> int:
    """Return the bytes of packages in the cache that are in no runtime: of their files that have no second link."""
    folders = archives_of(cache, names)
    return sum(one.st_size for folder in folders for one in inventory.tree_files(folder) if one.st_nlink == 1)


def archives_of(cache: Path, names: Collection[str]) -> tuple[Path, ...]:
    """Return the unpacked wheels of some packages in a cache of uv's, and those that nothing in it leads to.

    The layout is uv's own (0.5 to 0.11): `wheels-v*/…/NAME/` holds links into `archive-v*`. Where it is another, none.
    """
    linked: dict[Path, set[str]] = {}
    for bucket in cache.glob("wheels-v*"):
        for folder, names_in, files_in in os.walk(bucket):
            for one in (Path(folder, name) for name in (*names_in, *files_in)):
                if one.is_symlink():
                    linked.setdefault(Path(os.path.realpath(one)), set()).add(Path(folder).name)
    if not linked:
        return ()
    archives = (Path(os.path.realpath(one)) for one in cache.glob("archive-v*/*"))
    return tuple(one for one in archives if linked.get(one, set()) <= frozenset(names))


def remove_tools(home: Home, own: Path) -> tuple[str, ...]:
    """Remove the tool environments that launchers with other locks built, and return their names.

    `own` is the environment that runs this. Unless it is one of them nothing goes: a checkout may start any of them.
    """
    if own.parent != home.tool:
        return ()
    named = (folder for folder in home.tool.glob("env-*") if TOOL_ENVIRONMENT.fullmatch(folder.name))
    others = (folder for folder in named if folder != own and not folder.is_symlink())
    removed, _ = remove(sorted(filter(access.is_folder, others)), home.tool)
    return removed


def _wanted(home: Home, pointer: Pointer | None, *, keep_previous: bool) -> Pointer | None:
    """Return the pointer as pruning leaves it: the generation before is kept where it costs little."""
    if pointer is None or pointer.previous is None or (keep_previous and _is_small(home, pointer)):
        return pointer
    return Pointer(pointer.generation, pointer.since, None)


def _going(home: Home, pointer: Pointer | None) -> tuple[Path, ...]:
    # Without a pointer nothing is known to be unneeded: one of them is what `setup` will point to.
    return unneeded(home, pointer) if pointer is not None else ()


def _unused(home: Home, noted: Waiting, going: Iterable[Path], known: Iterable[str]) -> frozenset[str]:
    return frozenset(noted.names.union(known, *(_names(home, folder) for folder in going)) - noted.kept)


def _is_small(home: Home, pointer: Pointer) -> bool:
    if pointer.previous is None:
        return False
    current = target.generation_folder(home, pointer.generation)
    return space.added_by(target.generation_folder(home, pointer.previous), (current,)) < generations.KEEP_BELOW


def _used(home: Home, without: Collection[Path] = ()) -> frozenset[str] | None:
    """Return the distributions that something still uses: a generation, an environment that we changed, ourselves.

    The generations `without` do not count.
    None where a receipt cannot tell, because a newer Imprint wrote it or this user may not read it.
    """
    # A run that has nothing to prune, which is nearly every one, need not load what reads locks.
    from imprint.runtime.distributions.shipped import read_shipped

    found = set(read_shipped().elsewhere)
    for folder in generations.folders(home):
        found.update(_names(home, folder) if folder not in without else ())
    theirs = journal.installed_by_us(home)
    return None if theirs is None else frozenset(found | theirs)


def _names(home: Home, folder: Path) -> tuple[str, ...]:
    manifest: Manifest | None = target.read_manifest(home, folder.name)
    return tuple(manifest.distributions) if manifest is not None else ()


def _clean(uv: Uv, names: Collection[str]) -> tuple[str, ...]:
    """Drop packages from the cache, then what nothing reaches any more; return those that have to wait.

    The cache is only a convenience: one that is busy or damaged must not fail a run that did its work.
    """
    waiting: list[str] = []
    try:
        if names:
            uv.clean(sorted(names))
    except BusyError:
        # Somebody works with the cache; each further call would wait for them just as long.
        return tuple(sorted(names))
    except ImprintError:
        # One package that cannot be removed must not keep the others.
        for name in sorted(names):
            try:
                uv.clean([name])
            except ImprintError:
                waiting.append(name)
    with contextlib.suppress(ImprintError):
        uv.prune()
    return tuple(waiting)
