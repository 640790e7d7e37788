"""The configuration that holds for one run: command line over environment over file over default, each with its source.

Reading uses the standard library alone (the plumbing entry points do it too); tomlkit, which keeps comments and order,
is imported only inside the two functions that write. A file that is not TOML is reported and never touched.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from imprint import envvars
from imprint.errors import InvalidValueError, StateError
from imprint.paths import Home
from imprint.state.settings import (
    KEYS,
    LLM_PREFIX,
    Key,
    Value,
    key_of,
    parse_stored,
    parse_text,
    variables_of,
)
from imprint.values import Record

_LONGEST = 1 << 20
"""A configuration larger than this (bytes) is no configuration."""


class Setting(Record):
    """The value of one key and where it came from.

    `origin` is flag, env, file or default; `source` is the option, the variable or the file's path, None for a default.
    """

    key: str
    value: Value | None
    default: Value | None
    origin: str
    source: str | None = None


class Config(Record):
    """Every key that is known or set, in listing order."""

    settings: Mapping[str, Setting]

    def get(self, key: str) -> Setting:
        """Return the setting of a key. Raises InvalidValueError for one that does not exist."""
        if key in self.settings:
            return self.settings[key]
        known = key_of(key)
        return Setting(known.name, known.default, known.default, "default")

    def text(self, key: str) -> str:
        """Return a key's value as text; a key without one is a mistake of the caller."""
        return str(self.get(key).value)


def load(home: Home, environ: Mapping[str, str], flags: Mapping[str, str]) -> Config:
    """Return the configuration of one run; `flags` maps keys to what was given as options.

    Raises StateError (the file is no TOML or cannot be read), InvalidValueError (an unknown key or a bad value, with
    the option, variable or file that holds it).
    """
    return merge(read_file(home.config), environ, flags, home.config)


def merge(stored: Mapping[str, Any], environ: Mapping[str, str], flags: Mapping[str, str], path: Path) -> Config:
    """Return the configuration made of a parsed file, the environment and the options. Raises as `load` does."""
    found = dict(flatten(stored))
    names = list(KEYS)
    names += sorted({key_of_file(name, path).name for name in found} - set(names))
    names += sorted({key_of(flag).name for flag in flags} - set(names))
    names += sorted(set(_llm_keys(environ)) - set(names))
    return Config({name: _resolve(key_of(name), found, environ, flags, path) for name in names})


def key_of_file(name: str, path: Path) -> Key:
    """Return the key a file names. Raises InvalidValueError that names the file."""
    try:
        return key_of(name)
    except InvalidValueError as error:
        hint = f"{error.hint} `imprint config unset {name}` removes it"
        raise InvalidValueError(f"{path}: {error.message}", hint=hint) from None


def _resolve(
    key: Key, found: Mapping[str, Any], environ: Mapping[str, str], flags: Mapping[str, str], path: Path
) -> Setting:
    if key.name in flags:
        option = f"--{key.name.rpartition('.')[2].replace('_', '-')}"
        return Setting(key.name, parse_text(key, flags[key.name], option), key.default, "flag", option)
    variable = variable_in(key.name, environ)
    if variable is not None:
        return Setting(key.name, parse_text(key, environ[variable], variable), key.default, "env", variable)
    if key.name in found:
        return Setting(key.name, parse_stored(key, found[key.name], str(path)), key.default, "file", str(path))
    return Setting(key.name, key.default, key.default, "default")


def variable_in(name: str, environ: Mapping[str, str]) -> str | None:
    """Return the environment variable that sets a key here; an empty one sets nothing.

    Raises InvalidValueError where the short and the long name hold different values.
    """
    given = [variable for variable in variables_of(name) if environ.get(variable)]
    if len({environ[variable] for variable in given}) > 1:
        both = " and ".join(given)
        raise InvalidValueError(f"{both} set {name} to different values", hint=f"unset one of {both}")
    return given[0] if given else None


def _llm_keys(environ: Mapping[str, str]) -> Iterator[str]:
    prefix = envvars.name_of_key(LLM_PREFIX)
    for name, value in environ.items():
        if name.startswith(prefix) and re.fullmatch("[A-Z0-9_]+", name[len(prefix) :]) and value:
            yield LLM_PREFIX + name[len(prefix) :].lower()


def flatten(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield `("model.device", "gpu")` for each value of nested tables."""
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from flatten(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def read_file(path: Path) -> dict[str, Any]:
    """Return the parsed configuration file, `{}` when there is none. Raises StateError; changes nothing."""
    return parse_toml(read_text(path), path)


def read_text(path: Path) -> str:
    """Return the file's text, empty when there is none. Raises StateError where it cannot be read as UTF-8."""
    try:
        with path.open("rb") as file:
            raw = file.read(_LONGEST + 1)
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise StateError(f"{path} cannot be read: {error.strerror}", hint="check its permissions") from error
    if len(raw) > _LONGEST:
        raise StateError(f"{path} is larger than 1 MiB, which is no configuration", hint="move it away or mend it")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise StateError(f"{path} is not UTF-8 (line {line})", hint="save it as UTF-8; it was left as it is") from None


def parse_toml(text: str, path: Path) -> dict[str, Any]:
    """Return the document. Raises StateError that names file and line."""
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        detail = "it nests too deeply" if isinstance(error, RecursionError) else str(error)
        raise StateError(
            f"{path} is not valid TOML: {detail}", hint="mend that line; the file was left as it is"
        ) from None


def set_value(home: Home, name: str, text: str) -> Value:
    """Write one key, keeping comments, order and everything else; return the value written.

    Raises InvalidValueError (key or value), StateError (the file is unreadable or cannot be written; it is then
    unchanged) and BusyError (another writer holds the file).
    """
    from imprint.state import config_file

    key = key_of(name)
    value = parse_text(key, text, None)
    config_file.change(home, lambda document: config_file.put(document, name, value))
    return value


def unset_value(home: Home, name: str) -> bool:
    """Remove one key from the file; return whether it was there. Unknown keys may be removed too: that mends the file.

    Raises InvalidValueError for a key that neither exists nor is in the file, StateError and BusyError as `set_value`.
    """
    from imprint.state import config_file

    if name not in dict(flatten(read_file(home.config))):
        key_of(name)
        return False
    config_file.change(home, lambda document: config_file.drop(document, name))
    return True
