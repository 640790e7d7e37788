"""The JSON form of the values of planning, written. A record's fields are its keys; what is unknown is null."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from imprint.planning.model import Machine, Plan, Verdict
from imprint.values import Record, fields_of

SCHEMA = 1
"""The form of the documents that is written, and the newest that is read."""


def plan_to_json(plan: Plan) -> dict[str, Any]:
    """Write a plan as its document."""
    return {"schema": SCHEMA, **_record(plan)}


def machine_to_json(machine: Machine) -> dict[str, Any]:
    """Write a machine as its document."""
    return {"schema": SCHEMA, **_record(machine)}


def verdict_to_json(verdict: Verdict) -> dict[str, Any]:
    """Write one verdict."""
    return _record(verdict)


def verdicts_to_json(verdicts: Iterable[Verdict]) -> dict[str, Any]:
    """Write the document of recorded verdicts."""
    return {"schema": SCHEMA, "verdicts": [verdict_to_json(verdict) for verdict in verdicts]}


def _record(record: Record) -> dict[str, Any]:
    return {name: _plain(getattr(record, name)) for name in fields_of(type(record))}


def _plain(value: object) -> object:
    if isinstance(value, Record):
        return _record(value)
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return dict(value) if isinstance(value, Mapping) else value
