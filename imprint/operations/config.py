"""`config list|get|set|unset|path`: the values that hold, where each comes from, and what a change means here."""

from __future__ import annotations

import os

from imprint.context import Context
from imprint.errors import ImprintError
from imprint.hints import helps
from imprint.planning.model import Choice
from imprint.results import Notice, Result
from imprint.state import config
from imprint.state.config import Config, Setting
from imprint.state.findings import Findings
from imprint.state.settings import CPU_BATCH_TOKENS, GPU_BATCH_TOKENS, KEYS, key_of
from imprint.values import Record, Value, replace
from imprint.words import Origin

HIDDEN = "(set, not shown)"
"""What a list shows in place of a secret."""

PLANNED = ("model.device", "model.gpu_device")
"""The keys whose choices depend on this machine; looking at it is done when one of them is set, never when read."""


class ReportedKey(Record):
    """One key: the value that holds now, what decided it (`source`: the option, variable or file), and its choices."""

    key: str
    value: Value | None
    default: Value | None
    origin: Origin
    source: str | None
    choices: tuple[Choice, ...]


class Keys(Record):
    """What `list` and `get` answer."""

    keys: tuple[ReportedKey, ...]


class SetKey(Record):
    """The key as it holds now, what was written, and how to apply it."""

    keys: tuple[ReportedKey, ...]
    written: Value
    apply: str | None


class UnsetKey(Record):
    """The key as it holds now, none where nobody knows it; `removed`: whether the file named it."""

    keys: tuple[ReportedKey, ...]
    written: None
    apply: str | None
    removed: bool


class ConfigFile(Record):
    """Where the configuration is, or would be."""

    path: str
    exists: bool


def names() -> tuple[str, ...]:
    """Return the names of all keys."""
    return tuple(KEYS)


def is_secret(name: str) -> bool:
    """Whether a key's value is a secret. Raises InvalidValueError for a key that there is not."""
    return key_of(name).secret


def list_keys(context: Context) -> Result[Keys]:
    """Return every key with the value that holds now. Raises what `state.config.load` raises."""
    loaded = _load(context)
    keys = Keys(tuple(_report(context, setting, secrets=False) for setting in loaded.settings.values()))
    return Result(keys, warnings=(*_about(loaded), *([Notice.of(loaded.locked)] if loaded.locked else ())))


def get_key(context: Context, name: str) -> Result[Keys]:
    """Return one key, secrets included. Where it has no value, that is None, and an error says so."""
    loaded = _load(context)
    key = _report(context, loaded.get(name), secrets=True)
    unset = (Notice("unset", f"{name} is not set"),) if key.value is None else ()
    return Result(Keys((key,)), warnings=_about(loaded), errors=unset)


def _about(loaded: Config) -> tuple[Notice, ...]:
    """Return what to say of the files themselves: secrets in the open, and a folder that is not ours."""
    exposed = [
        Notice(
            "secret-exposed",
            f"config.toml holds {name}, which others may be able to read",
            helps("move-secret", key=name),
        )
        for name in loaded.exposed
    ]
    return (*([Notice.of(loaded.foreign)] if loaded.foreign is not None else ()), *exposed)


def config_path(context: Context) -> Result[ConfigFile]:
    """Return where the configuration file is, or would be; one that the system hides does not exist for us."""
    path = str(context.home.config)
    return Result(ConfigFile(path, os.path.exists(path)))  # noqa: PTH110 - pathlib's own raises


def set_key(context: Context, name: str, text: str) -> Result[SetKey]:
    """Write one key; return it with its choices on this machine, what was written and how to apply it.

    Warns where an environment variable overrides what was written. Raises InvalidValueError, StateError, BusyError.
    """
    if name.startswith("model."):
        _check_model(context, name, text)
    from imprint.state import config_file  # what edits TOML is loaded only for an edit

    written = config_file.set_value(context.home, name, text)
    key, apply, warnings = _changed(context, name, written)
    return Result(SetKey((key,), HIDDEN if is_secret(name) else written, apply), warnings)


