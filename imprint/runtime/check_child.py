"""Runs three small computations with one provider of ONNX Runtime and says what happened, as one line of JSON.

This file runs alone, with a target's interpreter: it imports nothing of imprint, needs only what a target holds, and
keeps to Python 3.9. It judges nothing; `check.py` does. The planned GPU is device 0 (CUDA_VISIBLE_DEVICES is set).

Call: `python -I check_child.py PROVIDER [FILE]`. What is known so far is appended to FILE as each step begins (`at`
names it), so that a crash can be placed; the last line is the answer, with `complete`. Without FILE, or where it cannot
be written, they go to stdout. Whatever libraries print goes to stderr.
"""

# ruff: noqa: ANN401 - numpy and ONNX Runtime are there only where this runs, and untyped in part
from __future__ import annotations

import contextlib
import ctypes
import importlib
import io
import json
import os
import re
import struct
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

SEED = 20261129
OPSET = 17  # every ONNX Runtime from 1.12 on reads IR 8 with opset 17; newer ones are refused by some builds
IR_VERSION = 8
FLOAT = 1
TEXT_LIMIT = 4000
FILES_LIMIT = 300
NEEDED = ("tokenizers", "orjson")
NEWEST_IR, NEWEST_OPSET = 40, 80  # where the search for what a runtime reads ends
LIBRARY = re.compile(r"lib(cuda|cudart|cublas|cublasLt|cudnn|curand|cufft|nvrtc|nvJitLink)[\w-]*\.so", re.ASCII)

Random = Callable[[Sequence[int]], Any]
Case = tuple[bytes, Mapping[str, Any], Any]


