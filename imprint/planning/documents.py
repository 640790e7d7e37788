"""Strict reading of JSON documents: every refusal names the place, such as `nvidia.gpus[0].index`.

A missing field reads as null, and null is unknown. An unknown key is refused, so that a misspelt fact is never
silently taken for an unknown one. All errors are UsageError.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from imprint.errors import UsageError

Reader = Callable[[object, str], Any]
"""Turns a JSON value that is not null, found at a path, into a value."""

_KINDS = {dict: "an object", list: "a list", str: "a string", bool: "true or false", int: "a number", float: "a number"}


def refuse(path: str, problem: str) -> UsageError:
    """Return the error for a problem at a path; the document itself has the empty path."""
    return UsageError(f"{path or 'the document'}: {problem}")


def join(path: str, key: str) -> str:
    """Return the path of a key below a path."""
    return f"{path}.{key}" if path else key


def text(value: object, path: str) -> str:
    """Read a string."""
    if isinstance(value, str):
        return value
    raise _expected("a string", value, path)


def number(value: object, path: str) -> int:
    """Read a whole number that is not negative."""
    if isinstance(value, int) and not isinstance(value, bool):
        if value < 0:
            raise refuse(path, "expected a number that is not negative")
        return value
    raise _expected("a whole number", value, path)


def truth(value: object, path: str) -> bool:
    """Read true or false."""
    if isinstance(value, bool):
        return value
    raise _expected("true or false", value, path)


def one_of(*words: str) -> Reader:
    """Return a reader of one of these words."""

    def read(value: object, path: str) -> str:
        word = text(value, path)
        if word not in words:
            raise refuse(path, f"expected one of {', '.join(words)}, found {word!r}")
        return word

    return read


def list_of(reader: Reader) -> Reader:
    """Return a reader of a list, as a tuple; null is no element."""

    def read(value: object, path: str) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise _expected("a list", value, path)
        return tuple(reader(item, f"{path}[{position}]") for position, item in enumerate(value))

    return read


def open_map(value: object, path: str) -> dict[str, str]:
    """Read a map with keys of the writer's choice; a null there is left out."""
    if not isinstance(value, dict):
        raise _expected("an object", value, path)
    return {key: text(item, join(path, key)) for key, item in value.items() if item is not None}


def fields(value: object, path: str, readers: Mapping[str, Reader], *, required: Iterable[str] = ()) -> dict[str, Any]:
    """Read an object of exactly these keys; what is missing or null is absent from the answer."""
    if not isinstance(value, dict):
        raise _expected("an object", value, path)
    unknown = next((key for key in value if key not in readers), None)
    if unknown is not None:
        raise refuse(join(path, unknown), "unknown key")
    missing = next((key for key in required if value.get(key) is None), None)
    if missing is not None:
        raise refuse(join(path, missing), "missing")
    return {key: readers[key](item, join(path, key)) for key, item in value.items() if item is not None}


def schema(known: int) -> Reader:
    """Return a reader of the `schema` number of a document whose newest known form is `known`."""

    def read(value: object, path: str) -> int:
        found = number(value, path)
        if found != known:
            raise refuse(path, f"this version of Imprint reads schema {known}, found {found}")
        return found

    return read


def _expected(what: str, value: object, path: str) -> UsageError:
    found = "null" if value is None else _KINDS.get(type(value), type(value).__name__)
    return refuse(path, f"expected {what}, found {found}")
