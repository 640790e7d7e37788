"""The face for programs: the JSON envelope and the NDJSON lines. Nothing here decides; docs/json.md is the contract."""

import json
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from imprint.printable import printable_json
from imprint.results import Result
from imprint.runtime.events import Event
from imprint.values import as_json

SCHEMA = 1

STREAMING = frozenset({"setup", "bootstrap"})
"""Commands whose `--json` is NDJSON: events, then one line with `"event": "result"`."""


def envelope(command: str, result: Result[Any]) -> dict[str, Any]:
    """Return the envelope of a result; a streaming command's carries `event` as its first key."""
    document: dict[str, Any] = {"event": "result"} if command in STREAMING else {}
    document |= {
        "schema": SCHEMA,
        "command": command,
        "ok": result.ok,
        "data": result.data,
        "warnings": as_json(result.warnings),
        "errors": as_json(result.errors),
    }
    return document


def event_line(event: Event, now: datetime) -> dict[str, Any]:
    """Return one progress line; `time` is ISO 8601 in UTC with milliseconds."""
    return {
        "event": event.event,
        "step": event.step,
        "done": event.done,
        "total": event.total,
        "message": event.message,
        "time": now.astimezone(UTC).isoformat(timespec="milliseconds"),
    }


def emit_event(event: Event) -> None:
    """Write one progress line to stdout at once."""
    emit(event_line(event, datetime.now(UTC)), indent=None)


def emit(document: Mapping[str, Any], *, indent: int | None = 2) -> None:
    """Write one JSON document and a newline to stdout, always as UTF-8."""
    # Whatever a terminal would act on is escaped, a lone surrogate (a path that is not UTF-8) too.
    text = printable_json(json.dumps(document, ensure_ascii=False, indent=indent)) + "\n"
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode("utf-8"))
    sys.stdout.buffer.flush()
