"""Errors whose hint comes from the catalogue: causes outside an environment, as any command may meet them."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from imprint import access
from imprint.access import owner_of
from imprint.causes.catalogue import as_one, catalogue, remedies_for
from imprint.causes.circumstances import here
from imprint.errors import ImprintError
from imprint.paths import find_home
from imprint.quoting import quoted


def error_of(code: str, message: str, *traits: str, **words: str) -> ImprintError:
    """Return the error of a cause, with the remedies that fit this process."""
    circumstances = here(os.environ, traits=traits).with_(**words)
    return ImprintError(message, hint=as_one(remedies_for(code, circumstances)), code=code)


def outside_error(error: BaseException) -> ImprintError | None:
    """Return what an exception that nobody expected amounts to, where the surroundings are its cause; else None."""
    if isinstance(error, OSError) and error.errno == errno.EAGAIN:
        return error_of("process-limit", f"the system does not allow another process or thread: {error.strerror}")
    if isinstance(error, OSError) and error.errno in {errno.EMFILE, errno.ENFILE, errno.ENOMEM}:
        return access.error_of(OSError(error.errno, error.strerror))
    if isinstance(error, PermissionError) and error.filename is not None and not isinstance(error.filename, int):
        return blocked_error(os.fsdecode(error.filename))
    if isinstance(error, RuntimeError) and "can't start new thread" in str(error):
        return error_of("process-limit", "the system does not allow another thread")
    if isinstance(error, ImportError) and (name := (error.name or "").partition(".")[0]) in catalogue().headers:
        headers = f"`{catalogue().headers[name]}`"
        return error_of("python-module-missing", f"this Python has no module {name}", headers=headers)
    return None


def blocked_error(path: str) -> ImprintError | None:
    """Return the error of a file that this user cannot reach, or run, None where nothing of that is seen."""
    folder = blocked_by(path)
    if folder is not None:
        return denied_error(path, folder)
    if hasattr(os, "ST_NOEXEC") and os.path.exists(path):  # noqa: PTH110 - as everything here
        try:
            flags = os.statvfs(os.path.realpath(path)).f_flag
        except OSError:
            return None
        if flags & os.ST_NOEXEC:
            return error_of("noexec-disk", f"`{path}` lies on a disk that is mounted noexec", whose(path))
    return None


def denied_file(path: str, *, execute: bool = False) -> ImprintError | None:
    """Return the error of a file that is there and may not be read, or executed; None where it may, or is not there."""
    real = os.path.realpath(path)
    if not os.path.isfile(real) or os.access(real, os.X_OK if execute else os.R_OK):  # noqa: PTH113 - as above
        return None
    if execute:
        return error_of("file-denied", f"this user may not execute `{path}`", program=quoted(real))
    return error_of("file-denied", f"this user may not read `{path}`", folder=quoted(os.path.dirname(real)))  # noqa: PTH120


def whose(path: str | os.PathLike[str]) -> str:
    """Return the trait of what lies at a path: Imprint's own, or somebody's environment."""
    try:
        return "managed" if Path(path).is_relative_to(find_home(os.environ).root) else "named"
    except ImprintError:
        return "named"


def denied_error(path: str, folder: str) -> ImprintError:
    """Return the error of a path behind a folder that this user may not enter."""
    message = f"`{path}` cannot be reached: this user may not open `{folder}`"
    return error_of("folder-denied", message, folder=quoted(folder), owner=owner_of(os.stat(folder)))  # noqa: PTH116


def blocked_by(path: str) -> str | None:
    """Return the folder on the way to a path, links followed, that this process may not enter; None without one."""
    path = os.path.abspath(path)  # noqa: PTH100 - links are followed one by one
    for _ in range(40):
        folders = []
        folder = os.path.dirname(path)  # noqa: PTH120
        while folder not in folders:
            folders.append(folder)
            folder = os.path.dirname(folder)  # noqa: PTH120
        for one in reversed(folders):
            if os.path.isdir(one) and not os.access(one, os.X_OK):  # noqa: PTH112
                return one
        try:
            path = os.path.normpath(os.path.join(os.path.dirname(path), os.readlink(path)))  # noqa: PTH115, PTH118, PTH120
        except OSError:
            return None
    return None