def varint(value: int) -> bytes:
    """Return a protobuf varint."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(tag: int, value: int) -> bytes:
    """Return a protobuf field that holds an integer."""
    return varint(tag << 3) + varint(value)


def text(tag: int, value: str | bytes) -> bytes:
    """Return a protobuf field that holds a string, or bytes, or another message."""
    content = value.encode() if isinstance(value, str) else value
    return varint(tag << 3 | 2) + varint(len(content)) + content


def value_info(name: str, shape: Sequence[int]) -> bytes:
    """Return a ValueInfoProto for a float tensor of known shape."""
    dims = b"".join(text(1, number(1, size)) for size in shape)
    return text(1, name) + text(2, text(1, number(1, FLOAT) + text(2, dims)))


def float_attribute(name: str, value: float) -> bytes:
    """Return an AttributeProto for a float."""
    return text(1, name) + varint(2 << 3 | 5) + struct.pack("<f", value) + number(20, 1)


def int_attribute(name: str, value: int) -> bytes:
    """Return an AttributeProto for an integer."""
    return text(1, name) + number(3, value) + number(20, 2)


def model(
    operator: str,
    inputs: Sequence[tuple[str, Sequence[int]]],
    output: tuple[str, Sequence[int]],
    attributes: Sequence[bytes] = (),
) -> bytes:
    """Return a ModelProto with one node. `inputs` and `output` are pairs of name and shape.

    All operands are inputs, so nothing can be folded away before it runs.
    """
    node = b"".join(text(1, name) for name, _ in inputs) + text(2, output[0]) + text(4, operator)
    node += b"".join(text(5, item) for item in attributes)
    graph = text(1, node) + text(2, "check")
    graph += b"".join(text(11, value_info(name, shape)) for name, shape in inputs)
    graph += text(12, value_info(*output))
    return number(1, IR_VERSION) + text(7, graph) + text(8, text(1, "") + number(2, OPSET))


def conv(np: Any, random: Random) -> Case:
    """Return model, operands and float64 result of a convolution (cuDNN on CUDA)."""
    x, w = random((2, 8, 24, 24)), random((16, 8, 3, 3))
    windows = np.lib.stride_tricks.sliding_window_view(x.astype("f8"), (3, 3), axis=(2, 3))
    wanted = np.einsum("nchwij,ocij->nohw", windows, w.astype("f8"))
    operands = {"x": x, "w": w}
    return model("Conv", shapes(operands), ("y", wanted.shape)), operands, wanted


def matmul(_: Any, random: Random) -> Case:
    """Return model, operands and float64 result of a matrix product (cuBLAS on CUDA)."""
    a, b = random((48, 96)), random((96, 64))
    wanted = a.astype("f8") @ b.astype("f8")
    operands = {"a": a, "b": b}
    return model("MatMul", shapes(operands), ("y", wanted.shape)), operands, wanted


def layer_norm(np: Any, random: Random) -> Case:
    """Return model, operands and float64 result of a layer normalization (ONNX Runtime's own kernels everywhere)."""
    x, scale = random((32, 384)), random((384,))
    wide = x.astype("f8")
    centred = wide - wide.mean(-1, keepdims=True)
    wanted = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * scale.astype("f8")
    operands = {"x": x, "scale": scale}
    attributes = (int_attribute("axis", 1), float_attribute("epsilon", 1e-5))
    return model("LayerNormalization", shapes(operands), ("y", wanted.shape), attributes), operands, wanted


STEPS = (("conv", conv), ("matmul", matmul), ("ort", layer_norm))


def shapes(operands: Mapping[str, Any]) -> list[tuple[str, Sequence[int]]]:
    """Return names and shapes of operands, in order."""
    return [(name, array.shape) for name, array in operands.items()]


def options_for(onnxruntime: Any, provider: str) -> Any:
    """Return session options under which nothing can quietly run elsewhere than on `provider`."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    if provider != "CPUExecutionProvider":
        options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    if hasattr(onnxruntime.InferenceSession, "get_provider_graph_assignment_info"):
        options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    return options


def placement_of(session: Any) -> Any:
    """Return how many nodes each provider was given, None where the build does not tell (tried on 1.31.1: it does)."""
    if not hasattr(session, "get_provider_graph_assignment_info"):
        return None
    placed: dict[str, int] = {}
    with contextlib.suppress(Exception):  # a fact to have, not one to fail for
        for part in session.get_provider_graph_assignment_info():
            placed[part.ep_name] = placed.get(part.ep_name, 0) + len(part.get_nodes())
    return placed or None


def run_step(
    onnxruntime: Any, np: Any, provider: str, step: Callable[[Any, Random], Case], alive: list[Any]
) -> dict[str, Any]:
    """Run one computation; return what was seen, with the largest error relative to the largest wanted value.

    The session is put into `alive`, so that the memory it takes can be seen afterwards.
    """
    seen: dict[str, Any] = {"ok": False, "error": None, "providers": None, "placed": None, "max_error": None}
    seen["seconds"] = None
    started = time.perf_counter()
    generator = np.random.RandomState(SEED)
    try:
        content, operands, wanted = step(np, lambda shape: generator.standard_normal(shape).astype("f4"))
        session = onnxruntime.InferenceSession(
            content, options_for(onnxruntime, provider), providers=[provider], enable_fallback=0
        )
        alive.append(session)
        seen["providers"] = list(session.get_providers())
        seen["placed"] = placement_of(session)
        session.disable_fallback()
        got = session.run(None, operands)[0].astype("f8")
        error = float(np.abs(got - wanted).max() / np.abs(wanted).max()) if got.shape == wanted.shape else None
        # NaN is not JSON, and no error at all for a wrong shape or a NaN is what "unknown" means here.
        seen["max_error"] = error if error is not None and error < float("inf") else None
        seen["ok"] = True
    except MemoryError as problem:
        seen["error"] = f"out of memory: {problem}"
    except Exception as problem:  # whatever a provider raises is what we are here to report
        seen["error"] = f"{type(problem).__name__}: {problem}"[-TEXT_LIMIT:]
    seen["seconds"] = round(time.perf_counter() - started, 4)
    return seen


def describe_build(onnxruntime: Any) -> dict[str, Any]:
    """Return what the loaded package says it is."""
    info = None
    with contextlib.suppress(ImportError):
        info = importlib.import_module("onnxruntime.capi.build_and_package_info")
    return {
        "package": getattr(info, "package_name", None),
        "version": getattr(onnxruntime, "__version__", None),
        "cuda": getattr(info, "cuda_version", None),
        "file": getattr(onnxruntime, "__file__", None),
        "available": list(onnxruntime.get_available_providers()),
    }


def preload(onnxruntime: Any) -> str:
    """Load the libraries that wheels brought, as the package itself does, and return what it printed about it."""
    told = io.StringIO()
    with contextlib.redirect_stdout(told):
        if hasattr(onnxruntime, "preload_dlls"):
            onnxruntime.preload_dlls()
    return told.getvalue()[:TEXT_LIMIT]


def gpu_memory() -> Any:
    """Return (total, used) bytes of the GPU that CUDA_VISIBLE_DEVICES names by UUID, None where NVML does not answer.

    Slices (MIG) are not asked for: NVML knows them under other names.
    """
    uuid = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    if not uuid.startswith("GPU-"):
        return None
    try:
        if sys.platform == "win32":
            nvml = ctypes.CDLL("nvml.dll")
        else:
            nvml = ctypes.CDLL("libnvidia-ml.so.1")
        handle, numbers = ctypes.c_void_p(), (ctypes.c_ulonglong * 3)()  # nvmlMemory_t: total, free, used
        ok = (
            nvml.nvmlInit_v2() == 0
            and nvml.nvmlDeviceGetHandleByUUID(uuid.encode(), ctypes.byref(handle)) == 0
            and nvml.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(numbers)) == 0
        )
    except (OSError, AttributeError):
        return None
    return (numbers[0], numbers[0] - numbers[1]) if ok else None


def loaded_libraries() -> dict[str, str]:
    """Return the CUDA libraries that this process holds, by file name, on systems with /proc."""
    found: dict[str, str] = {}
    with contextlib.suppress(OSError), Path("/proc/self/maps").open(encoding="utf-8", errors="replace") as maps:
        for line in maps:
            path = "/" + line.rstrip("\n").partition("/")[2]
            if LIBRARY.match(Path(path).name):
                found[Path(path).name] = path
    return found


def mapped_files() -> list[str]:
    """Return the shared libraries from outside the environment that this process holds, on systems with /proc."""
    own = os.path.realpath(sys.prefix) + os.sep
    found = set()
    with contextlib.suppress(OSError), Path("/proc/self/maps").open(encoding="utf-8", errors="replace") as maps:
        for line in maps:
            path = "/" + line.rstrip("\n").partition("/")[2]
            if ".so" in Path(path).name and not path.startswith(own):
                found.add(path)
    return sorted(found)[:FILES_LIMIT]


def missing_packages() -> list[str]:
    """Return which of the packages that embedding needs beside ONNX Runtime cannot be imported."""
    missing = []
    for name in NEEDED:
        try:
            importlib.import_module(name)
        except Exception:  # whatever stops the import, embedding would meet it too
            missing.append(name)
    return missing


def newest_that_is_read(onnxruntime: Any) -> dict[str, int]:
    """Return the newest IR version and the newest operator set of which this build makes a session."""
    quiet = onnxruntime.SessionOptions()
    quiet.log_severity_level = 4

    def reads(ir: int, opset: int) -> bool:
        node = text(1, "x") + text(2, "y") + text(4, "Identity")
        graph = text(1, node) + text(2, "check") + text(11, value_info("x", (1,))) + text(12, value_info("y", (1,)))
        content = number(1, ir) + text(7, graph) + text(8, text(1, "") + number(2, opset))
        try:
            onnxruntime.InferenceSession(content, quiet, providers=["CPUExecutionProvider"])
        except Exception:  # whatever it says of it, it does not take such a model
            return False
        return True

    ir, opset = IR_VERSION, OPSET
    while ir < NEWEST_IR and reads(ir + 1, OPSET):
        ir += 1
    while opset < NEWEST_OPSET and reads(IR_VERSION, opset + 1):
        opset += 1
    return {"ir": ir, "opset": opset}


def observe(provider: str, tell: Callable[[Mapping[str, Any]], None]) -> dict[str, Any]:
    """Load ONNX Runtime and run every step; return the facts, and tell those known so far before each step."""
    facts: dict[str, Any] = {"provider": provider, "error": None, "build": None, "steps": {}, "complete": True}
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # it reads this as it loads; whoever starts this file sets it too
    try:
        import numpy as np  # here: a broken package is one of the answers
        import onnxruntime

        facts["build"] = describe_build(onnxruntime)
        if provider == "CUDAExecutionProvider":
            facts["preload"] = preload(onnxruntime)
    except Exception as problem:
        facts["error"] = f"{type(problem).__name__}: {problem}"[-TEXT_LIMIT:]
        return facts
    on_gpu = provider != "CPUExecutionProvider"
    before = gpu_memory() if on_gpu else None
    alive: list[Any] = []
    for name, step in STEPS:
        tell(dict(facts, at=name, complete=False))
        facts["steps"][name] = run_step(onnxruntime, np, provider, step, alive)
    after = gpu_memory() if on_gpu else None
    if before and after:
        facts["memory"] = {"total_bytes": before[0], "used_before_bytes": before[1], "used_after_bytes": after[1]}
    facts["libraries"] = loaded_libraries() if on_gpu else {}
    facts["mapped"] = mapped_files()
    facts["lacks"] = missing_packages()
    with contextlib.suppress(Exception):  # a fact to have, not one to fail for
        facts["reads"] = newest_that_is_read(onnxruntime)
    return facts


def main() -> None:
    """Observe, and write the facts where nothing else writes."""
    stdout = os.dup(1)
    os.dup2(2, 1)

    def tell(facts: Mapping[str, Any]) -> None:
        line = ("\n" + json.dumps(facts) + "\n").encode("ascii")
        try:
            with Path(sys.argv[2]).open("ab") as file:
                file.write(line)
        except (IndexError, OSError):
            os.write(stdout, line)

    tell(observe(sys.argv[1], tell))
    # Some providers crash in their destructors; what they computed is said already, and that is not our question.
    os._exit(0)


if __name__ == "__main__":
    main()
