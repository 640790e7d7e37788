"""Starts the programs of `imprint.inside` in a target: command line, environment, the one GPU, limits, and the answer.

A child is another process because a broken build can crash, hang or exhaust memory; each of these is an answer. One
that imports ONNX Runtime must never send: its makers' builds report to them unless they are told not to. So there is
one place that starts them, and a test that finds every child that is started without it.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from imprint import inside
from imprint.planning.model import Device
from imprint.probing.children import run_child
from imprint.probing.host import ChildResult
from imprint.probing.libraries import without_stubs

Mode = Literal["load", "check", "probe", "placement", "embed"]
"""Which of the programs of `imprint.inside` runs."""

INSIDE = Path(inside.__file__).resolve().parent
"""The package that runs in a target."""

BOOT = (
    "import sys, types; package = types.ModuleType('inside'); package.__path__ = [sys.argv.pop(1)];"
    " sys.modules['inside'] = package; from inside.{mode} import main; main()"
)
"""Starts a program as part of a package of its own, so that the target sees nothing else of ours."""

LIMIT = 256 * 1024
"""Bytes kept of each stream of a child, and of the end of its answer."""

QUIET: Mapping[str, str] = {"ORT_DISABLE_TELEMETRY": "1"}
"""ONNX Runtime's official builds from 1.29 on send events to Microsoft and keep an identifier in the user's cache; this
stops both, and only if it is set before the import (its docs/Privacy.md; seen with 1.31.1 on Linux, 2026-12-01)."""

HIDDEN: Mapping[str, str] = {"CUDA_VISIBLE_DEVICES": ""}
"""No GPU at all, for what is to run on the CPU and nowhere else."""


def child_arguments(python: Path, mode: Mode, *words: str, package: Path = INSIDE) -> list[str]:
    """Return the command line of a child: a program of `package`, run by a target's interpreter.

    `-I`: nothing of the surroundings (PYTHONPATH, the current folder, user site) may change what is loaded. `-B`: an
    environment of somebody else's gets no compiled files from us.
    """
    return [os.fspath(python), "-I", "-B", "-c", BOOT.format(mode=mode), os.fspath(package), *words]


def child_environment(environ: Mapping[str, str], device: Device | None = None) -> dict[str, str]:
    """Return the environment of a child in a target: ours, quiet, with the planned GPU (None: as it is) alone to see.

    A toolkit's `stubs` folder is taken out of the loader's path: what lies there stands before the driver and does
    nothing.
    """
    passed = {name: value for name, value in environ.items() if not name.startswith("PYTHON")}
    if "LD_LIBRARY_PATH" in passed:
        passed["LD_LIBRARY_PATH"] = without_stubs(passed["LD_LIBRARY_PATH"])
    return {**passed, **QUIET, **(pinned_to(device, environ) if device is not None else {})}


def pinned_to(device: Device, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that leave a process one GPU, as its device 0.

    By UUID where there is one. Else by index, as the survey counted: in the order of the bus, and only among those
    GPUs that a list in CUDA_VISIBLE_DEVICES leaves.
    """
    if device.uuid is not None:
        return {"CUDA_VISIBLE_DEVICES": device.uuid, "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    if device.index is None:
        return {}
    chosen = environ.get("CUDA_VISIBLE_DEVICES")
    if chosen is None:
        return {"CUDA_VISIBLE_DEVICES": str(device.index), "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    listed = [entry.strip() for entry in chosen.split(",")]
    if environ.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID" and all(entry.isdecimal() for entry in listed):
        listed.sort(key=int)
    return {"CUDA_VISIBLE_DEVICES": listed[device.index]} if device.index < len(listed) else {}


def enough_memory() -> int:
    """Return the bytes that no child on the CPU comes near: a thread for each core, each with buffers, included."""
    return 2 * 1024**3 + (os.cpu_count() or 1) * 128 * 1024**2


def ask_child(
    argv: list[str], environ: Mapping[str, str], deadline: float, *, memory: int | None = None
) -> tuple[ChildResult, dict[str, Any]]:
    """Run a child for at most `deadline` seconds; return how it ended, and the facts that it told last, `{}` for none.

    `memory` is what it may hold, for one that loads no CUDA.

    It gets one more argument, a file to answer in, so that nothing the target prints can hide or forge the answer; the
    folder around the file is its own, and is removed. Where none can be made it answers on stdout. Never raises for
    what the child does.
    """
    import tempfile  # with much behind it, and many runs ask no child

    with contextlib.ExitStack() as stack:
        path, more = None, []
        with contextlib.suppress(OSError):
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="imprint-", ignore_cleanup_errors=True))
            path = Path(folder, "answer")
            more = [os.fspath(path)]
        ended = run_child([*argv, *more], deadline=deadline, environ=environ, limit=LIMIT, memory=memory)
        return ended, facts_in(_end_of(path)) or facts_in(ended.stdout)


def facts_in(text: str) -> dict[str, Any]:
    """Return the last line that is an answer of a program of ours; `{}` without one."""
    for line in reversed(text.splitlines()):
        if line.startswith("{"):
            with contextlib.suppress(ValueError, RecursionError):
                facts = json.loads(line)
                if isinstance(facts, dict) and "complete" in facts:
                    return facts
    return {}


def _end_of(path: Path | None) -> str:
    try:
        if path is None:
            return ""
        with path.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - LIMIT))
            return file.read(LIMIT).decode("utf-8", "replace")
    except OSError:
        return ""
