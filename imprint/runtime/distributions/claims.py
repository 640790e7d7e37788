"""Says whose a path of an environment is: who claims it, and which rows of a RECORD are a distribution's own files.

A RECORD is what somebody wrote. A row counts by where it really leads, links and `..` followed and the last part
not, so that two spellings of one file are one, and one that leads out of the environment is nobody's.
"""

from __future__ import annotations

import glob
import os
import re
import stat
import sys
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from imprint.runtime.distributions.metadata import InstalledDistribution, is_vendor
from imprint.runtime.distributions.records import hash_is

RUNTIME_FOLDER = "onnxruntime"
DATA = "share"
NAMESPACES = frozenset({"nvidia", "google"})
"""Folders that distributions of different owners share."""

_CUDA_SUFFIX = re.compile(r"-cu\d+$")

OUTSIDE = "it is outside the environment"
FOLDER = "it is a folder"
SPECIAL = "it is not a regular file"
OTHERS = "another package also contains it"
CHANGED = "it is not the file that was installed"
UNPROVED = "it is not known to belong to the package"


@dataclass(frozen=True, slots=True)
class Skipped:
    """A row of a RECORD that is not removed with its distribution, and why, as the end of a sentence."""

    name: str
    path: str
    why: str


@dataclass(frozen=True, slots=True)
class Ground:
    """An environment, its folders of packages and of scripts, and where the paths in its RECORDs really lead."""

    prefix: Path
    packages: Path
    scripts: Path
    _parents: dict[str, str] = field(default_factory=dict, repr=False, compare=False)

    def place(self, recorded: str) -> str | None:
        """Return where a recorded path really is, its last part not followed; None when it can be no file."""
        if "\0" in recorded:
            return None
        parent, name = os.path.split(os.path.join(self.packages, recorded))  # noqa: PTH118 - thousands of them
        if name in {"", ".", ".."}:
            return None
        real = self._parents.get(parent)
        if real is None:
            try:
                real = os.path.realpath(parent)
            except (OSError, ValueError):
                return None
            self._parents[parent] = real
        return os.path.join(real, name)  # noqa: PTH118 - as above

    def is_package_file(self, place: str) -> bool:
        """Whether a place lies in the folder of packages."""
        return place.startswith(self._real(self.packages) + os.sep)

    def is_folder_inside(self, recorded: str) -> bool:
        """Whether a recorded path, written as one of a folder, leads to a folder inside the environment."""
        if "\0" in recorded:
            return False
        real = os.path.realpath(os.path.join(self.packages, recorded))  # noqa: PTH118 - as above
        return os.path.isdir(real) and f"{real}{os.sep}".startswith(self._real(self.prefix) + os.sep)  # noqa: PTH112

    def is_script(self, place: str) -> bool:
        """Whether a place lies right in the folder of scripts."""
        return os.path.dirname(place) == self._real(self.scripts)  # noqa: PTH120 - as above

    def is_data(self, place: str) -> bool:
        """Whether a place lies in `share`, where some wheels have manual pages."""
        return place.startswith(os.path.join(self._real(self.prefix), DATA, ""))  # noqa: PTH118 - as above

    def relative(self, place: str) -> str:
        """Return a place as a path relative to the folder of packages, with `/`."""
        return Path(os.path.relpath(place, self._real(self.packages))).as_posix()

    def _real(self, folder: Path) -> str:
        key = f"{folder}{os.sep}."
        found = self._parents.get(key)
        if found is None:
            found = self._parents[key] = os.path.realpath(folder)
        return found


def ground_of(prefix: Path, packages: Path) -> Ground:
    """Return the ground of the environment at `prefix`."""
    return Ground(prefix, packages, prefix / ("Scripts" if sys.platform == "win32" else "bin"))


