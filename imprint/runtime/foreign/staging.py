"""Unpacks what will be installed into somebody's environment: beside it on the same disk, as copies of its own.

The folder lies where renaming into the folder of packages is possible: in the environment, or in that folder where it
is a disk of its own. It has a mark by which a later run knows what a killed one left. Nothing in it is a hard link to
our cache: what an owner does to files of their own never reaches ours.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from imprint import access, touch

PREFIX = ".imprint-staged-"
MARK = "made-by-imprint"


@contextlib.contextmanager
def folder_for(prefix: Path, packages: Path) -> Iterator[Path]:
    """Make a folder of ours in the environment at `prefix` for its `packages`, and remove it after the body."""
    same = prefix.stat().st_dev == packages.stat().st_dev
    folder = touch.new_folder(PREFIX, within=prefix if same else packages)
    try:
        touch.write_file(folder / MARK, b"", within=prefix, durable=False)
        yield folder
    finally:
        touch.remove_tree(folder, within=prefix)


def is_left(prefix: Path, packages: Path) -> bool:
    """Whether a killed run left what it had unpacked."""
    return any(access.is_file(folder / MARK) for folder in _folders(prefix, packages))


def sweep(prefix: Path, packages: Path) -> None:
    """Remove what killed runs left in the environment at `prefix`: folders with our mark, and empty ones."""
    for folder in _folders(prefix, packages):
        if folder.is_symlink() or not access.is_folder(folder):
            continue
        if access.is_file(folder / MARK):
            touch.remove_tree(folder, within=prefix)
        else:
            touch.remove_empty(folder, within=prefix)


def _folders(prefix: Path, packages: Path) -> list[Path]:
    return sorted({*prefix.glob(f"{PREFIX}*"), *packages.glob(f"{PREFIX}*")})
