"""The check of a played ONNX Runtime, as far as one goes, and a model that only has the right names and sizes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from imprint.diagnosis.gathering import loading
from imprint.paths import Home
from imprint.planning.model import Device
from imprint.runtime.check.run import CPU, CheckResult
from support.place import no_model


def played_check(python: Path, device: Device | None, environ: Mapping[str, str]) -> CheckResult:
    """Check as far as a played runtime goes: it loads, and a session on the CPU computes."""
    seen = loading.try_runtime(python, environ, [], device=device, gpu=False)
    problem = seen.error or seen.cpu_error or seen.ended or (None if seen.has_session else "it has no InferenceSession")
    if problem is None:
        return CheckResult("ok", None, CPU, device)
    return CheckResult("failed", "import-failed", CPU, device, problem)


def home_with_model(home: Home) -> None:
    """Make a home of ours that has the default model, as far as names and sizes go."""
    home.root.mkdir(parents=True, exist_ok=True)
    home.marker.touch()
    no_model(home, "all-minilm-l6-v2")
