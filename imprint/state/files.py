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
import re
import stat
from pathlib import Path
from typing import Any, NoReturn

from imprint import access, ownership, touch
from imprint.errors import ImprintError, NoSpaceError, StateError, StateNewerError
from imprint.hints import helps
from imprint.paths import Home
from imprint.state.findings import UNHEARD, Findings

_REST = re.compile(r"\..+\.[0-9a-z_]{8}\.tmp")
_REST_OF_MUTEX = re.compile(r"\.(?:setup\.lock\.holder|\.imprint-home)\.[0-9a-f]{8}\.tmp")
"""Beside the mutex only what its holder writes: the configuration has a lock of its own."""

SIZE_LIMIT = 8 * 1024 * 1024
"""No state file of ours comes near this many bytes; a larger one is foreign and is not read into memory."""


def write_json(path: Path, value: object, *, within: Path, durable: bool = True) -> None:
    """Replace `path` with `value` as JSON so that a reader, or a power cut, sees the old file or the new one.

    `within` is the home, or the folder of ours, that it lies in. Without `durable` a power cut may leave a damaged
    file; that is for notes which are only a convenience. Missing folders are created. Raises NoSpaceError when the
    disk is full and ImprintError (`home-not-writable`) when the folder refuses the write; the old file is then still
    there.
    """
    text = json.dumps(value, indent=2, allow_nan=False) + "\n"
    try:
        touch.write_file(path, text.encode("ascii"), within=within, durable=durable)
    except OSError as error:
        raise_for_write(path, error, within)


def raise_for_write(path: Path, error: OSError, root: Path | None = None) -> NoReturn:
    """Raise the ImprintError that a failed write to `path` amounts to; `root` is the folder of ours it lies in."""
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        raise NoSpaceError(
            f"not enough disk space: more is needed to write `{path}`, {_free(path)} free there",
            hint=helps("free-space"),
        ) from error
    named = error.filename if isinstance(error.filename, str) else None
    if named is not None and not named.endswith(touch.TEMPORARY):
        # What is written beside the file first is not what a person knows; any other file on the way is to be named.
        path = Path(named)
    why, hint = access.explain(error, path, root, writing=True)
    of_the_process = error.errno in {errno.EMFILE, errno.ENFILE, errno.ENOMEM}
    code = access.CODES[error.errno or 0] if of_the_process else "home-not-writable"
    raise ImprintError(f"cannot write `{path}`: {why}", hint=hint, code=code) from error


def _free(path: Path) -> str:
    for folder in path.parents if hasattr(os, "statvfs") else ():
        with contextlib.suppress(OSError):
            found = os.statvfs(folder)
            return f"{found.f_bavail * found.f_frsize} bytes"
    return "an unknown amount is"


def sweep(home: Home) -> None:
    """Remove what killed writers left beside state files. The caller holds the mutex, so no writer of ours is at work.

    Only regular files whose names are those that `touch` gives to what it writes before it takes its place.
    """
    folders = [home.data, *_folders(home.data / "inplace"), *_folders(home.runtimes)]
    for folder, name in [*((folder, _REST) for folder in folders), (home.root, _REST_OF_MUTEX)]:
        sweep_folder(folder, name, within=home.root)


def sweep_folder(folder: Path, name: re.Pattern[str], *, within: Path) -> None:
    """Remove the regular files in `folder` that are named like that, as far as this user may."""
    with contextlib.suppress(OSError):
        for entry in list(os.scandir(folder)):
            if name.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                touch.forget_file(Path(entry.path), within=within)


def _folders(folder: Path) -> list[Path]:
    try:
        return [Path(entry.path) for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []


def read_json(
    path: Path, schema: int = 1, *, within: Path | None = None, findings: Findings = UNHEARD
) -> dict[str, Any] | None:
    """Return the object in `path`, or None when there is none; `within` is the home, if it lies in one.

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
        raise unreadable(path, error, within) from error
    except _DamagedError as error:
        findings.damaged(path, str(error), seen=status)
        return None
    if found > schema:
        raise StateNewerError(
            f"`{path}` was written by a newer version of Imprint (schema {found}; this version reads {schema})",
            hint=helps("newer-imprint"),
        )
    return value


def unreadable(path: Path, error: OSError, root: Path | None = None) -> StateError:
    """Return the error that a failed read of `path` amounts to: nothing is known of what it holds."""
    why, hint = access.explain(error, path, root)
    return StateError(f"cannot read `{path}`: {why}", hint=hint)


def read_state(home: Home, path: Path, findings: Findings = UNHEARD) -> dict[str, Any] | None:
    """Return what `read_json` finds in a state file of the home; nothing counts in another application's folder.

    Raises as `read_json` does.
    """
    error = ownership.foreign(home)
    if error is None:
        return read_json(path, within=home.root, findings=findings)
    findings.unread(home.root, error)
    return None


def read_note(path: Path, *, within: Path, findings: Findings = UNHEARD) -> dict[str, Any] | None:
    """Return what `read_json` finds in what every command can do without; unreadable counts as none and is told.

    Raises StateNewerError as `read_json` does.
    """
    try:
        return read_json(path, within=within, findings=findings)
    except StateNewerError:
        raise
    except StateError as error:
        findings.unread(path, error)
        return None


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
        raise _DamagedError("is too large to be a state file")
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
