"""Proves a target: runs the check in it and lets the judgement say what that proved.

Recording a verdict, and what follows from one, is decided elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from imprint.planning.model import Device
from imprint.runtime.check.children import ask_child, child_arguments, child_environment
from imprint.runtime.check.identity import CHECK_ID
from imprint.runtime.check.judgement import judge
from imprint.runtime.check.result import CPU, CUDA, CheckResult, Step

__all__ = ["CHECK_ID", "CPU", "CUDA", "CheckResult", "Step", "judge", "run_check"]

CPU_SECONDS = 60.0
GPU_SECONDS = 300.0
"""Deadlines. The first session on a GPU may compile every kernel, so these are generous: a timeout proves nothing."""


def run_check(
    python: Path, device: Device | None, environ: Mapping[str, str], *, deadline: float | None = None
) -> CheckResult:
    """Run the check with the interpreter `python`: on `device`, pinned by its UUID, or on the CPU when it is None.

    Takes at most `deadline` seconds and a bounded amount of memory whatever the child does, and never raises for
    what the child does.
    """
    provider = CPU if device is None else CUDA
    seconds = deadline if deadline is not None else (CPU_SECONDS if device is None else GPU_SECONDS)
    argv = child_arguments(python, "check", provider)
    return judge(provider, device, *ask_child(argv, child_environment(environ, device), seconds))
