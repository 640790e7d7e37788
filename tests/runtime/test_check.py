from __future__ import annotations

import ast
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from imprint.planning.model import Device
from imprint.probing.host import ChildResult
from imprint.runtime.check import CHECK_ID, CHILD, CPU, CUDA, child_environment, judge, run_check

GPU = Device(0, "GPU-1", "NVIDIA L4")
FALLBACK = "Fail: This session contains graph nodes that are assigned to the default CPU EP, but fallback to CPU EP …"


def _step(**differs: object) -> dict[str, Any]:
    return {
        "ok": True,
        "error": None,
        "providers": [CUDA, "CPUExecutionProvider"],
        "max_error": 1e-7,
        "seconds": 0.1,
    } | differs


def _raised(error: str, **differs: object) -> dict[str, Any]:
    return _step(ok=False, error=error, max_error=None, **differs)


def _ended(steps: dict[str, Any], *, stderr: str = "", error: str | None = None, noise: str = "") -> ChildResult:
    build = {"package": "onnxruntime-gpu", "version": "1.31.1", "available": [CUDA, CPU]}
    facts = {"provider": CUDA, "error": error, "build": build, "steps": steps}
    return ChildResult(0, stdout=f"{noise}\n{json.dumps(facts)}\n", stderr=stderr)


GOOD = {"conv": _step(), "matmul": _step(), "ort": _step()}
NOT_LOADED = dict.fromkeys(("conv", "matmul", "ort"), _raised(FALLBACK, providers=None))
MISSING = (
    "2026-11-29 [E:onnxruntime:Default, provider_bridge_ort.cc:2458 operator()] [ONNXRuntimeError] : 1 : FAIL : "
    "Failed to load library /x/onnxruntime/capi/libonnxruntime_providers_cuda.so with error: libcublasLt.so.13: "
    "cannot open shared object file: No such file or directory"
)

