"""Judges what a change of an environment would touch, before anything is done.

A file that would be written through a link, outside, or over one that nobody claims is a refusal that names it. What is
only known of wheels, before they are here, is judged in the same way. Nothing is written.
"""

from __future__ import annotations

import functools
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from imprint import access
from imprint.errors import ImprintError, IntegrityError, NotOursError
from imprint.hints import helps
from imprint.runtime.distributions import claims, own_metadata
from imprint.runtime.distributions.claims import NAMESPACES, Claims, Ground, Skipped, mode_of
from imprint.runtime.distributions.metadata import InstalledDistribution
from imprint.runtime.distributions.records import hash_is
from imprint.runtime.foreign import leftovers
from imprint.runtime.foreign.contents import Brought, Calls, calls_of
from imprint.runtime.foreign.placing import INSTALLER, Change, Coming, Going
from imprint.touch import Fence


def judge(  # noqa: PLR0913 - all but the first four are keywords
    ground: Ground,
    held: Sequence[InstalledDistribution],
    uninstall: Iterable[str],
    staged: Sequence[tuple[InstalledDistribution, Path]],
    *,
    trash: Path,
    left: Iterable[str] = (),
) -> Change:
    """Return what uninstalling by name and putting in what is `staged` amounts to.

    `staged` are distributions with the folder of packages that each lies in; `trash` is where what leaves goes; `left`
    are paths that an interrupted run of ours recorded. Raises NotOursError and ImprintError (`shared-files`) when
    something would be written that is somebody else's.
    """
    judged = _Judge(ground, held, frozenset({*uninstall, *(found.name for found, _ in staged)}), tuple(left))
    kept = {found.folder.name for found, _ in staged if found.folder is not None}
    skipped = [row for one in judged.going for row in one.not_own]
    going = []
    for found, own in ((one.found, one.own) for one in judged.going):
        if found.folder is not None:
            contents = own_metadata.contents_of(found, judged.theirs, ground)
            if found.folder.name not in kept:
                own_metadata.require_own(found, contents, ground)
            going.append(Going(found.name, found.is_build, own, found.folder, contents.own))
    coming = tuple(judged.coming(found, packages) for found, packages in staged)
    # What another that leaves has as its own, or what comes takes over, is not left alone.
    settled = {place for each in going for place in each.files} | {place for each in coming for place in each.places}
    skipped = [row for row in skipped if ground.place(row.path) not in settled]
    return Change(ground, coming, tuple(going), tuple(skipped), trash=trash, fence=Fence(ground.prefix))


def foresee(
    ground: Ground,
    held: Sequence[InstalledDistribution],
    uninstall: Iterable[str],
    coming: Sequence[Brought],
    *,
    left: Iterable[str] = (),
) -> None:
    """Raise as `judge` would where what is known of wheels that are not here yet is enough to tell."""
    judged = _Judge(ground, held, frozenset({*uninstall, *(each.found.name for each in coming)}), tuple(left))
    for each in coming:
        judged.foresee(each)


@dataclass(frozen=True, slots=True)
class _Leaving:
    """An installed distribution that leaves, the places that are its own, and the rows that are not."""

    found: InstalledDistribution
    own: tuple[str, ...]
    not_own: tuple[Skipped, ...]


