"""Takes distributions out of an environment and puts staged ones in, as `judging.py` has found that it may.

What leaves is renamed out of its place and what comes into it, on the same disk, so that the moment in which an
environment holds neither the old build nor the new one is as short as that.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from imprint import access, touch
from imprint.runtime.distributions import claims
from imprint.runtime.distributions.claims import Ground, Skipped
from imprint.runtime.foreign import leftovers
from imprint.touch import Fence

INSTALLER = "INSTALLER"
"""The file of a dist-info that installers write last; without it the installation is known to be unfinished."""


@dataclass(frozen=True, slots=True)
class Coming:
    """A staged distribution: where each of its files is now, by the place it goes to; INSTALLER apart, it comes last.

    Files that somebody who stays has already, with the same content, are not among them.
    """

    name: str
    is_build: bool
    files: Mapping[str, Path] = field(default_factory=dict, repr=False)
    last: Mapping[str, Path] = field(default_factory=dict, repr=False)

    @property
    def places(self) -> frozenset[str]:
        """Every place that it takes."""
        return frozenset({*self.files, *self.last})


@dataclass(frozen=True, slots=True)
class Going:
    """An installed distribution that leaves: its own files, its dist-info, and its own files in that, RECORD last."""

    name: str
    is_build: bool
    files: tuple[str, ...]
    info: Path
    metadata: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Change:
    """What is done to an environment, judged. `skipped` are rows of leaving distributions that are not their own.

    `trash` is a folder of ours on the same disk: what leaves is renamed into it, which takes no time and works where a
    file is in use, and is deleted with it once the change is done. `moved` and `made` are what was renamed and which
    folders were made so far, for `undo`.
    """

    ground: Ground
    coming: tuple[Coming, ...]
    going: tuple[Going, ...]
    skipped: tuple[Skipped, ...] = ()
    trash: Path = field(kw_only=True)
    moved: list[tuple[Path, Path]] = field(default_factory=list, kw_only=True, repr=False, compare=False)
    made: list[Path] = field(default_factory=list, kw_only=True, repr=False, compare=False)
    fence: Fence = field(kw_only=True, repr=False, compare=False)

    @property
    def paths(self) -> tuple[str, ...]:
        """Every file in the folder of packages that comes or goes, metadata aside, relative to it."""
        places = {place for found in self.going for place in found.files}
        places.update(place for found in self.coming for place in found.places)
        inside = (self.ground.relative(place) for place in places if self.ground.is_package_file(place))
        return tuple(sorted(path for path in inside if ".dist-info/" not in path))


def put_in(change: Change, coming: Coming, replaced: Iterable[Going]) -> None:
    """Put one staged distribution in, in place of those it replaces.

    Whatever stops this, the metadata that is there then says that the installation is unfinished.
    """
    replaced = tuple(replaced)
    for found in replaced:
        _unfinish(change, found)
    # The metadata first: from then on every file is claimed.
    for place in sorted(coming.files, key=lambda each: (".dist-info" not in each, each)):
        _land(change, coming.files[place], Path(place))
    for found in replaced:
        take_out(change, found)
    for place, source in coming.last.items():
        _land(change, source, Path(place))


def take_out(change: Change, found: Going) -> None:
    """Remove a distribution's own files, then its metadata, except where something that came has taken their place."""
    taken = {place for coming in change.coming for place in coming.places}
    info = change.ground.place(found.info.name) or ""
    if not any(place.startswith(info + os.sep) for place in taken):
        _unfinish(change, found)
    discard(change, [place for place in found.files if place not in taken])
    # RECORD last: as long as anything is there, it says whose that is.
    for place in found.metadata:
        if place not in taken:
            _discard(change, Path(place))
    for folder, _, _ in os.walk(found.info, topdown=False):
        touch.remove_empty(Path(folder), within=change.fence)


def _unfinish(change: Change, found: Going) -> None:
    """Let the metadata of a distribution say that its installation is not finished."""
    place = change.ground.place(f"{found.info.name}/{INSTALLER}")
    if place in found.metadata:
        _discard(change, Path(place))


def discard(change: Change, places: Sequence[str]) -> None:
    """Remove files of the environment with what was compiled from them, then the folders that they have left empty."""
    for place in places:
        _discard(change, Path(place))
        for compiled in claims.compiled_of(place):
            _discard(change, compiled)
    inside = {Path(place).parent for place in places if not change.ground.is_script(place)}
    leftovers.remove_empty_folders(change.ground, inside)


def undo(change: Change) -> None:
    """Put everything back that was renamed, last first. Raises OSError where the system refuses; the rest stays."""
    while change.moved:
        source, target = change.moved[-1]
        if os.path.lexists(target):
            touch.make_folder(source.parent, within=change.fence)
            touch.move(target, source, within=change.fence)
        change.moved.pop()
    for folder in reversed(change.made):
        touch.remove_empty(folder, within=change.fence)


def _land(change: Change, source: Path, place: Path) -> None:
    if not access.is_folder(place.parent):
        missing = [folder for folder in (place.parent, *place.parent.parents) if not os.path.lexists(folder)]
        change.made.extend(reversed(missing))
        touch.make_folder(place.parent, within=change.fence)
    # Renaming over a file makes some file systems write the new one to disk first (ext4: 1 ms for each of hundreds).
    _discard(change, place)
    _move(change, source, place)


def _discard(change: Change, path: Path) -> None:
    if os.path.lexists(path):
        _move(change, path, change.trash / os.urandom(8).hex())


def _move(change: Change, source: Path, target: Path) -> None:
    # Noted before: what was not moved after all is not there to be put back.
    change.moved.append((source, target))
    touch.move(source, target, within=change.fence)
