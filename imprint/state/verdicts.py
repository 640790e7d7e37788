"""Recorded verdicts of checks, in `data/gpu_state.json`. Which of them count is the planner's business."""

from __future__ import annotations

from imprint.errors import UsageError
from imprint.paths import Home
from imprint.planning import wire
from imprint.planning.model import Verdict
from imprint.state import files
from imprint.state.files import Damage

KEPT = 64
"""The newest verdicts that are kept. A machine has a few; this only bounds the file."""


def load(home: Home) -> tuple[tuple[Verdict, ...], tuple[Damage, ...]]:
    """Return the recorded verdicts, and a finding when the file was damaged and set aside.

    Raises StateNewerError and StateError as `files.read_json` does.
    """
    findings: list[Damage] = []
    value = files.read_json(home.verdicts, findings=findings)
    if value is None:
        return (), tuple(findings)
    try:
        return wire.verdicts_from_json(value), ()
    except UsageError as error:
        files.set_aside(home.verdicts, f"holds no verdicts ({error.message[:120]})", findings)
        return (), tuple(findings)


def record(home: Home, verdict: Verdict) -> tuple[Damage, ...]:
    """Add a verdict in place of one with the same fingerprint. The caller holds the mutex."""
    kept, findings = load(home)
    others = [other for other in kept if other.fingerprint != verdict.fingerprint]
    files.write_json(home.verdicts, wire.verdicts_to_json([*others, verdict][-KEPT:]))
    return findings


def forget(home: Home) -> tuple[Damage, ...]:
    """Remove every verdict. The caller holds the mutex."""
    kept, findings = load(home)
    if kept:
        files.write_json(home.verdicts, wire.verdicts_to_json(()))
    return findings
