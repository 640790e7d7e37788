"""Checks of what leaves the machine without being asked: ONNX Runtime's telemetry in the user's own programs. Pure."""

from __future__ import annotations

from imprint.diagnosis.facts import Facts
from imprint.diagnosis.findings import OK, Finding
from imprint.diagnosis.judging import finding, missing, skipped

SWITCH = "ORT_DISABLE_TELEMETRY"
_SWITCHED = frozenset({"1", "true"})
"""What ONNX Runtime takes for yes; `0`, `no` and an empty value leave it on (tried with 1.31.1, 2026-12-01)."""


def telemetry(facts: Facts) -> list[Finding]:
    """Judge whether programs that use this ONNX Runtime report to its makers.

    Never more than a notice: it is how the official builds are, and no fault of the environment's.
    """
    check = "runtime:telemetry"
    loaded = facts.loaded
    if loaded is None:
        return missing(facts, check, "loaded")
    if loaded.sends is None:
        return skipped(facts, check, "ONNX Runtime did not load")
    if not loaded.sends:
        return [finding(facts, check, "ok", OK, "this build of ONNX Runtime contains no telemetry client")]
    if facts.venv is None:
        seen = f"off: Imprint sets {SWITCH}=1 for every process it starts here"
        return [finding(facts, check, "ok", OK, seen)]
    if facts.environ.get(SWITCH, "").lower() in _SWITCHED:
        return [finding(facts, check, "ok", OK, f"off where {SWITCH} is set, as it is here")]
    named = f"ONNX Runtime {loaded.version}" if loaded.version is not None else "ONNX Runtime"
    seen = f"your own programs that use this {named} send usage data to Microsoft"
    return [finding(facts, check, "telemetry-on", OK, seen)]
