"""Runs three small computations with one provider of ONNX Runtime and says what happened.

Arguments: PROVIDER, and the file to answer in. It judges nothing; `runtime/check/judgement.py` does. The planned GPU is
device 0 (CUDA_VISIBLE_DEVICES is set).
"""

# ruff: noqa: ANN401 - numpy and ONNX Runtime are there only where this runs, and untyped in part
from __future__ import annotations

import contextlib
import ctypes
import importlib
import os
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from .answering import Answer, of_error
from .loading import CPU, CUDA, describe, load_onnxruntime, mapped_files, preload
from .one_node import IR_VERSION, OPSET, float_attribute, int_attribute, model

SEED = 20261129
FILES_LIMIT = 300
NEEDED = {"tokenizers": ("Tokenizer",), "orjson": ("dumps", "OPT_APPEND_NEWLINE", "OPT_SERIALIZE_NUMPY")}
NEWEST_IR, NEWEST_OPSET = 40, 80  # where the search for what a runtime reads ends
REFUSAL = re.compile(r"unsupported model ir version|under development", re.IGNORECASE)
"""What ONNX Runtime says of a model that is too new for it (1.15 to 1.32)."""
LIBRARY = re.compile(r"lib(cuda|cudart|cublas|cublasLt|cudnn|curand|cufft|nvrtc|nvJitLink)[\w-]*\.so", re.ASCII)

Random = Callable[[Sequence[int]], Any]
Case = tuple[bytes, Mapping[str, Any], Any]


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
    if provider != CPU:
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
        seen["error"] = of_error(problem)
    seen["seconds"] = round(time.perf_counter() - started, 4)
    return seen


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


def cuda_libraries() -> dict[str, str]:
    """Return the CUDA libraries that this process holds, by file name."""
    return {Path(path).name: path for path in mapped_files() if LIBRARY.match(Path(path).name)}


def outside_files() -> list[str]:
    """Return the shared libraries from outside the environment that this process holds."""
    own = os.path.realpath(sys.prefix) + os.sep
    return sorted({path for path in mapped_files() if ".so" in Path(path).name and not path.startswith(own)})[
        :FILES_LIMIT
    ]


def missing_packages() -> list[str]:
    """Return which of the packages that embedding needs beside ONNX Runtime do not give it what it uses."""
    missing = []
    for name, used in NEEDED.items():
        try:
            package = importlib.import_module(name)
            for attribute in used:
                getattr(package, attribute)
        except Exception:  # whatever stops the import, embedding would meet it too
            missing.append(name)
    return missing


def newest_that_is_read(onnxruntime: Any) -> dict[str, int]:
    """Return the newest IR version and the newest operator set of which this build makes a session.

    Raises what a session raises that is refused for another reason, as for want of threads: then nothing is known.
    """
    quiet = onnxruntime.SessionOptions()
    quiet.log_severity_level = 4

    def reads(ir: int, opset: int) -> bool:
        content = model("Identity", [("x", (1,))], ("y", (1,)), ir=ir, opset=opset)
        try:
            onnxruntime.InferenceSession(content, quiet, providers=[CPU])
        except Exception as problem:
            if "NOT_IMPLEMENTED" in str(problem):
                return True  # it was read; this one operator has no kernel of that age
            if REFUSAL.search(str(problem)) is None:
                raise
            return False
        return True

    ir, opset = IR_VERSION, OPSET
    while ir < NEWEST_IR and reads(ir + 1, OPSET):
        ir += 1
    while opset < NEWEST_OPSET and reads(IR_VERSION, opset + 1):
        opset += 1
    return {"ir": ir, "opset": opset}


def main() -> None:
    """Load ONNX Runtime, run every step, and tell before each what is known so far."""
    provider = sys.argv[1]
    answer = Answer(provider=provider, error=None, build=None, steps={})
    on_gpu = provider != CPU
    try:
        import numpy as np  # here: a broken package is one of the answers

        onnxruntime = load_onnxruntime()
        answer.facts["build"] = describe(onnxruntime)
        if provider == CUDA:
            answer.facts["preload"] = preload(onnxruntime)
    except Exception as problem:
        answer.end(error=of_error(problem))
    before = gpu_memory() if on_gpu else None
    alive: list[Any] = []
    for name, step in STEPS:
        answer.tell(name)
        answer.facts["steps"][name] = run_step(onnxruntime, np, provider, step, alive)
    after = gpu_memory() if on_gpu else None
    if before and after:
        memory = {"total_bytes": before[0], "used_before_bytes": before[1], "used_after_bytes": after[1]}
        answer.facts["memory"] = memory
    answer.facts.update(libraries=cuda_libraries() if on_gpu else {}, mapped=outside_files(), lacks=missing_packages())
    with contextlib.suppress(Exception):  # a fact to have, not one to fail for
        answer.facts["reads"] = newest_that_is_read(onnxruntime)
    answer.end()
