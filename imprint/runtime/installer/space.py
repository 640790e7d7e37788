"""Disk space: how much is free, how much a tree takes, and the one error that says it is not enough."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from imprint import touch
from imprint.errors import NoSpaceError
from imprint.hints import helps
from imprint.runtime.distributions.inventory import tree_files
from imprint.sizes import in_units


def free_at(path: Path) -> int | None:
    """Return the bytes this user may still write on the disk of `path` (or of its nearest parent), None if unknown."""
    for folder in (path, *path.parents):
        try:
            return shutil.disk_usage(folder).free
        except FileNotFoundError:
            continue
        except OSError:
            return None
    return None


def require(needed: int, where: Path) -> None:
    """Raise NoSpaceError when fewer than `needed` bytes are free at `where`; unknown counts as enough."""
    free = free_at(where)
    if free is not None and free < needed:
        raise error(needed, where)


def error(needed: int | None, where: Path) -> NoSpaceError:
    """Return the error that says needed, free and where."""
    free = free_at(where)
    wanted = f"about {in_units(needed)} needed" if needed is not None else "more is needed"
    return NoSpaceError(
        f"not enough disk space: {wanted}, {in_units(free)} free, at `{os.fspath(where)}`",
        hint=helps("free-space"),
    )


_TRIAL = ".link-"


def can_link(source: Path, target: Path) -> bool:
    """Whether a file below `source` can have a second name below `target`; both folders are made when missing."""
    for folder in (source, target):
        touch.make_folder(folder, within=folder)
    name = f"{_TRIAL}{os.urandom(8).hex()}"
    os.close(touch.create_file(source / name, within=source))
    try:
        touch.link_file(source / name, target / name, within=target)
    except OSError:
        return False
    finally:
        for folder in (source, target):
            touch.remove_file(folder / name, within=folder)
    return True


def remove_trials(*folders: Path) -> None:
    """Remove what `can_link` left in these folders when it was killed."""
    for folder in folders:
        for path in folder.glob(f"{_TRIAL}*"):
            touch.forget_file(path, within=folder)


def used_by(folder: Path) -> int:
    """Return the sum of the sizes of all files below `folder`, in bytes."""
    return sum(status.st_size for status in tree_files(folder))


def added_by(folder: Path, others: tuple[Path, ...]) -> int:
    """Return the bytes that `folder` takes beyond the files it shares, as hard links, with `others`."""
    shared = {(status.st_dev, status.st_ino) for other in others for status in tree_files(other)}
    return sum(status.st_size for status in tree_files(folder) if (status.st_dev, status.st_ino) not in shared)
