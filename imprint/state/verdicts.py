"""Recorded verdicts of checks, in `data/gpu_state.json`. Which of them count is the planner's business."""

from __future__ import annotations

from imprint.errors import UsageError
from imprint.paths import Home
from imprint.planning import wire
from imprint.planning.model import Verdict, Verdicts
from imprint.state import files
from imprint.state.findings import UNHEARD, Findings

KEPT = 64
"""The newest verdicts that are kept. A machine has a few; this only bounds the file."""


def load(home: Home, findings: Findings = UNHEARD) -> tuple[Verdict, ...]:
    """Return the recorded verdicts; none when the file is damaged, which `findings` are told.

    Raises StateNewerError and StateError as `files.read_state` does.
    """
    value = files.read_state(home, home.verdicts, findings)
    if value is None:
        return ()
    try:
        return wire.verdicts_from_json(value)
    except UsageError as error:
        findings.damaged(home.verdicts, f"does not hold verdicts ({error.message[:120]})")
        return ()


def record(home: Home, verdict: Verdict, findings: Findings = UNHEARD) -> None:
    """Add a verdict in place of one with the same fingerprint. The caller holds the mutex."""
    others = [other for other in load(home, findings) if other.fingerprint != verdict.fingerprint]
    files.write_json(home.verdicts, Verdicts((*others, verdict)[-KEPT:]).to_json(), within=home.root)