@dataclass(frozen=True, slots=True)
class Claims:
    """What some distributions say is theirs: single places, and folders with all below them."""

    _places: frozenset[str]
    _folders: frozenset[str] = frozenset()

    @classmethod
    def of(cls, places: Iterable[str], folders: Iterable[str] = ()) -> Claims:
        """Return the claims on these."""
        return cls(frozenset(map(_key, places)), frozenset(map(_key, folders)))

    def hold_folder(self, place: str) -> bool:
        """Whether a whole folder is claimed."""
        return _key(place) in self._folders

    def hold(self, place: str) -> bool:
        """Whether a place is claimed; a compiled file goes with its source."""
        above = _key(place)
        if above in self._places or source_of(above) in self._places:
            return True
        while above and above not in self._folders and os.path.dirname(above) != above:  # noqa: PTH120 - thousands
            above = os.path.dirname(above)  # noqa: PTH120 - as above
        return above in self._folders


def _key(place: str) -> str:
    """Return the form in which a place is compared: disks that were copied from others spell names differently."""
    return place.casefold() if place.isascii() else unicodedata.normalize("NFC", place).casefold()


def claims_of(held: Iterable[InstalledDistribution], ground: Ground) -> Claims:
    """Return what distributions claim.

    One whose RECORD cannot be read, or is not whole, claims what is near it besides: the modules it is named after, the
    folders in which it names files, and its metadata.
    """
    places: set[str] = set()
    folders: set[str] = set()
    for found in held:
        spelled = {spelling for recorded in found.files for spelling in _spellings(recorded)}
        named = {place for place in map(ground.place, spelled) if place is not None}
        places |= named
        near = [found.folder.name] if found.folder is not None else []
        if not _is_whole(found, ground):
            near += _modules_of(found)
            near += _folders_near(spelled)
        folders.update(place for place in map(ground.place, near) if place is not None)
    return Claims.of(places, folders)


_SHARED = frozenset({"", "onnxruntime", "onnxruntime/capi", *NAMESPACES})
"""Folders that nobody claims whole for naming a file in them; neither is what lies outside or is of all of CUDA 13."""


def _folders_near(paths: Iterable[str]) -> list[str]:
    folders = {Path(os.path.normpath(path)).parent.as_posix() for path in paths} - _SHARED
    return [folder for folder in folders if not folder.startswith(("..", "/", "nvidia/cu13")) and folder != "."]


def _spellings(recorded: str) -> Iterator[str]:
    """Yield a row's path, and what it may mean where somebody rewrote the RECORD by hand or with another program."""
    yield recorded
    if recorded[-1:] in "/. \n\"'" or recorded[:1] in " \"'" or "\\" in recorded or ";" in recorded or "\t" in recorded:
        plain = re.split(r"[;\t]", recorded)[0].strip(" \r\n\"'").replace("\\", "/")
        yield os.path.normpath(plain) if plain else recorded


def _is_whole(found: InstalledDistribution, ground: Ground) -> bool:
    """Whether a RECORD can be believed to name all: it is text, names itself, and all that it names is there."""
    if not any(path.endswith(".dist-info/RECORD") for path in found.files):
        return False
    places = (ground.place(path) if path.isprintable() else None for path in found.files)
    return all(place is not None and mode_of(place) for place in places)


def folders_of(name: str) -> tuple[str, ...]:
    """Return the folders, relative to the folder of packages, in which a wheel of ours has its files.

    NVIDIA's wheels for CUDA 13 share `nvidia/cu13`; those for older ones, and cuDNN, have a folder each (read from
    the wheels on 2026-11-29).
    """
    if not is_vendor(name):
        return (RUNTIME_FOLDER,) if name == "onnxruntime" or name.startswith("onnxruntime-") else ()
    part = _CUDA_SUFFIX.sub("", name).removeprefix("nvidia-").replace("-", "_")
    return (f"nvidia/{part}",) if _CUDA_SUFFIX.search(name) else ("nvidia/cu13",)


def _modules_of(found: InstalledDistribution) -> list[str]:
    """Return where a distribution without a RECORD has its modules, as far as its name and its metadata tell."""
    if is_vendor(found.name):
        return [folder for folder in folders_of(found.name) if folder != "nvidia/cu13"]
    stem = found.name.replace("-", "_")
    tops = [top for top in found.tops if top not in NAMESPACES]
    return [path for top in {stem, *tops} for path in (top, f"{top}.py")]


