"""What leaves the machine without being asked: ONNX Runtime's telemetry in the user's own programs. Pure."""

from __future__ import annotations

from imprint.diagnosis.checking import LOADED, check
from imprint.diagnosis.facts import Facts, Loaded
from imprint.diagnosis.findings import OK, Observation, ok, skipped

SWITCH = "ORT_DISABLE_TELEMETRY"
_SWITCHED = frozenset({"1", "true"})
"""What ONNX Runtime takes for yes; `0`, `no` and an empty value leave it on (tried with 1.31.1, 2026-12-01)."""


@check("runtime:telemetry", "whether your own programs with this ONNX Runtime send usage data", LOADED)
def telemetry(facts: Facts, loaded: Loaded) -> Observation:
    """Judge whether programs that use this ONNX Runtime report to its makers.

    Never more than a notice: it is how the official builds are, and no fault of the environment's.
    """
    if loaded.sends is None:
        return skipped("ONNX Runtime did not load")
    if not loaded.sends:
        return ok("this build of ONNX Runtime contains no telemetry client")
    if facts.target.venv is None:
        return ok(f"off: Imprint sets {SWITCH}=1 for every process it starts here")
    if facts.settings.environ.get(SWITCH, "").lower() in _SWITCHED:
        return ok(f"off where {SWITCH} is set, as it is here")
    named = f"ONNX Runtime {loaded.version}" if loaded.version is not None else "ONNX Runtime"
    return Observation("telemetry-on", OK, f"your own programs that use this {named} send usage data to Microsoft")
