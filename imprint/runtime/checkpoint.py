"""Names the points of a change at which a crash matters, so that tests can stop a run exactly there."""

from __future__ import annotations

from collections.abc import Callable

NAMES = (
    "mutex-held",
    "swept",
    "model-installed",
    "noted",
    "environment-created",
    "installed",
    "verified",
    "checked",
    "manifest-written",
    "pointer-flipped",
    "recorded",
    "prune-noted",
    "prune-removed",
    "prune-cleaned",
    "pruned",
)
"""Every point of `imprint setup` in the managed target, in order; `recorded` is reached with a GPU only."""

listener: Callable[[str], None] | None = None
"""Called at each point; None outside of tests."""


def reached(name: str) -> None:
    """Say that the point `name` was reached."""
    if listener is not None:
        listener(name)
