"""Proves a target: runs `check_child.py` in it and lets the judgement say what that proved.

The child is another process because a broken build can crash, hang or exhaust memory; each of these is an answer
here. Recording a verdict, and what follows from one, is decided elsewhere.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from imprint.planning.model import Device
from imprint.probing.libraries import without_stubs
from imprint.runtime.answers import ask_child
from imprint.runtime.check_id import CHECK_ID, CHILD
from imprint.runtime.check_judgement import judge
from imprint.runtime.check_result import CPU, CUDA, CheckResult, Step

__all__ = ["CHECK_ID", "CHILD", "CPU", "CUDA", "CheckResult", "Step", "child_environment", "judge", "run_check"]

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
    # -I: nothing of the surroundings (PYTHONPATH, the current folder, user site) may change what is loaded.
    # -B: an environment of somebody else's gets no compiled files from us.
    argv = [os.fspath(python), "-I", "-B", os.fspath(CHILD), provider]
    ended, answer = ask_child(argv, child_environment(environ, device), seconds)
    return judge(provider, device, ended, answer)


def child_environment(environ: Mapping[str, str], device: Device | None) -> dict[str, str]:
    """Return the environment for code in a target: ours, with the planned GPU as the only one to be seen.

    Without a UUID the index counts, in the order of the bus, as the machine document has it. A toolkit's `stubs`
    folder is taken out of the loader's path: what lies there stands before the driver and does nothing.
    """
    passed = {name: value for name, value in environ.items() if not name.startswith("PYTHON")}
    if "LD_LIBRARY_PATH" in passed:
        passed["LD_LIBRARY_PATH"] = without_stubs(passed["LD_LIBRARY_PATH"])
    if device is not None:
        passed["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
        if device.uuid is not None:
            passed["CUDA_VISIBLE_DEVICES"] = device.uuid
        elif device.index is not None:
            passed["CUDA_VISIBLE_DEVICES"] = str(device.index)
    return passed
