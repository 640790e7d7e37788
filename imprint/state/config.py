"""The configuration that holds for one run: command line over environment over file over default, each with its source.

Reading uses the standard library alone (the plumbing entry points do it too); tomlkit, which keeps comments and order,
is imported only inside the two functions that write. A file that is not TOML is reported and never touched. Secrets lie
in a file of their own, which few commands need: where it cannot be read, only those that ask for a secret fail.
"""

from __future__ import annotations

import os
import re
import stat
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from imprint import envvars
from imprint.errors import ImprintError, InvalidValueError, StateError
from imprint.hints import helps
from imprint.paths import Home
from imprint.quoting import typed
from imprint.state.settings import (
    KEYS,
    LLM_PREFIX,
    Key,
    is_key,
    key_of,
    parse_stored,
    parse_text,
    variables_of,
)
from imprint.values import Record, Value
from imprint.words import AskedDevice, Origin

_LONGEST = 1 << 20
"""A configuration larger than this (bytes) is no configuration."""


class Setting(Record):
    """The value of one key and where it came from.

    `source` is the option, the variable or the file's path, None for a default.
    """

    key: str
    value: Value | None
    default: Value | None
    origin: Origin
    source: str | None = None


class Config(Record):
    """Every key that is known or set, in listing order.

    `exposed` names the secrets that the configuration file holds, where others may read them; `locked` is why the file
    of secrets could not be read, None when it could or is not there. `foreign` is why the home is another
    application's, whose configuration is not read.
    """

    settings: Mapping[str, Setting]
    exposed: tuple[str, ...] = ()
    locked: StateError | None = None
    foreign: ImprintError | None = None

    def get(self, key: str) -> Setting:
        """Return the setting of a key.

        Raises InvalidValueError for one that does not exist, StateError for a secret in a file that cannot be read.
        """
        known = key_of(key)
        setting = self.settings.get(known.name, Setting(known.name, known.default, known.default, "default"))
        if known.secret and setting.origin == "default" and self.locked is not None:
            raise self.locked
        return setting

    def text(self, key: str) -> str:
        """Return a key's value as text; a key without one is a mistake of the caller."""
        return str(self.get(key).value)

    @property
    def device(self) -> AskedDevice:
        """What embeddings are asked to run on."""
        return cast("AskedDevice", self.text("model.device"))


def load(home: Home, environ: Mapping[str, str], flags: Mapping[str, str]) -> Config:
    """Return the configuration of one run; `flags` maps keys to what was given as options.

    Raises StateError (the file is no TOML or cannot be read), InvalidValueError (an unknown key or a bad value, with
    the option, variable or file that holds it).
    """
    foreign = foreign_home(home)
    stored = {name: (value, home.config) for name, value in _configured(home, ours=foreign is None).items()}
    exposed = tuple(name for name in stored if key_of_file(name, home.config).secret)
    locked = None
    if foreign is None:
        try:
            hidden = flatten(read_file(home.secrets, home.root))
            stored |= {_secret_in(name, home.secrets): (value, home.secrets) for name, value in hidden}
        except StateError as error:
            locked = error
    names = list(KEYS)
    names += sorted({key_of_file(name, path).name for name, (_, path) in stored.items()} - set(names))
    names += sorted({key_of(flag).name for flag in flags} - set(names))
    names += sorted(set(_llm_keys(environ)) - set(names))
    return Config({name: _resolve(key_of(name), stored, environ, flags) for name in names}, exposed, locked, foreign)


def _configured(home: Home, *, ours: bool) -> dict[str, Any]:
    """Return what the configuration file sets; in another application's folder only if it sets nothing but our keys."""
    try:
        found = dict(flatten(read_file(home.config, home.root)))
    except StateError:
        if ours:
            raise
        return {}
    return found if ours or all(map(is_key, found)) else {}


def foreign_home(home: Home) -> ImprintError | None:
    """Return why the home's folder is not ours; what asks is loaded only for one that is there without our mark."""
    if os.path.lexists(home.marker) or not os.path.lexists(home.root):
        return None
    from imprint import ownership

    return ownership.foreign(home)


def _secret_in(name: str, path: Path) -> str:
    """Return the name of a key in the file of secrets. Raises InvalidValueError for one that does not belong there."""
    if not key_of_file(name, path).secret:
        raise InvalidValueError(f"{path}: {name} is not a secret", hint=helps("move-line-to-config"))
    return name


def key_of_file(name: str, path: Path) -> Key:
    """Return the key a file names. Raises InvalidValueError that names the file."""
    try:
        return key_of(name)
    except InvalidValueError as error:
        command = typed("imprint", "config", "unset", *(["--"] if name.startswith("-") else []), name)
        hint = helps("or-remove-the-key", hint=error.hint or "", command=command)
        raise InvalidValueError(f"{path}: {error.message}", hint=hint) from None


def _resolve(
    key: Key, stored: Mapping[str, tuple[Any, Path]], environ: Mapping[str, str], flags: Mapping[str, str]
) -> Setting:
    if key.name in flags:
        option = "--model" if key.name == "model.name" else f"--{key.name.rpartition('.')[2].replace('_', '-')}"
        return Setting(key.name, parse_text(key, flags[key.name], option), key.default, "flag", option)
    variable = variable_in(key.name, environ)
    if variable is not None:
        return Setting(key.name, parse_text(key, environ[variable], variable), key.default, "env", variable)
    if key.name in stored:
        value, path = stored[key.name]
        return Setting(key.name, parse_stored(key, value, str(path)), key.default, "file", str(path))
    return Setting(key.name, key.default, key.default, "default")


def variable_in(name: str, environ: Mapping[str, str]) -> str | None:
    """Return the environment variable that sets a key here; an empty one sets nothing.

    Raises InvalidValueError where the short and the long name hold different values.
    """
    given = [variable for variable in variables_of(name) if environ.get(variable)]
    if len({environ[variable] for variable in given}) > 1:
        both = " and ".join(given)
        raise InvalidValueError(f"{both} set {name} to different values", hint=helps("unset-one", both=both))
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


def read_file(path: Path, root: Path) -> dict[str, Any]:
    """Return the parsed configuration file, `{}` when there is none. Raises StateError; changes nothing."""
    return parse_toml(read_text(path, root), path)


def read_text(path: Path, root: Path) -> str:
    """Return the file's text, empty when there is none. Raises StateError where it cannot be read as UTF-8.

    `root` is the home, for what helps where the system refuses it.
    """
    try:
        # A FIFO without a writer would block a plain open for ever.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise StateError(f"{path} is not a regular file", hint=helps("move-away"))
            with open(descriptor, "rb", closefd=False) as file:
                raw = file.read(_LONGEST + 1)
        finally:
            os.close(descriptor)
    except FileNotFoundError:
        return ""
    except OSError as error:
        from imprint import access

        why, hint = access.explain(error, path, root)
        raise StateError(f"cannot read `{path}`: {why}", hint=hint) from error
    if len(raw) > _LONGEST:
        raise StateError(f"{path} is larger than 1 MiB, too large for a configuration", hint=helps("shorten"))
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise StateError(f"{path} is not UTF-8 (line {line})", hint=helps("save-as-utf8")) from None


def parse_toml(text: str, path: Path) -> dict[str, Any]:
    """Return the document. Raises StateError that names file and line."""
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        detail = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise StateError(f"{path} is not valid TOML: {detail}", hint=helps("fix-line")) from None
