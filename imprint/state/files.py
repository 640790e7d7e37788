"""Reads and writes the state files under the home: one JSON object each, atomic, versioned, never a traceback.

Reading changes nothing by itself. A file that is damaged or foreign is reported, and set aside by those who may; one
that cannot be read, or that a newer Imprint wrote, is left untouched and refused. What the objects mean is decided by
the modules that call this one.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NoReturn

from imprint.errors import ImprintError, NoSpaceError, StateError, StateNewerError
from imprint.state.findings import Findings

SIZE_LIMIT = 8 * 1024 * 1024
"""No state file of ours comes near this many bytes; a larger one is foreign and is not read into memory."""


def write_json(path: Path, value: object, *, durable: bool = True) -> None:
    """Replace `path` with `value` as JSON so that a reader, or a power cut, sees the old file or the new one.

    Without `durable` a power cut may leave a damaged file; that is for notes which are only a convenience. Missing
    folders are created. Raises NoSpaceError when the disk is full and ImprintError
    (`home-not-writable`) when the folder refuses the write; the old file is then still there.
    """
    text = json.dumps(value, indent=2, allow_nan=False) + "\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _replace(path, text.encode("ascii"), durable=durable)
    except OSError as error:
        raise_for_write(path, error)


def raise_for_write(path: Path, error: OSError) -> NoReturn:
    """Raise the ImprintError that a failed write to `path` amounts to."""
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        raise NoSpaceError(
            f"not enough disk space: more is needed to write `{path}`, {_free(path)} free there",
            hint="free some space on that disk, then run the command again",
        ) from error
    raise ImprintError(
        f"cannot write `{path}`: {error.strerror or error}",
        hint="make the folder writable, or set IMPRINT_HOME to one that is",
        code="home-not-writable",
    ) from error


def _free(path: Path) -> str:
    for folder in path.parents if hasattr(os, "statvfs") else ():
        with contextlib.suppress(OSError):
            found = os.statvfs(folder)
            return f"{found.f_bavail * found.f_frsize} bytes"
    return "an unknown amount is"


def _replace(path: Path, content: bytes, *, durable: bool) -> None:
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        _rename_over(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)  # noqa: PTH108 - the bare name is what mkstemp returned
        raise
    if durable:
        fsync_folder(path.parent)


def _rename_over(source: str, target: Path) -> None:
    # On Windows a virus scanner or a reader without delete sharing refuses the replacement for a moment.
    for pause in (0.02, 0.1, 0.5) if sys.platform == "win32" else ():
        try:
            os.replace(source, target)  # noqa: PTH105 - tests fake os to see the order of calls
        except PermissionError:
            time.sleep(pause)
        else:
            return
    os.replace(source, target)  # noqa: PTH105 - as above


def sweep(folder: Path) -> None:
    """Remove what killed writers left in `folder`. The caller holds the mutex, so no writer of ours is at work."""
    with contextlib.suppress(OSError):
        for path in folder.glob(".*.tmp"):
            with contextlib.suppress(OSError):
                path.unlink()


def fsync_folder(folder: Path) -> None:
    """Make renames in `folder` survive a power cut, where the system can (not on Windows)."""
    if sys.platform == "win32":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some network and overlay file systems cannot sync a folder; the rename itself is still atomic.
        if error.errno not in {errno.EINVAL, errno.ENOTSUP}:
            raise
    finally:
        os.close(descriptor)


def read_json(path: Path, schema: int = 1, *, findings: Findings | None = None) -> dict[str, Any] | None:
    """Return the object in `path`, or None when there is none.

    A damaged or foreign file (not a regular file, too large, not UTF-8 JSON, no object, no integer `schema`) counts
    as none and is told to `findings`, which set it aside where this run may. Raises StateError when the system does
    not let us read the file, since it may be whole, and StateNewerError when its schema is above `schema`.
    """
    try:
        status = path.lstat()
        value, found = _parse(_content(path))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise unreadable(path, error) from error
    except _DamagedError as error:
        if findings is not None:
            findings.damaged(path, str(error), seen=status)
        return None
    if found > schema:
        raise StateNewerError(
            f"`{path}` was written by a newer Imprint (schema {found}, this one knows {schema})",
            hint="use the newer Imprint, or move the file away yourself",
        )
    return value


def unreadable(path: Path, error: OSError) -> StateError:
    """Return the error that a failed read of `path` amounts to: nothing is known of what it holds."""
    return StateError(f"cannot read `{path}`: {error.strerror or error}", hint="check its permissions")


class _DamagedError(Exception):
    """The file's content cannot be used; the message continues the sentence that begins with its path."""


def _content(path: Path) -> bytes:
    try:
        # A FIFO without a writer would block a plain open for ever.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except FileNotFoundError:
        if path.is_symlink():
            raise _DamagedError("is a link to a file that is not there") from None
        raise
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise _DamagedError("is not a regular file")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            content = file.read(SIZE_LIMIT + 1)
    finally:
        os.close(descriptor)
    if len(content) > SIZE_LIMIT:
        raise _DamagedError("is far too large for a state file")
    return content


def _parse(content: bytes) -> tuple[dict[str, Any], int]:
    """Return the object and its schema."""
    try:
        value = json.loads(content.decode("utf-8"), parse_constant=_no_constant, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise _DamagedError(f"is not valid JSON ({str(error)[:80]})") from error
    if not isinstance(value, dict):
        raise _DamagedError("does not hold a JSON object")
    schema = value.get("schema")
    if not isinstance(schema, int) or isinstance(schema, bool) or schema < 1:
        raise _DamagedError("has no integer `schema`")
    return value, schema


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a key appears twice")
    return value
