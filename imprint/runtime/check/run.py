"""Proves a target: runs the check in it and lets the judgement say what that proved.

Recording a verdict, and what follows from one, is decided elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from imprint.planning.model import Device
from imprint.runtime.check.children import ask_child, child_arguments, child_environment, enough_memory
from imprint.runtime.check.identity import CHECK_ID
from imprint.runtime.check.judgement import judge
from imprint.runtime.check.result import CPU, CUDA, CheckResult, Step
from imprint.sizes import in_units

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
    memory = enough_memory() if device is None else None
    result = judge(provider, device, *ask_child(argv, child_environment(environ, device), seconds, memory=memory))
    if memory is None or result.kind != "out-of-memory":
        return result
    why = f"it may take {in_units(memory)}, and a file of the environment that leads to a device takes all"
    return replace(result, detail=f"{result.detail} ({why})")
