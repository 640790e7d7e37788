"""What every child that runs in a target is started with: its arguments, its environment, and the one GPU it may see.

A child that imports ONNX Runtime must never send: its makers' builds report to them unless they are told not to. So
there is one place that makes these environments, and a test that finds every child that is started without it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from imprint.planning.model import Device
from imprint.probing.libraries import without_stubs

QUIET: Mapping[str, str] = {"ORT_DISABLE_TELEMETRY": "1"}
"""ONNX Runtime's official builds from 1.29 on send events to Microsoft and keep an identifier in the user's cache; this
stops both, and only if it is set before the import (its docs/Privacy.md; seen with 1.31.1 on Linux, 2026-12-01)."""

HIDDEN: Mapping[str, str] = {"CUDA_VISIBLE_DEVICES": ""}
"""No GPU at all, for what is to run on the CPU and nowhere else."""


def child_arguments(python: Path, program: Path | str, *words: str) -> list[str]:
    """Return the command line of a child: a file of ours, or code after `-c`, run by a target's interpreter.

    `-I`: nothing of the surroundings (PYTHONPATH, the current folder, user site) may change what is loaded. `-B`: an
    environment of somebody else's gets no compiled files from us.
    """
    code = [os.fspath(program)] if isinstance(program, Path) else ["-c", program]
    return [os.fspath(python), "-I", "-B", *code, *words]


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