def own_files(
    found: InstalledDistribution, staying: Claims, ground: Ground
) -> tuple[tuple[str, ...], tuple[Skipped, ...]]:
    """Return the places that go with a distribution, and the rows that stay because they are not its own.

    A row is its own when it names a regular file or a link in the folder of packages, or its own script or manual page,
    and nobody who stays claims it. Its metadata folder is not among them. Rows of files that are gone are neither.
    """
    own: list[str] = []
    skipped: list[Skipped] = []
    info = ground.place(found.folder.name) if found.folder is not None else None
    proved = {_top_of(path) for path, digest in found.files.items() if digest}
    for recorded, digest in found.files.items():
        place = ground.place(recorded)
        mode = mode_of(place) if place is not None else None
        if place is None or mode is None or not (ground.is_package_file(place) or _is_beside(place, ground)):
            folder = place is None and ground.is_folder_inside(recorded)
            skipped.append(Skipped(found.name, recorded, FOLDER if folder else OUTSIDE))
            continue
        if mode == 0 or (info is not None and place.startswith(info + os.sep)):
            continue
        if why := _why_not(place, mode, digest, ground):
            skipped.append(Skipped(found.name, recorded, why))
        elif staying.hold(place):
            # Installers record a hash: what they recorded twice is shared, and nothing to speak of.
            skipped += [] if digest else [Skipped(found.name, recorded, OTHERS)]
        elif not digest and _top_of(recorded) not in proved:
            # Whoever wrote the row did not see the file.
            skipped.append(Skipped(found.name, recorded, UNPROVED))
        else:
            own.append(place)
    return tuple(own), tuple(skipped)


def _is_beside(place: str, ground: Ground) -> bool:
    """Whether a wheel may have put it there, though it lies beside the folder of packages."""
    return ground.is_script(place) or ground.is_data(place)


def _why_not(place: str, mode: int, digest: str, ground: Ground) -> str | None:
    if stat.S_ISDIR(mode):
        return FOLDER
    if not (stat.S_ISREG(mode) or stat.S_ISLNK(mode)):
        return SPECIAL
    if _is_beside(place, ground) and not (stat.S_ISREG(mode) and digest and hash_is(Path(place), digest)):
        return CHANGED
    return None


def mode_of(place: str) -> int | None:
    """Return the mode of what is there, itself not followed: 0 for nothing, None when that cannot be known."""
    try:
        return os.lstat(place).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return 0
    except (OSError, ValueError):
        return None


def _top_of(recorded: str) -> str:
    return Path(os.path.normpath(recorded)).parts[0]


def source_of(place: str) -> str | None:
    """Return the source of a compiled file (`a/__pycache__/b.cpython-311.pyc` is of `a/b.py`); None for others."""
    folder, name = os.path.split(place)
    parent, cache = os.path.split(folder)
    if cache != "__pycache__" or not name.endswith(".pyc"):
        return None
    stem = name.removesuffix(".pyc")
    for optimised in (".opt-1", ".opt-2"):
        stem = stem.removesuffix(optimised)
    stem, dot, _ = stem.rpartition(".")
    return os.path.join(parent, f"{stem}.py") if dot else None  # noqa: PTH118 - as above


def compiled_of(place: str) -> Iterator[Path]:
    """Yield the compiled files of a source."""
    path = Path(place)
    if path.suffix == ".py":
        for compiled in path.parent.joinpath("__pycache__").glob(f"{glob.escape(path.stem)}.*.pyc"):
            if source_of(os.fspath(compiled)) == place:
                yield compiled


def by_name(
    held: Sequence[InstalledDistribution], names: Collection[str]
) -> tuple[tuple[InstalledDistribution, ...], tuple[InstalledDistribution, ...]]:
    """Return those with one of `names` that a wheel installed, and the others."""
    going: list[InstalledDistribution] = []
    staying: list[InstalledDistribution] = []
    for found in held:
        (going if found.name in names and found.origin == "wheel" else staying).append(found)
    return tuple(going), tuple(staying)
