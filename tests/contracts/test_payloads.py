"""What each operation returns is, by its annotations, what docs/json.md shows: neither can change alone."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator, Mapping
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

import pytest

import imprint.operations
from contracts.shapes import SHAPES
from imprint.operations import bundle, check, config, devices, doctor, embed, model, prune, rollback, setup, status
from imprint.planning.model import Machine, Plan
from imprint.results import Notice, Result
from imprint.values import SCHEMA, Absent, Document, Record, types_of

SHOWN: Mapping[str, type[Record]] = {
    "remark": Notice,
    "plan": Plan,
    "machine": Machine,
    "devices": devices.Devices,
    "bundle": bundle.Bundle,
    "status": status.Status,
    "check": check.CheckReport,
    "setup": setup.SetupResult,
    "rollback": rollback.RollbackResult,
    "prune": prune.PruneResult,
    "doctor": doctor.Report,
    "doctor --list": doctor.Checks,
    "doctor --explain": doctor.Explanation,
    "config list": config.Keys,
    "config get": config.Keys,
    "config set": config.SetKey,
    "config unset": config.UnsetKey,
    "config path": config.ConfigFile,
    "embed": embed.EmbedSummary,
    "model list": model.Models,
    "model show": model.Models,
    "model path": model.ModelPath,
    "model remove": model.RemovedModel,
}
"""The shapes on the page that are an operation's payload."""

_WORDS: Mapping[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean", NoneType: "null"}


def alternatives(kind: object) -> Iterator[Any]:
    """Yield what an annotation allows: words of the page, and the types that are more than a word."""
    if get_origin(kind) in {Union, UnionType}:
        for one in get_args(kind):
            yield from alternatives(one)
    elif get_origin(kind) is Literal:
        yield from (f"={word}" for word in get_args(kind))
    elif kind is not Absent:
        yield _WORDS.get(kind, kind)


def shown(shape: object) -> Iterator[Any]:
    """Yield what a shape allows, a shape of another name in its place."""
    if not isinstance(shape, str):
        yield shape
        return
    for word in shape.split("|"):
        yield from shown(SHAPES[word[1:]]) if word.startswith("@") else (word,)


def members(cls: type[Record]) -> dict[str, Any]:
    """Return the keys of a record's JSON form with their types; one that may be missing is written `key?`."""
    keys = {name.rstrip("_") + ("?" if Absent in get_args(kind) else ""): kind for name, kind in types_of(cls).items()}
    return {"schema": Literal[SCHEMA], **keys} if issubclass(cls, Document) else keys


def differences(kind: object, shape: object, path: str = "$") -> Iterator[str]:
    """Yield where a type and a shape disagree."""
    kinds, shapes = list(alternatives(kind)), list(shown(shape))
    words = {one for one in kinds if isinstance(one, str)}
    told = {one for one in shapes if isinstance(one, str)}
    if words != told:
        yield f"{path}: the type has {sorted(words)}, the page {sorted(told)}"
    inner = [one for one in kinds if not isinstance(one, str)]
    pages = [one for one in shapes if not isinstance(one, str)]
    if len(inner) != len(pages):
        yield f"{path}: the type has {inner}, the page {pages}"
        return
    for one, page in zip(inner, pages, strict=True):
        if get_origin(one) is tuple:
            yield from differences(get_args(one)[0], page[0], f"{path}[]")
            continue
        keys = {"…": get_args(one)[1]} if get_origin(one) is Mapping else members(one)
        if keys.keys() != page.keys():
            yield f"{path}: the type has {sorted(keys.keys() - page.keys())}, the page {sorted(page.keys() - keys)}"
        for key in keys.keys() & page.keys():
            yield from differences(keys[key], page[key], f"{path}.{key}")


@pytest.mark.parametrize("name", SHOWN)
def test_a_payload_is_what_the_page_shows(name: str) -> None:
    assert list(differences(SHOWN[name], SHAPES[name])) == []


def payloads() -> Iterator[type[Record]]:
    """Yield the payload of every operation, as its signature names it."""
    for found in pkgutil.iter_modules(imprint.operations.__path__, "imprint.operations."):
        module = importlib.import_module(found.name)
        for function in vars(module).values():
            if getattr(function, "__module__", None) != found.name or not callable(function):
                continue
            returned = str(getattr(function, "__annotations__", {}).get("return"))
            if returned.startswith("Result["):
                yield vars(module)[returned.removeprefix("Result[").removesuffix("]")]


def test_every_operation_returns_a_payload_that_the_page_shows() -> None:
    assert set(payloads()) == set(SHOWN.values()) - {Notice}


class Inner(Record):
    """A record with one key that may be missing."""

    from_: str
    why: Literal["a", "b"] | Absent | None


class Outer(Record):
    """A record of records."""

    rows: tuple[Inner, ...]
    counts: Mapping[str, int]


RIGHT: dict[str, Any] = {"rows": [{"from": "string", "why?": "=a|=b|null"}], "counts": {"…": "integer"}}


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({}, None),
        ({"counts": {"…": "number"}}, "$.counts.…: the type has ['integer'], the page ['number']"),
        ({"rows": [{"from": "string", "why": "=a|=b|null"}]}, "$.rows[]: the type has ['why?'], the page ['why']"),
        ({"rows": [{"from": "string", "why?": "=a|null"}]}, "$.rows[].why?: the type has ['=a', '=b', 'null']"),
        ({"more": "string"}, "$: the type has [], the page ['more']"),
        ({"rows": "string"}, "$.rows: the type has [], the page ['string']"),
    ],
)
def test_a_difference_is_found(change: dict[str, Any], where: str | None) -> None:
    found = list(differences(Outer, RIGHT | change))
    assert found == [] if where is None else found[0].startswith(where)


def test_a_result_s_data_is_the_payload_s_json_form() -> None:
    payload = Outer((Inner("x", None),), {"n": 1})
    assert Result(payload).data == {"rows": [{"from": "x", "why": None}], "counts": {"n": 1}}
