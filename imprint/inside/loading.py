"""Loads ONNX Runtime without a word to its makers, and says which build it is and what this process then holds."""

# ruff: noqa: ANN401 - numpy and ONNX Runtime are there only where this runs
from __future__ import annotations

import contextlib
import importlib
import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

CPU, CUDA = "CPUExecutionProvider", "CUDAExecutionProvider"


def load_onnxruntime() -> Any:
    """Return the module. Raises whatever stops the import."""
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # it reads this as it loads; whoever starts us sets it too
    import onnxruntime

    return onnxruntime


def describe(onnxruntime: Any) -> dict[str, Any]:
    """Return what the loaded package says it is: package, version, cuda, file, available providers; None unknown."""
    info = None
    with contextlib.suppress(Exception):  # builds before 1.21 do not have it
        info = importlib.import_module("onnxruntime.capi.build_and_package_info")
    available = None
    with contextlib.suppress(Exception):
        available = list(onnxruntime.get_available_providers())
    return {
        "package": getattr(info, "package_name", None),
        "version": getattr(onnxruntime, "__version__", None),
        "cuda": getattr(info, "cuda_version", None),
        "file": getattr(onnxruntime, "__file__", None),
        "available": available,
    }


def preload(onnxruntime: Any) -> str:
    """Load the libraries that wheels brought, as the package itself does, and return what it printed about it."""
    told = io.StringIO()
    with contextlib.redirect_stdout(told):
        if hasattr(onnxruntime, "preload_dlls"):
            onnxruntime.preload_dlls()
    return told.getvalue()[:4000]


def mapped_files() -> Iterator[str]:
    """Yield the files that are mapped into this process, on systems with /proc; one path may come several times."""
    with contextlib.suppress(OSError), Path("/proc/self/maps").open(encoding="utf-8", errors="replace") as maps:
        for line in maps:
            if "/" in line:
                yield line[line.index("/") :].rstrip("\n")
