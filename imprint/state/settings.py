"""The configuration keys: each with its default and its type. Parses and shows values; reads nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from imprint import envvars
from imprint.errors import InvalidValueError
from imprint.hints import helps
from imprint.values import Record, Value
from imprint.words import DEVICES

LLM_PREFIX = "llm."
"""Keys below this are open: attached runtimes name their own."""

CPU_BATCH_TOKENS, GPU_BATCH_TOKENS = 256, 16384
"""Padded tokens in one batch where nobody set any: on a CPU 256 is as quick as 512 with a fifth less memory."""

_LLM_KEY = re.compile(r"llm(\.[a-z0-9_-]+)+")


class Key(Record):
    """One configuration key. `default` None: unset until somebody sets it, or computed where it is used.

    `parse` takes text (a command line, an environment variable) and returns the value or raises ValueError with what
    would be valid; `accepts` says whether a value read from TOML already has the right type.
    """

    name: str
    default: Value | None
    parse: Callable[[str], Value]
    valid: str
    choices: tuple[Value, ...] = ()
    secret: bool = False


def _one_of(*words: str) -> Callable[[str], Value]:
    def parse(text: str) -> Value:
        if text not in words:
            raise ValueError
        return text

    return parse


def _text(text: str) -> Value:
    if not text.strip():
        raise ValueError
    return text


def _boolean(text: str) -> Value:
    word = text.lower()
    if word in {"true", "yes", "on", "1"}:
        return True
    if word in {"false", "no", "off", "0"}:
        return False
    raise ValueError


def _whole(low: int, high: int, word: str | None = None) -> Callable[[str], Value]:
    def parse(text: str) -> Value:
        if word is not None and text == word:
            return text
        # int() would also take "1_000", " 1 " and other digits than ASCII's.
        if not re.fullmatch(r"[0-9]{1,12}", text) or not low <= int(text) <= high:
            raise ValueError
        return int(text)

    return parse


def _gpu(text: str) -> str:
    # A list is taken here and refused by the plan, which says why.
    if re.fullmatch(r"auto|[0-9]+|[A-Za-z]+-\S+|.*,.*", text) is None:
        raise ValueError
    return text


_ANY_TEXT = "any text in one line, without control characters"

KEYS: dict[str, Key] = {
    key.name: key
    for key in (
        Key("model.device", "cpu", _one_of(*DEVICES), "cpu, gpu or auto", DEVICES),
        Key("model.gpu_device", "auto", _gpu, "auto, an index like 0, or a UUID like GPU-…", ("auto",)),
        Key("model.name", "all-minilm-l6-v2", _text, "a model that `imprint model list` shows"),
        Key("model.file", "auto", _text, "auto or the name of one of the model's files", ("auto",)),
        Key("model.max_tokens", 256, _whole(1, 1_000_000), "a whole number of at least 1"),
        Key("model.batch_tokens", CPU_BATCH_TOKENS, _whole(1, 100_000_000), "a whole number of at least 1"),
        Key("model.threads", None, _whole(1, 4096), "a whole number from 1 to 4096"),
        Key("runtime.portable_gpu", True, _boolean, "true or false", (True, False)),
        Key("server.host", "127.0.0.1", _text, "a host name or address"),
        Key("server.port", 8790, _whole(0, 65535), "a port from 0 to 65535"),
        Key("server.token", None, _text, _ANY_TEXT, secret=True),
    )
}
"""Every fixed key, in the order in which they are listed."""


def is_key(name: str) -> bool:
    """Whether there is a key of that name."""
    return name in KEYS or _LLM_KEY.fullmatch(name) is not None


def key_of(name: str) -> Key:
    """Return the key of that name. Raises InvalidValueError with the nearest name for an unknown one."""
    if name in KEYS:
        return KEYS[name]
    if _LLM_KEY.fullmatch(name):
        return Key(name, None, _text, _ANY_TEXT, secret=name.endswith((".token", ".key", ".api_key")))
    import difflib

    near = difflib.get_close_matches(name, KEYS, n=1, cutoff=0.5)
    hint = helps("did-you-mean", near=near[0]) if near else helps("the-keys", keys=", ".join(KEYS), prefix=LLM_PREFIX)
    raise InvalidValueError(f"unknown configuration key: {name}", hint=hint)


def parse_text(key: Key, text: str, source: str | None) -> Value:
    """Return the value that text stands for. Raises InvalidValueError naming `source`, if any, and what is valid."""
    if any(ord(letter) < 32 or ord(letter) == 127 or 0xD800 <= ord(letter) <= 0xDFFF for letter in text):
        raise InvalidValueError(
            f"{_prefix(source)}{key.name} cannot hold a line break, a control character or bytes that are not UTF-8",
            hint=helps("valid", values=key.valid),
        )
    try:
        return key.parse(text)
    except ValueError:
        raise _invalid(key, text, source) from None


def parse_stored(key: Key, stored: object, source: str) -> Value:
    """Return a value read from TOML, checked like text. Raises InvalidValueError for a wrong type or value."""
    if isinstance(stored, bool) and key.parse is not _boolean:
        raise _invalid(key, str(stored).lower(), source)
    if isinstance(stored, bool):
        return stored
    if isinstance(stored, (int, str)):
        return parse_text(key, str(stored), source)
    raise _invalid(key, str(stored), source)


def _invalid(key: Key, text: str, source: str | None) -> InvalidValueError:
    shown = "that value" if key.secret else f"`{text[:80]}`"
    return InvalidValueError(
        f"{_prefix(source)}{shown} is not valid for {key.name}", hint=helps("valid", values=key.valid)
    )


def _prefix(source: str | None) -> str:
    return f"{source}: " if source else ""


def variables_of(name: str) -> tuple[str, ...]:
    """Return the environment variables that set a key, the short alias first."""
    aliases = [variable for variable, key in envvars.ALIASES.items() if key == name]
    return tuple(dict.fromkeys([*aliases, envvars.name_of_key(name)]))


def unknown_variables(names: Iterable[str]) -> list[tuple[str, str | None]]:
    """Return the IMPRINT_ names among `names` that mean nothing, sorted, each with the nearest that does."""
    import difflib

    known = {*envvars.OTHERS, *(variable for key in KEYS for variable in variables_of(key))}
    unknown = sorted(
        name
        for name in names
        if name.startswith("IMPRINT_") and name not in known and not name.startswith(envvars.name_of_key(LLM_PREFIX))
    )
    return [(name, next(iter(difflib.get_close_matches(name, known, n=1)), None)) for name in unknown]
