"""Reads the JSON form of the values of planning strictly, each by the annotations of its record.

Reading what was written gives an equal value. Errors are UsageError and name the place in the document.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, Union, cast, get_args, get_origin

from imprint.planning import documents as doc
from imprint.planning.model import Machine, Plan, Verdict
from imprint.values import SCHEMA, Absent, Document, Record, types_of

_PLAIN: Mapping[Any, doc.Reader] = {str: doc.text, int: doc.number, bool: doc.truth}


def machine_from_json(obj: object) -> Machine:
    """Read a machine document, bare or inside the `--json` envelope around it. Errors: UsageError naming the place."""
    return cast("Machine", _record_reader(Machine)(*_without_envelope(obj)))


def plan_from_json(obj: object) -> Plan:
    """Read a plan document, bare or inside its envelope. Errors: UsageError naming the place."""
    return cast("Plan", _record_reader(Plan)(*_without_envelope(obj)))


def verdict_from_json(obj: object, path: str = "") -> Verdict:
    """Read one verdict. Errors: UsageError naming the place."""
    return cast("Verdict", _record_reader(Verdict)(obj, path))


def verdicts_from_json(obj: object) -> tuple[Verdict, ...]:
    """Read the document of recorded verdicts, or a bare list of them. Errors: UsageError naming the place."""
    return tuple(verdict for verdict, _ in partial_verdicts_from_json(obj))


def partial_verdicts_from_json(obj: object) -> tuple[tuple[Verdict, frozenset[str]], ...]:
    """Read verdicts, each with the fingerprint fields that the document names, be it to say that one is null.

    A what-if names only the fields it is about; `fingerprints.complete_verdict` fills in the others.
    """
    body, path = obj, ""
    if isinstance(obj, dict):
        readers = {"schema": doc.schema(SCHEMA), "verdicts": lambda value, _path: value}
        body, path = doc.fields(obj, "", readers, required=("verdicts",))["verdicts"], "verdicts"
    verdicts: tuple[Verdict, ...] = doc.list_of(verdict_from_json)(body, path)
    return tuple(zip(verdicts, map(_named_fields, body), strict=True))  # type: ignore[call-overload] # a list by now


def _named_fields(entry: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(entry.get("fingerprint") or ())


def _without_envelope(obj: object) -> tuple[object, str]:
    if isinstance(obj, dict) and "data" in obj and "command" in obj:
        return obj["data"], "data"
    return obj, ""


@cache
def _record_reader(cls: type[Record]) -> doc.Reader:
    """Return the reader of a record. It needs the fields that have no default and cannot be None."""
    # A key that may be missing tells people more; it is not read back.
    kinds = {name: kind for name, kind in types_of(cls).items() if Absent not in get_args(kind)}
    readers = {name: _reader(kind) for name, kind in kinds.items()}
    if issubclass(cls, Document):
        readers["schema"] = doc.schema(SCHEMA)
    unknown = {name: None for name in kinds if name not in cls.__dict__}
    required = [name for name in unknown if NoneType not in get_args(kinds[name])]

    def read(value: object, path: str) -> Record:
        found = doc.fields(value, path, readers, required=required)
        found.pop("schema", None)
        return cls(**{**unknown, **found})

    return read


def _reader(kind: Any) -> doc.Reader:  # noqa: ANN401 - an annotation
    """Return the reader of what an annotation allows; a null never reaches it."""
    if get_origin(kind) in {Union, UnionType}:
        (kind,) = (one for one in get_args(kind) if one is not NoneType)
    if get_origin(kind) is tuple:
        return doc.list_of(_reader(get_args(kind)[0]))
    if get_origin(kind) is Literal:
        return doc.one_of(*get_args(kind))
    if get_origin(kind) is Mapping:
        return doc.open_map
    return _PLAIN.get(kind) or _record_reader(kind)