CASES: dict[str, tuple[ChildResult, str, str | None]] = {
    "all right": (_ended(GOOD), "ok", None),
    "noise before the answer": (_ended(GOOD, noise="Failed to load libfoo\n{}\n[1]"), "ok", None),
    "library missing": (_ended(NOT_LOADED, stderr=MISSING), "failed", "library-missing"),
    "provider does not come up": (_ended(NOT_LOADED), "failed", "provider-failed"),
    "cuDNN missing": (_ended(GOOD | {"conv": _raised("cuDNN is not available")}), "failed", "conv-failed"),
    "cuBLAS broken": (_ended(GOOD | {"matmul": _raised("CUBLAS failure 1")}), "failed", "matmul-failed"),
    "own kernels broken": (_ended(GOOD | {"ort": _raised("something")}), "failed", "ort-failed"),
    "no kernel": (
        _ended(GOOD | {"ort": _raised("CUDA failure 209: no kernel image is available for execution")}),
        "failed",
        "no-kernel",
    ),
    "wrong numbers": (_ended(GOOD | {"matmul": _step(max_error=0.5)}), "failed", "wrong-numbers"),
    "not a number": (_ended(GOOD | {"conv": _step(max_error=None)}), "failed", "wrong-numbers"),
    "silently on the CPU": (_ended(GOOD | {"conv": _step(providers=[CPU])}), "failed", "wrong-device"),
    "a step is missing": (_ended({"conv": _step()}), "failed", "matmul-failed"),
    "import fails": (_ended({}, error="ImportError: no"), "failed", "import-failed"),
    "out of memory": (
        _ended(GOOD | {"conv": _raised("CUDA failure 2: out of memory ; GPU=0")}),
        "inconclusive",
        "out-of-memory",
    ),
    "busy": (
        _ended(GOOD | {"conv": _raised("CUDA failure 46: all CUDA-capable devices are busy or unavailable")}),
        "inconclusive",
        "busy",
    ),
    "segfault": (ChildResult(-11), "crashed", "crashed"),
    "bus error": (ChildResult(-7), "crashed", "crashed"),
    "illegal instruction": (ChildResult(-4), "crashed", "crashed"),
    "abort": (ChildResult(-6), "crashed", "crashed"),
    "killed from outside": (ChildResult(-9), "inconclusive", "killed"),
    "terminated": (ChildResult(-15), "inconclusive", "killed"),
    "timeout": (ChildResult(-9, timed_out=True), "inconclusive", "timeout"),
    "no interpreter": (ChildResult(None, not_started="[Errno 2]"), "failed", "not-started"),
    "no answer": (ChildResult(1, stderr="ModuleNotFoundError: No module named 'encodings'"), "failed", "import-failed"),
    "no memory for python": (ChildResult(1, stderr="MemoryError"), "inconclusive", "out-of-memory"),
    "garbage": (ChildResult(0, stdout="\x00\xff" * 1000), "failed", "import-failed"),
    "an answer of the wrong shape": (
        ChildResult(0, stdout='{"steps": {"conv": 1, "matmul": [], "ort": null}}'),
        "failed",
        "provider-failed",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_every_end_has_its_outcome_and_kind(case: str) -> None:
    ended, outcome, kind = CASES[case]
    result = judge(CUDA, GPU, ended)
    assert (result.outcome, result.kind) == (outcome, kind), result.detail
    assert (result.detail is None) == result.ok
    json.dumps(result.to_json(), allow_nan=False)


def test_a_missing_library_is_named_with_the_file_that_wanted_it() -> None:
    result = judge(CUDA, GPU, _ended(NOT_LOADED, stderr=MISSING))
    assert (result.library, result.wanted_by) == ("libcublasLt.so.13", "libonnxruntime_providers_cuda.so")


def test_a_build_without_the_provider_is_the_wrong_device() -> None:
    ended = _ended(NOT_LOADED)
    ended = ChildResult(0, stdout=ended.stdout.replace(f'"{CUDA}", "{CPU}"]}}', f'"{CPU}"]}}'))
    assert judge(CUDA, GPU, ended).kind == "wrong-device"


def test_the_planned_gpu_is_the_only_one_the_child_sees() -> None:
    environ = {"PATH": "/bin", "PYTHONPATH": "/evil", "CUDA_VISIBLE_DEVICES": "1", "LD_LIBRARY_PATH": "/lib"}
    pinned = child_environment(environ, GPU)
    assert pinned["CUDA_VISIBLE_DEVICES"] == "GPU-1"
    assert pinned["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
    assert "PYTHONPATH" not in pinned
    assert pinned["LD_LIBRARY_PATH"] == "/lib"
    assert child_environment(environ, Device(3, None, None))["CUDA_VISIBLE_DEVICES"] == "3"
    assert child_environment(environ, None)["CUDA_VISIBLE_DEVICES"] == "1"


def test_the_child_stands_alone_and_keeps_to_python_3_9() -> None:
    tree = ast.parse(CHILD.read_text("utf-8"), feature_version=(3, 9))
    imported = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    imported |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not {name for name in imported if name.startswith("imprint")}
    assert len(CHECK_ID) == 16


@pytest.mark.parametrize(
    ("body", "outcome", "kind"),
    [
        ("raise ImportError('libfoo')", "failed", "import-failed"),
        ("import os; os.kill(os.getpid(), 11)", "crashed", "crashed"),
        ("import os; os.kill(os.getpid(), 9)", "inconclusive", "killed"),
        ("import time; time.sleep(60)", "inconclusive", "timeout"),
        ("import sys; sys.stdout.write('x' * 10_000_000); raise MemoryError", "failed", "import-failed"),
        ("import os; os._exit(3)", "failed", "import-failed"),
    ],
)
def test_what_a_target_does_to_its_child_is_an_answer(tmp_path: Path, body: str, outcome: str, kind: str) -> None:
    packages = tmp_path / "packages"
    for name in ("numpy", "onnxruntime"):
        (packages / name).mkdir(parents=True)
        (packages / name / "__init__.py").write_text(body)
    # A stand-in for an interpreter whose packages are broken: -I would ignore PYTHONPATH.
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\nshift\nPYTHONPATH='{packages}' exec '{sys.executable}' \"$@\"\n")
    python.chmod(0o755)
    result = run_check(python, None, os.environ, deadline=3 if kind == "timeout" else 30)
    assert (result.outcome, result.kind) == (outcome, kind), result.detail
