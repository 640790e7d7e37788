"""Progress as plain values: every long operation reports through one callable that takes an Event."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Event:
    """One line of progress: `event` is start, progress, done, warning or info.

    `step` is one of survey, plan, download, install, verify, check, switch, record, prune, model; `done` and `total`
    are bytes (or items), None where not known.
    """

    event: str
    step: str
    message: str
    done: int | None = None
    total: int | None = None


OnEvent = Callable[[Event], None]
