"""Loads ONNX Runtime, tries it, and finds its libraries, and says after each stage what it saw.

Arguments: REQUEST, a JSON object, and the file to answer in. REQUEST has `gpu` (whether to ask for one) and `names`
(libraries to find). It judges nothing; `diagnosis/gathering/loading.py` does. A stage that ends the process is the last
one begun.
"""

# ruff: noqa: ANN401 - ONNX Runtime and numpy are there only where this runs
from __future__ import annotations

import contextlib
import ctypes
import json
import mmap
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .answering import Answer, of_error
from .loading import CPU, CUDA, describe, load_onnxruntime, mapped_files, preload
from .one_node import float_attribute, int_attribute, model

SHAPES: Mapping[str, Sequence[int]] = {"x": (4, 8), "scale": (8,)}
LIMIT = 2000
"""Characters kept of an error."""


def main() -> None:
    """Go through the stages."""
    request = json.loads(sys.argv[1])
    answer = Answer(error=None, build=None, has_session=False, session=None, run_error=None, cpu_error=None)
    answer.tell("import")
    try:
        onnxruntime = load_onnxruntime()
    except BaseException as problem:  # whatever stops the import is what was asked for
        answer.end(error=of_error(problem, LIMIT))
    build = describe(onnxruntime)
    has_cuda = CUDA in (build["available"] or ())
    sends = None
    with contextlib.suppress(Exception):
        sends = holds_a_telemetry_client()
    answer.facts.update(build=build, sends=sends, has_session=hasattr(onnxruntime, "InferenceSession"))
    if answer.facts["has_session"]:
        answer.tell("cpu")
        _, answer.facts["cpu_error"] = run(onnxruntime, [CPU])
        if request["gpu"] and has_cuda:
            answer.tell("gpu")
            with contextlib.suppress(Exception):
                preload(onnxruntime)
            answer.facts["session"], answer.facts["run_error"] = run(onnxruntime, [CUDA, CPU])
    if has_cuda:
        answer.tell("libraries")
        answer.facts["libraries"] = find_libraries(request["names"])
    answer.end()


def layer_norm() -> bytes:
    """Return a layer normalization, whose kernels are ONNX Runtime's own on every device."""
    attributes = (int_attribute("axis", 1), float_attribute("epsilon", 1e-5))
    return model("LayerNormalization", list(SHAPES.items()), ("y", SHAPES["x"]), attributes)


def run(onnxruntime: Any, providers: Sequence[str]) -> tuple[Any, str | None]:
    """Make a session and run it once; return the session's providers (None: no session) and what went wrong."""
    try:
        import numpy as np

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(layer_norm(), options, providers=list(providers))
    except Exception as problem:  # whatever is raised is the answer
        return None, of_error(problem, LIMIT)
    got = list(session.get_providers())
    try:
        session.run(None, {name: np.ones(shape, "float32") for name, shape in SHAPES.items()})
    except Exception as problem:  # as above
        return got, of_error(problem, LIMIT)
    return got, None


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
    for path in mapped_files():
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
