"""Says why setup would refuse a home before it changes anything there, as it finds out itself. Nothing is written."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from imprint import ownership
from imprint.errors import ImprintError
from imprint.paths import Home


def refusal(home: Home, needed: int | None, *, managed: bool, model: int = 0) -> ImprintError | None:
    """Return why setup could not work with a home, None where nothing speaks against it.

    `needed` are the bytes that a `managed` runtime takes there, which is also run from there; `model` are those of a
    model that has to come.
    """
    error = ownership.foreign(home) or ownership.unsafe(home, home.root) or _unwritable(home, managed=managed)
    if error is None and managed:
        error = _noexec(home)
    return error or _full(home, needed if managed else None, model)


def require(home: Home, needed: int | None, *, managed: bool) -> None:
    """Raise the error that `refusal` returns."""
    error = refusal(home, needed, managed=managed)
    if error is not None:
        raise error


def nearest(path: Path) -> Path:
    """Return a path, or the nearest folder on the way to it that is there."""
    while not os.path.exists(path) and path != path.parent:  # noqa: PTH110 - pathlib's own raises
        path = path.parent
    return path


def _unwritable(home: Home, *, managed: bool) -> ImprintError | None:
    """Return the error of the first place that every setup writes and that this user cannot write."""
    from imprint.state.files import raise_for_write

    for place in (home.mutex, home.data, home.cache, *([home.runtimes] if managed else [])):
        there = nearest(place)
        folder = os.path.isdir(there)  # noqa: PTH112 - as above
        if folder or there == home.mutex:
            if os.access(there, os.W_OK | (os.X_OK if folder else 0)):
                continue
            number = errno.EROFS if _mounted(there, "ST_RDONLY") else errno.EACCES
        else:
            number = errno.ENOTDIR
        # What setup makes first is what it names.
        named = place if os.path.lexists(home.root) else home.root
        try:
            raise_for_write(named, OSError(number, os.strerror(number), os.fspath(named)), home.root)
        except ImprintError as error:
            return error
    return None


def _noexec(home: Home) -> ImprintError | None:
    there = nearest(home.runtimes)
    if not _mounted(there, "ST_NOEXEC"):
        return None
    from imprint.causes.errors import error_of

    return error_of("noexec-disk", f"`{there}` lies on a disk that is mounted noexec", "managed")


def _full(home: Home, needed: int | None, model: int) -> ImprintError | None:
    """Return the error of a disk that is too full. A runtime counts only where no cache may hold some of it."""
    needed = model + (0 if needed is None or os.path.lexists(home.cache) else needed)
    if not needed:
        return None
    from imprint.runtime.installer import space

    free = space.free_at(home.root)
    return space.error(needed, home.root) if free is not None and free < needed else None


def _mounted(path: Path, flag: str) -> bool:
    """Whether the disk of a path is mounted so; False where that cannot be known."""
    try:
        return bool(os.statvfs(path).f_flag & getattr(os, flag, 0))
    except (OSError, AttributeError):
        return False
