"""Finds and removes files that no installed distribution claims, in folders that are known to be a build's alone.

Also keeps and puts back the owner's files that an uninstall takes along. Nothing is ever written into a file that is
there: it may be a hard link to the installer's cache.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from imprint.runtime.metadata import Held, is_vendor, recorded_files

RUNTIME_FOLDER = "onnxruntime"
_CUDA_SUFFIX = re.compile(r"-cu\d+$")
_COMPILED = re.compile(r"(?P<stem>.+?)\.[\w-]+(?:\.opt-\d)?\.pyc")


def folders_of(name: str) -> tuple[str, ...]:
    """Return the folders, relative to the folder of packages, in which a wheel of ours has its files.

    NVIDIA's wheels for CUDA 13 share `nvidia/cu13`; those for older ones, and cuDNN, have a folder each (read from
    the wheels on 2026-11-29).
    """
    if not is_vendor(name):
        return (RUNTIME_FOLDER,) if name == "onnxruntime" or name.startswith("onnxruntime-") else ()
    part = _CUDA_SUFFIX.sub("", name).removeprefix("nvidia-").replace("-", "_")
    return (f"nvidia/{part}",) if _CUDA_SUFFIX.search(name) else ("nvidia/cu13",)


def unclaimed(packages: Path, folders: Iterable[str]) -> tuple[str, ...]:
    """Return the files below `folders` that no RECORD names, as relative paths; compiled files go with their source."""
    claimed = claimed_files(packages)
    return tuple(path for folder in folders for path in _files(packages, folder) if not _is_claimed(path, claimed))


def is_within(packages: Path, path: str) -> bool:
    """Whether a recorded path stays in the folder of packages: relative, no `..`, through no link that leads out."""
    parts = Path(path).parts
    if not parts or Path(path).is_absolute() or ".." in parts:
        return False
    return (packages / path).parent.resolve().is_relative_to(packages.resolve())


def claimed_files(packages: Path) -> frozenset[str]:
    """Return every path that a RECORD in `packages` names."""
    found: set[str] = set()
    for info in packages.glob("*.dist-info"):
        found.update(recorded_files(info))
    return frozenset(found)


def remove_unclaimed(packages: Path, folders: Iterable[str], paths: Collection[str] = ()) -> int:
    """Remove the unclaimed files below `folders` and those of `paths`, then folders left empty; return how many.

    A damaged or hostile RECORD may have named anything in `paths`: what leaves the folder of packages is not touched.
    """
    claimed = claimed_files(packages)
    known = [path for path in paths if is_within(packages, path)]
    going = {path for path in known if not _is_claimed(path, claimed) and os.path.lexists(packages / path)}
    going.update(unclaimed(packages, folders))
    for path in sorted(going):
        with contextlib.suppress(IsADirectoryError, FileNotFoundError):
            (packages / path).unlink()
    for top in sorted({Path(path).parts[0] for path in {*going, *folders}}):
        remove_empty_folders(packages / top)
    return len(going)


def remove_metadata(packages: Path, touched: Sequence[Held]) -> None:
    """Remove dist-info folders that the installer left, those without a RECORD for example."""
    for found in touched:
        if found.folder is not None and found.folder.parent == packages:
            shutil.rmtree(found.folder, ignore_errors=True)


def remove_empty_folders(top: Path) -> None:
    """Remove `top` and the folders below it as far as they hold no file; a folder of compiled files alone is empty."""
    if top.is_symlink():
        return  # what it leads to is somebody else's
    for folder, _, _ in os.walk(top, topdown=False):
        path = Path(folder)
        if path.name == "__pycache__":
            for compiled in path.glob("*.pyc"):
                source = _source_of(compiled.name)
                if source is not None and not (path.parent / source).exists():
                    compiled.unlink()
        with contextlib.suppress(OSError):
            path.rmdir()


def keep(packages: Path, paths: Iterable[str], folder: Path) -> None:
    """Keep a copy of each file below `folder`, as a hard link where the disk allows one."""
    for path in paths:
        source, copy = packages / path, folder / path
        if not is_within(packages, path) or not source.is_file():
            continue
        copy.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            copy.unlink()
        try:
            os.link(source, copy)
        except OSError:
            shutil.copy2(source, copy)


def put_back(packages: Path, folder: Path) -> int:
    """Put back every kept file that is gone and still belongs to a distribution; return how many."""
    if not folder.is_dir():
        return 0
    claimed = claimed_files(packages)
    count = 0
    for path in _files(folder, "."):
        target = packages / path
        if target.exists() or path not in claimed:
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f".{target.name}.imprint-tmp")
        shutil.copy2(folder / path, temporary)
        temporary.replace(target)
        count += 1
    return count


def _files(packages: Path, folder: str) -> Iterator[str]:
    if not (packages / folder).resolve().is_relative_to(packages.resolve()):
        return
    for found, _, names in os.walk(packages / folder):
        relative = Path(found).relative_to(packages)
        for name in names:
            yield (relative / name).as_posix()


def _is_claimed(path: str, claimed: Collection[str]) -> bool:
    if path in claimed:
        return True
    parts = Path(path)
    if parts.suffix != ".pyc" or parts.parent.name != "__pycache__":
        return False
    source = _source_of(parts.name)
    return source is not None and (parts.parent.parent / source).as_posix() in claimed


def _source_of(compiled: str) -> str | None:
    found = _COMPILED.fullmatch(compiled)
    return f"{found['stem']}.py" if found else None