def _check_model(context: Context, name: str, text: str) -> None:
    """Refuse what the model cannot take here, where it is set, and not at every later embedding."""
    from imprint.embedding.catalogue import load_catalogue

    if name == "model.name":
        load_catalogue().model(text)
    elif name in {"model.file", "model.max_tokens"}:
        try:
            model = load_catalogue().model(_load(context).text("model.name"))
        except ImprintError:
            return  # something else is wrong already, and every other command says what
        if name == "model.file":
            model.check_file(text)
        elif text.isascii() and text.isdigit():
            model.check_tokens(int(text))


def unset_key(context: Context, name: str) -> Result[UnsetKey]:
    """Remove one key from the file; return the value that holds now."""
    from imprint.state import config_file  # as above

    was_there = config_file.unset_value(context.home, name)
    if name not in _known(context):
        return Result(UnsetKey((), None, None, removed=was_there))
    key, apply, warnings = _changed(context, name, None)
    return Result(UnsetKey((key,), None, apply, removed=was_there), warnings)


def _known(context: Context) -> set[str]:
    try:
        return {key_of(name).name for name in _load(context).settings}
    except ImprintError:
        return set()


def _load(context: Context) -> Config:
    return config.load(context.home, context.environ, context.flags)


def _changed(context: Context, name: str, written: Value | None) -> tuple[ReportedKey, str | None, tuple[Notice, ...]]:
    """Return the key after it was written, None when it was removed; how to apply that; and the warnings."""
    try:
        setting = _load(context).get(name)
    except ImprintError as error:
        # The change is made; another key or variable is wrong, which every other command will say too.
        default = key_of(name).default
        setting = Setting(name, written if written is not None else default, default, "file" if written else "default")
        return _report(context, setting, secrets=False), None, (Notice.of(error),)
    warnings: list[Notice] = []
    if setting.origin == "env":
        message = f"{setting.source} is set and overrides what the configuration file says about {name}"
        warnings.append(Notice("shadowed", message, helps("unset-variable", variable=setting.source)))
    key = _report(context, setting, secrets=False)
    apply: str | None = None
    if name in PLANNED:
        from imprint.situation.asked import unused_gpu_device
        from imprint.situation.choices import choices_of  # looks at the machine, which reading a key does not

        offered = choices_of(context, name)
        key, apply = replace(key, choices=offered.choices), offered.apply
        warnings += [
            *offered.notices,
            *(unused_gpu_device(context, written=True) if name == "model.gpu_device" else ()),
        ]
    elif name in {"model.name", "model.file"}:
        apply = "`imprint setup`"
    return key, apply, tuple(warnings)


def _report(context: Context, setting: Setting, *, secrets: bool) -> ReportedKey:
    """Return what to say of a setting; without `secrets` a secret's value is hidden."""
    key = key_of(setting.key)
    value, default = setting.value, setting.default
    if setting.key == "model.batch_tokens" and setting.origin == "default":
        value = default = GPU_BATCH_TOKENS if _holds_gpu_build(context) else CPU_BATCH_TOKENS
    if setting.key == "model.threads" and default is None:
        default = _usable_cores(context)
        value = default if value is None else value
    if key.secret and value is not None and not secrets:
        value = HIDDEN
    choices = tuple(_unseen(setting.key, choice) for choice in key.choices)
    return ReportedKey(setting.key, value, default, setting.origin, setting.source, choices)


def _unseen(name: str, choice: Value) -> Choice:
    if name not in PLANNED or choice == "cpu":
        return Choice(choice, available=True, detail=None)
    reason = "not known: reading the configuration does not look for GPUs; `config set` and `imprint devices` do"
    return Choice(choice, available=None, reason=reason)


def _holds_gpu_build(context: Context) -> bool:
    """Whether a GPU is asked for and its build is set up: embedding then uses the GPU's defaults. Nothing is probed."""
    from imprint.runtime.target import current_target

    try:
        if _load(context).device == "cpu":
            return False
        target = current_target(context.home, Findings())
    except ImprintError:
        return False
    return target is not None and (target.build or "cpu") != "cpu"


def _usable_cores(context: Context) -> int | None:
    from imprint.probing.processor import usable_cores
    from imprint.probing.this_machine import RealHost

    return usable_cores(RealHost(context.environ))
