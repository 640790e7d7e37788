"""Makes text safe for a terminal and for whoever reads it: what a terminal would act on is shown instead. Pure.

A package's name, a GPU's name in a document, an interpreter's words or a file's name may hold escape sequences, or
characters that turn the order of what is read around.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeVar, cast

from imprint.values import Record

_ORDER = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
"""What changes the direction of text (Unicode Standard Annex 9, section 2)."""

_ACTS = "\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\u2028\u2029\ufeff\ud800-\udfff" + _ORDER
_IN_LINES = re.compile(f"[{_ACTS}]")
_IN_A_LINE = re.compile(f"[\\t\\n{_ACTS}]")


def printable(text: str) -> str:
    """Return a text of several lines with every control character but newline and tab written as its code."""
    return _IN_LINES.sub(_code, text)


def printable_line(text: str) -> str:
    """Return one line: newlines and tabs are written as their codes too, for they are none of ours in a name."""
    return _IN_A_LINE.sub(_code, text)


T = TypeVar("T")


def printable_data(value: T, lines: frozenset[str] = frozenset()) -> T:
    """Return a payload with each string, keys included, as `printable_line` has it.

    The values of the fields or keys `lines` are texts of ours with several lines.
    """
    return cast("T", _clean(value, lines))


def _clean(value: object, lines: frozenset[str]) -> object:
    if isinstance(value, str):
        return printable_line(value)
    if isinstance(value, Record):
        return type(value)(**_members(value.__dict__, lines))
    if isinstance(value, Mapping):
        return _members(value, lines)
    if isinstance(value, list | tuple):
        return type(value)(_clean(one, lines) for one in value)
    return value


def _members(value: Mapping[str, object], lines: frozenset[str]) -> dict[str, object]:
    return {
        printable_line(key): printable(one) if key in lines and isinstance(one, str) else _clean(one, lines)
        for key, one in value.items()
    }


def printable_json(document: str) -> str:
    """Return a JSON document with such characters as its own escapes; it stays the same document."""
    return _IN_LINES.sub(lambda found: f"\\u{ord(found[0]):04x}", document)


def _code(found: re.Match[str]) -> str:
    number = ord(found[0])
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"
