"""Loads ONNX Runtime and tries it, and says after each stage what it saw, as lines of JSON.

This file runs alone, with a target's interpreter: it imports nothing of imprint, needs only what a target holds, and
keeps to Python 3.9. It judges nothing; `probe.py` does. A stage that ends the process shows as the last one begun.

Call: `python -I -B probe_child.py REQUEST`, where REQUEST is a JSON object: `model` (base64 of a small float model
with the inputs `shapes` names), `gpu` (whether to ask for one), `names` (libraries to find).
"""

# ruff: noqa: ANN401 - ONNX Runtime and numpy are there only where this runs
from __future__ import annotations

import base64
import contextlib
import ctypes
import importlib
import json
import mmap
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

CPU, CUDA = "CPUExecutionProvider", "CUDAExecutionProvider"


def load() -> tuple[Any, Mapping[str, Any]]:
    """Import ONNX Runtime; return it (None when that fails) and what it says of itself."""
    seen: dict[str, Any] = {"error": None}
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # it reads this as it loads; whoever starts this file sets it too
    try:
        import onnxruntime
    except BaseException as problem:  # whatever stops the import is what was asked for
        return None, {"error": f"{type(problem).__name__}: {problem}"[-2000:]}
    with contextlib.suppress(Exception):
        info = importlib.import_module("onnxruntime.capi.build_and_package_info")
        seen["package"] = getattr(info, "package_name", None)
        seen["cuda"] = getattr(info, "cuda_version", None)
    seen["version"] = getattr(onnxruntime, "__version__", None)
    seen["file"] = getattr(onnxruntime, "__file__", None)
    seen["has_session"] = hasattr(onnxruntime, "InferenceSession")
    with contextlib.suppress(Exception):
        seen["available"] = list(onnxruntime.get_available_providers())
    with contextlib.suppress(Exception):
        seen["sends"] = holds_a_telemetry_client()
    return onnxruntime, seen


def holds_a_telemetry_client() -> bool:
    """Return whether this build can report to its makers: then its library knows the variable that stops it."""
    extension = getattr(sys.modules.get("onnxruntime.capi.onnxruntime_pybind11_state"), "__file__", None)
    if extension is None:
        return False
    library = Path(extension)
    for path in (library, *library.parent.glob("onnxruntime.dll")):
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            name = "ORT_DISABLE_TELEMETRY"
            if content.find(name.encode()) >= 0 or content.find(name.encode("utf-16-le")) >= 0:
                return True
    return False


def run(onnxruntime: Any, request: Mapping[str, Any], providers: Sequence[str]) -> tuple[Any, str | None]:
    """Make a session and run it once; return the session's providers (None: no session) and what went wrong."""
    try:
        import numpy as np

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        content = base64.b64decode(request["model"])
        session = onnxruntime.InferenceSession(content, options, providers=list(providers))
    except Exception as problem:  # whatever is raised is the answer
        return None, f"{type(problem).__name__}: {problem}"[-2000:]
    got = list(session.get_providers())
    try:
        session.run(None, {name: np.ones(shape, "float32") for name, shape in request["shapes"].items()})
    except Exception as problem:  # as above
        return got, f"{type(problem).__name__}: {problem}"[-2000:]
    return got, None


def find_libraries(names: Sequence[str]) -> list[dict[str, Any]]:
    """Return where each library is: mapped already, in a package, on the system's path, or missing."""
    packages = package_libraries()
    before = mapped()
    found = []
    for name in names:
        path, loaded = before.get(name) or packages.get(name), name in before
        if path is None:
            with contextlib.suppress(OSError):
                ctypes.CDLL(name)
                path = mapped().get(name, name)
        found.append({"name": name, "path": path, "source": source_of(path), "loaded": loaded})
    return found


def mapped() -> dict[str, str]:
    """Return the files that are mapped into this process, by the names they are asked for."""
    found = {}
    with contextlib.suppress(OSError), Path("/proc/self/maps").open(encoding="utf-8", errors="replace") as file:
        for line in file:
            path = line[line.find("/") :].strip() if "/" in line else ""
            if ".so" in path:
                base = path.rpartition("/")[2]
                head, _, number = base.partition(".so.")
                found[base] = path
                # libcudart.so.13 is asked for and libcudart.so.13.0.96 is mapped.
                found.setdefault(f"{head}.so.{number.split('.')[0]}" if number else base, path)
    return found


def package_libraries() -> dict[str, str]:
    """Return the libraries in the folders of NVIDIA's and torch's packages, by name."""
    found: dict[str, str] = {}
    for place in map(Path, sys.path):
        folders = [place / "torch" / "lib"]
        with contextlib.suppress(OSError):
            for part in sorted((place / "nvidia").iterdir()):
                folders[:0] = [part / "lib", part / "bin", part / "bin" / "x86_64"]
        for folder in folders:
            with contextlib.suppress(OSError):
                for path in folder.iterdir():
                    if path.is_file():
                        found.setdefault(path.name, str(path))
    return found


def source_of(path: str | None) -> str:
    """Return what kind of place a library lies in: wheel, torch, system, or missing for None."""
    if path is None:
        return "missing"
    real = Path(path).as_posix()
    if "/torch/lib/" in real:
        return "torch"
    return "wheel" if "-packages/nvidia/" in real else "system"


def main() -> None:
    """Go through the stages."""
    answer = os.dup(1)
    # Libraries may print to stdout; only the answer belongs there.
    os.dup2(2, 1)

    def tell(**facts: Any) -> None:
        os.write(answer, b"\n" + json.dumps(facts).encode() + b"\n")

    request = json.loads(sys.argv[1])
    tell(stage="import")
    onnxruntime, seen = load()
    tell(stage="cpu" if seen.get("has_session") else None, **seen)
    if onnxruntime is not None and seen.get("has_session"):
        _, cpu_error = run(onnxruntime, request, [CPU])
        asks = request["gpu"] and CUDA in seen.get("available", ())
        tell(stage="gpu" if asks else "libraries", cpu_error=cpu_error)
        if asks:
            with contextlib.suppress(Exception):
                if hasattr(onnxruntime, "preload_dlls"):
                    onnxruntime.preload_dlls()
            providers, problem = run(onnxruntime, request, [CUDA, CPU])
            tell(stage="libraries", session=providers, run_error=problem)
        tell(stage=None, libraries=find_libraries(request["names"]) if CUDA in seen.get("available", ()) else None)
    sys.stdout.flush()
    # Some providers crash in their destructors; what they computed is said already.
    os._exit(0)


if __name__ == "__main__":
    main()