@dataclass
class _Judge:
    """Everything that the destinations of staged files are judged by, each found when it is asked for.

    `held` is all that is installed; what has one of `names` leaves, or comes anew. `left` is as in `judge`.
    """

    ground: Ground
    held: Sequence[InstalledDistribution]
    names: frozenset[str]
    left: tuple[str, ...]
    taken: set[str] = field(default_factory=set)

    @functools.cached_property
    def leaving(self) -> tuple[InstalledDistribution, ...]:
        return claims.by_name(self.held, self.names)[0]

    @functools.cached_property
    def staying(self) -> tuple[InstalledDistribution, ...]:
        return claims.by_name(self.held, self.names)[1]

    @functools.cached_property
    def ours(self) -> Claims:
        return claims.claims_of(self.leaving, self.ground)

    @functools.cached_property
    def theirs(self) -> Claims:
        return claims.claims_of(self.staying, self.ground)

    @functools.cached_property
    def going(self) -> list[_Leaving]:
        return [_Leaving(found, *claims.own_files(found, self.theirs, self.ground)) for found in self.leaving]

    @functools.cached_property
    def replaceable(self) -> frozenset[str]:
        """The places that may be written over: those of what leaves, and rests of builds.

        With a build there, or with a change of ours unfinished, unclaimed files of builds are rests of one.
        """
        folders = {folder for found in self.leaving for folder in claims.folders_of(found.name)}
        if any(found.is_build for found in self.held):
            folders.add(claims.RUNTIME_FOLDER)
        rests = {*leftovers.unclaimed(self.ground, folders, Claims.of(())), *self.left}
        own = (place for one in self.going if one.found.folder is not None for place in one.own)
        return frozenset({*own, *(place for place in map(self.ground.place, rests) if place is not None)})

    def coming(self, found: InstalledDistribution, packages: Path) -> Coming:
        files: dict[str, Path] = {}
        last: dict[str, Path] = {}
        for recorded, digest in found.files.items():
            source = Path(os.path.normpath(packages / recorded))
            place = self.ground.place(os.path.normpath(recorded))
            if place is None or not stat.S_ISREG(mode_of(os.fspath(source)) or 0):
                raise IntegrityError(f"`{found.name}` {found.version} is not what the lock pins: `{recorded}`")
            self._require_free_way(found, recorded, place)
            # Wheels of one family share files such as `nvidia/__init__.py`, which are staged once.
            calls = calls_of(source) if self.ground.is_script(place) else ()
            if place not in self.taken and self._is_free(found, place, digest, calls):
                (last if source.name == INSTALLER else files)[place] = source
                self.taken.add(place)
        self._require_free_folders(found)
        return Coming(found.name, found.is_build, files, last)

    def foresee(self, brought: Brought) -> None:
        found = brought.found
        for recorded, digest in found.files.items():
            place = self.ground.place(os.path.normpath(recorded))
            if place is not None:
                self._require_free_way(found, recorded, place)
                calls = brought.scripts.get(recorded, ())
                # Of a file without a digest nobody can tell whether the same one is there.
                if digest or (calls and not _starts(Path(place), calls)):
                    self._is_free(found, place, digest, calls)
        self._require_free_folders(found)

    def _require_free_way(self, found: InstalledDistribution, recorded: str, place: str) -> None:
        """Refuse a destination outside, or one that a link is on the way to."""
        if self.ground.is_script(place):
            return
        path = Path(os.path.normpath(self.ground.packages / recorded))
        tops = {self.ground.packages: self.ground.packages, self.ground.prefix / claims.DATA: self.ground.prefix}
        folder = next((tops[top] for top in tops if path.is_relative_to(top)), None)
        if folder is None:
            raise NotOursError(
                f"installing `{found.name}` would write `{place}`, which lies outside the environment",
                hint=helps("another-environment"),
            )
        for part in path.relative_to(folder).parts[:-1]:
            folder /= part
            mode = mode_of(os.fspath(folder))
            if mode is None:
                raise _unclaimed(found, folder)
            if stat.S_ISLNK(mode):
                raise _through(found, folder)
            if mode and not stat.S_ISDIR(mode):
                raise _unclaimed(found, folder)

    def _is_free(self, found: InstalledDistribution, place: str, digest: str, calls: Calls) -> bool:
        """Whether a destination may be written; False when the same file is there. Raises for somebody else's.

        `calls` are what a script starts.
        """
        mode = mode_of(place)
        if mode == 0:
            return True
        if mode is None or stat.S_ISDIR(mode):
            raise _unclaimed(found, Path(place))
        if self.theirs.hold(place):
            if digest and stat.S_ISREG(mode) and hash_is(Path(place), digest):
                return False
            raise _shared(found, self.ground.relative(place), self._holder(place))
        if place in self.replaceable or self._is_own_metadata(found, place):
            return True
        if digest and stat.S_ISREG(mode) and hash_is(Path(place), digest):
            return True
        if calls and _starts(Path(place), calls):
            return True
        raise _unclaimed(found, Path(place))

    def _is_own_metadata(self, found: InstalledDistribution, place: str) -> bool:
        folder = self.ground.place(found.folder.name) if found.folder is not None else None
        return folder is not None and self.ours.hold_folder(folder) and place.startswith(folder + os.sep)

    def _holder(self, place: str) -> str:
        for found in self.staying:
            if claims.claims_of((found,), self.ground).hold(place):
                return f"`{found.name}` {found.version or ''}".strip()
        return "a package"

    def _require_free_folders(self, found: InstalledDistribution) -> None:
        """Refuse to put a package into a folder of that name which is full of files that nobody claims."""
        for top in sorted(found.package_folders - NAMESPACES):
            folder = self.ground.packages / top
            if not access.is_folder(folder) or (top == claims.RUNTIME_FOLDER and self._has_rests(folder)):
                continue
            first = None
            for path in sorted(_files_below(folder)):
                place = self.ground.place(path.relative_to(self.ground.packages).as_posix()) or ""
                if self.ours.hold(place) or self.theirs.hold(place) or place in self.replaceable:
                    first = None
                    break
                first = first or (path if path.suffix != ".pyc" else None)
            if first is not None:
                raise _unclaimed(found, first)

    def _has_rests(self, folder: Path) -> bool:
        place = self.ground.place(folder.name)
        return any(known.startswith(f"{place}{os.sep}") for known in self.replaceable)


def _starts(script: Path, calls: Calls) -> bool:
    """Whether a script is an installer's and starts those functions, whoever installed it."""
    return not script.is_symlink() and calls_of(script) == calls


def _files_below(folder: Path) -> Iterator[Path]:
    for found, folders, names in os.walk(folder):
        yield from (Path(found, name) for name in names)
        yield from (Path(found, name) for name in folders if Path(found, name).is_symlink())


def _through(found: InstalledDistribution, link: Path) -> NotOursError:
    return NotOursError(
        f"`{link}` is a link to `{os.path.realpath(link)}`, and installing `{found.name}` would write through it",
        hint=helps("remove-the-link"),
    )


def _unclaimed(found: InstalledDistribution, path: Path) -> NotOursError:
    return NotOursError(
        f"`{path}` does not belong to any installed package, and installing `{found.name}` would overwrite it",
        hint=helps("move-away-or-another-environment"),
    )


def _shared(found: InstalledDistribution, path: str, holder: str) -> ImprintError:
    return ImprintError(
        f"`{found.name}` {found.version} and {holder}, which has to stay, both contain `{path}`",
        hint=helps("another-environment"),
        code="shared-files",
    )
