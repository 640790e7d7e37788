"""Unpacks what will be installed into somebody's environment: beside it on the same disk, as copies of its own.

The folder lies in the environment, where renaming is possible, and has a mark by which a later run knows what a killed
one left. Nothing in it is a hard link to our cache: what an owner does to files of their own never reaches ours.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from imprint import access, touch

PREFIX = ".imprint-staged-"
MARK = "made-by-imprint"


@contextlib.contextmanager
def folder_in(prefix: Path) -> Iterator[Path]:
    """Make a folder of ours in the environment at `prefix`, and remove it after the body."""
    folder = touch.new_folder(PREFIX, within=prefix)
    try:
        touch.write_file(folder / MARK, b"", within=prefix, durable=False)
        yield folder
    finally:
        touch.remove_tree(folder, within=prefix)


def sweep(prefix: Path) -> None:
    """Remove what killed runs left in the environment at `prefix`: folders with our mark, and empty ones."""
    for folder in sorted(prefix.glob(f"{PREFIX}*")):
        if folder.is_symlink() or not access.is_folder(folder):
            continue
        if access.is_file(folder / MARK):
            touch.remove_tree(folder, within=prefix)
        else:
            touch.remove_empty(folder, within=prefix)
