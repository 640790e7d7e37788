"""Finds the rests of builds: files that no installed distribution claims, where only a build has files.

Where no build was ever installed such files are their owner's, and so is what no wheel of ours brings.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from imprint import touch
from imprint.runtime.distributions.claims import RUNTIME_FOLDER, Claims, Ground

__all__ = ["RUNTIME_FOLDER", "find", "remove_empty_folders", "unclaimed"]

_BROUGHT = re.compile(
    r".*\.(?:py|pyi|pyc|pyd|so|dll|dylib|lib|a|h|hpp|inc|onnx|pb|json|config|targets)|.*\.so\.[\d.]+"
    r"|py\.typed|LICENSE|License\.txt|Privacy\.md|ThirdPartyNotices\.txt|requirements\.txt",
    re.IGNORECASE,
)
"""Names of what wheels of builds and of NVIDIA's libraries bring (read from the wheels on 2026-11-29)."""


def unclaimed(ground: Ground, folders: Iterable[str], claimed: Claims) -> tuple[str, ...]:
    """Return the files below `folders` that nobody claims and a wheel may have brought, relative to the packages.

    Links are not followed, and neither is a folder that is one.
    """
    found = (path for folder in folders for path in _files(ground, folder))
    return tuple(path for path in sorted(found) if _is_left(ground, path, claimed))


def find(ground: Ground, folders: Iterable[str], paths: Iterable[str], claimed: Claims) -> tuple[str, ...]:
    """Return the places of what `unclaimed` finds, and of those of `paths` that nobody claims.

    `paths` are files that a change of ours has recorded before. What is not a file or a link is left out.
    """
    going = {path for path in paths if _is_file(ground, path) and not claimed.hold(ground.place(path) or "")}
    going.update(unclaimed(ground, folders, claimed))
    return tuple(place for path in sorted(going) if (place := ground.place(path)) is not None)


def remove_empty_folders(ground: Ground, folders: Iterable[Path]) -> None:
    """Remove folders that are empty now, and those above them as far as they are, but never the folder of packages."""
    prefix = Path(os.path.realpath(ground.prefix))
    stay = {prefix, Path(os.path.realpath(ground.packages))}
    for folder in sorted(folders, key=lambda path: -len(path.parts)):
        current = folder
        while current not in stay and prefix in current.parents:
            touch.remove_empty(current / "__pycache__", within=prefix)
            if not touch.remove_empty(current, within=prefix):
                break
            current = current.parent


def _is_left(ground: Ground, path: str, claimed: Claims) -> bool:
    place = ground.place(path)
    return (
        place is not None
        and _BROUGHT.fullmatch(Path(path).name) is not None
        and _is_file(ground, path)
        and not claimed.hold(place)
    )


def _is_file(ground: Ground, path: str) -> bool:
    place = ground.place(path)
    if place is None or not ground.is_package_file(place):
        return False
    return os.path.isfile(place) or os.path.islink(place)  # noqa: PTH113, PTH114 - thousands of them


def _files(ground: Ground, folder: str) -> Iterator[str]:
    top = ground.packages / folder
    place = ground.place(folder)
    if place is None or not ground.is_package_file(place) or top.is_symlink():
        return
    for found, _, names in os.walk(top):
        relative = Path(found).relative_to(ground.packages)
        for name in names:
            yield (relative / name).as_posix()
