"""Changes the configuration file and keeps what a person wrote around the change. Needs tomlkit and filelock."""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Callable, Iterator, MutableMapping
from pathlib import Path
from typing import Any

import tomlkit
from filelock import FileLock, Timeout
from tomlkit.exceptions import TOMLKitError

from imprint import ownership, touch
from imprint.errors import BusyError, StateError
from imprint.hints import helps
from imprint.paths import Home
from imprint.state import files
from imprint.state.config import flatten, foreign_home, parse_toml, read_file, read_text
from imprint.state.settings import is_key, key_of, parse_text
from imprint.values import Value

_PATIENCE = 30.0
"""Seconds to wait for another writer. A write takes milliseconds, on a busy disk up to a second."""


def change(home: Home, place: Path, edit: Callable[[tomlkit.TOMLDocument], None]) -> None:
    """Read a file of the home's, apply `edit`, replace it in one step; two writers do not lose each other's change.

    The home is proven to be ours first. The file of secrets is readable for its owner alone, another keeps its mode.
    Raises StateError, BusyError, and ImprintError as `mutex.hold` does.
    """
    # A configuration kept elsewhere and linked here stays a link.
    path = Path(os.path.realpath(place))
    try:
        ownership.claim(home)
        touch.make_folder(home.data, within=home.root)
        with _alone(home):
            files.sweep_folder(path.parent, re.compile(rf"\.{re.escape(path.name)}\..{{8}}\.tmp"), within=path.parent)
            text = read_text(path, home.root)
            parse_toml(text, path)
            document = tomlkit.parse(text)
            edit(document)
            changed = tomlkit.dumps(document)
            parse_toml(changed, path)
            mode = 0o600 if place == home.secrets else _mode_of(path)
            touch.write_file(path, changed.encode(), within=path.parent, mode=mode)
    except Timeout:
        raise BusyError("another imprint is changing the configuration", hint=helps("again")) from None
    except TOMLKitError as error:
        raise StateError(f"{path} cannot be changed: {error}", hint=helps("fix-file")) from error
    except OSError as error:
        files.raise_for_write(path, error, home.root)


def _mode_of(path: Path) -> int | None:
    """Return the mode that somebody gave the file, None when there is none."""
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        return None


@contextlib.contextmanager
def _alone(home: Home) -> Iterator[None]:
    """Hold the lock of the configuration for the body. Raises Timeout."""
    lock = home.data / "config.lock"
    # Made here, since the lock itself would follow a link, and would shut out a group that shares the home.
    os.close(touch.open_lock(lock, within=home.root))
    with FileLock(lock, timeout=_PATIENCE, fallback_to_soft=False):
        yield


def put(document: tomlkit.TOMLDocument, name: str, value: Value) -> None:
    """Set `a.b.c` in a document, making tables that are missing. Raises StateError where a value is in the way."""
    *tables, last = name.split(".")
    place: MutableMapping[str, Any] = document
    for table in tables:
        if table not in place:
            place[table] = tomlkit.table()
        inner = place[table]
        if not isinstance(inner, MutableMapping):
            raise StateError(
                f"`{table}` is a value in the configuration, so {name} cannot be set", hint=helps("remove-that-value")
            )
        place = inner
    if isinstance(place.get(last), MutableMapping):
        raise StateError(f"{name} is a table in the configuration, not a value", hint=helps("keys-inside"))
    place[last] = value


def drop(document: MutableMapping[str, Any], name: str) -> None:
    """Remove what `flatten` calls `a.b.c`, however the file splits and quotes that name.

    Tables that become empty stay, they may carry comments.
    """
    for key, value in list(document.items()):
        if isinstance(value, MutableMapping):
            if name.startswith(f"{key}."):
                drop(value, name.removeprefix(f"{key}."))
        elif key == name:
            del document[key]


def set_value(home: Home, name: str, text: str) -> Value:
    """Write one key, keeping comments, order and everything else; return the value written.

    Raises InvalidValueError (key or value), StateError (the file is unreadable or cannot be written; it is then
    unchanged) and BusyError (another writer holds the file).
    """
    key = key_of(name)
    value = parse_text(key, text, None)
    change(home, home.secrets if key.secret else home.config, lambda document: put(document, name, value))
    if key.secret and name in dict(flatten(read_file(home.config, home.root))):
        change(home, home.config, lambda document: drop(document, name))
    return value


def unset_value(home: Home, name: str) -> bool:
    """Remove one key from the file; return whether it was there. Unknown keys may be removed too: that mends the file.

    Raises InvalidValueError for a key that neither exists nor is in the file, StateError and BusyError as `set_value`.
    """
    if (error := foreign_home(home)) is not None:
        raise error
    places = (home.config,) if is_key(name) and not key_of(name).secret else (home.config, home.secrets)
    there = [path for path in places if name in dict(flatten(read_file(path, home.root)))]
    if not there:
        key_of(name)
    for path in there:
        change(home, path, lambda document: drop(document, name))
    return bool(there)
