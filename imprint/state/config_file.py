"""Changes the configuration file and keeps what a person wrote around the change. Needs tomlkit and filelock."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, MutableMapping
from pathlib import Path
from typing import Any

import tomlkit
from filelock import FileLock, Timeout
from tomlkit.exceptions import TOMLKitError

from imprint.errors import BusyError, StateError
from imprint.paths import Home
from imprint.state.config import parse_toml, read_text
from imprint.state.files import fsync_folder, raise_for_write
from imprint.state.settings import Value

_PATIENCE = 10.0
"""Seconds to wait for another writer; a write takes milliseconds."""


def change(home: Home, edit: Callable[[tomlkit.TOMLDocument], None]) -> None:
    """Read the file, apply `edit`, replace it in one step; two writers do not lose each other's change."""
    # A configuration kept elsewhere and linked here stays a link.
    path = Path(os.path.realpath(home.config))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        home.data.mkdir(parents=True, exist_ok=True)
        with FileLock(home.data / "config.lock", timeout=_PATIENCE, fallback_to_soft=False):
            text = read_text(path)
            parse_toml(text, path)
            document = tomlkit.parse(text)
            edit(document)
            changed = tomlkit.dumps(document)
            parse_toml(changed, path)
            replace_text(path, changed)
    except Timeout:
        raise BusyError("another imprint is changing the configuration", hint="try again") from None
    except TOMLKitError as error:
        raise StateError(f"{path} cannot be changed: {error}", hint="mend the file; it was left as it is") from error
    except OSError as error:
        raise_for_write(path, error)


def replace_text(path: Path, text: str) -> None:
    """Replace a file's content in one step, keeping its mode; a reader sees the old or the new text, never half."""
    number, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    temporary = Path(name)
    try:
        with open(number, "w", encoding="utf-8", newline="") as file:  # noqa: PTH123 - a descriptor, not a path
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileNotFoundError):
            temporary.chmod(path.stat().st_mode & 0o7777)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    fsync_folder(path.parent)


def put(document: tomlkit.TOMLDocument, name: str, value: Value) -> None:
    """Set `a.b.c` in a document, making tables that are missing. Raises StateError where a value is in the way."""
    *tables, last = name.split(".")
    place: MutableMapping[str, Any] = document
    for table in tables:
        if table not in place:
            place[table] = tomlkit.table()
        inner = place[table]
        if not isinstance(inner, MutableMapping):
            raise StateError(f"`{table}` is a value in the configuration, so {name} has no place", hint="remove it")
        place = inner
    if isinstance(place.get(last), MutableMapping):
        raise StateError(f"{name} is a table in the configuration, not a value", hint="set one of the keys inside it")
    place[last] = value


def drop(document: tomlkit.TOMLDocument, name: str) -> None:
    """Remove `a.b.c` from a document that has it; tables that become empty stay, they may carry comments.

    Raises StateError where a name in the file holds a dot itself, so that the path does not lead to it.
    """
    *tables, last = name.split(".")
    place: MutableMapping[str, Any] = document
    try:
        for table in tables:
            place = place[table]
        del place[last]
    except (KeyError, TypeError):
        raise StateError(f"{name} is written with quotes in the configuration", hint="remove it by hand") from None
