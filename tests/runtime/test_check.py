from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from imprint.planning.model import Device
from imprint.probing.host import ChildResult
from imprint.runtime.check.children import facts_in
from imprint.runtime.check.run import CHECK_ID, CPU, CUDA, CheckResult, judge

GPU = Device(0, "GPU-1", "NVIDIA L4")
FALLBACK = "Fail: This session contains graph nodes that are assigned to the default CPU EP, but fallback to CPU EP …"


def judged(provider: str, device: Device | None, ended: ChildResult) -> CheckResult:
    return judge(provider, device, ended, facts_in(ended.stdout))


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


def _ended(
    steps: dict[str, Any], *, stderr: str = "", error: str | None = None, noise: str = "", **more: object
) -> ChildResult:
    build = {"package": "onnxruntime-gpu", "version": "1.31.1", "cuda": "13.0", "available": [CUDA, CPU]}
    facts = {"provider": CUDA, "error": error, "build": build, "steps": steps, "complete": True} | more
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
    "no code, says cuDNN": (
        _ended(GOOD | {"conv": _raised("CUDNN failure 3008: CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH ; GPU=0")}),
        "failed",
        "no-kernel",
    ),
    "PTX too new for the driver": (
        _ended(
            GOOD | {"ort": _raised("CUDA failure 222: the provided PTX was compiled with an unsupported toolchain.")}
        ),
        "failed",
        "no-kernel",
    ),
    "wrong numbers": (_ended(GOOD | {"matmul": _step(max_error=0.5)}), "failed", "wrong-numbers"),
    "not a number": (_ended(GOOD | {"conv": _step(max_error=None)}), "failed", "wrong-numbers"),
    "silently on the CPU": (_ended(GOOD | {"conv": _step(providers=[CPU])}), "failed", "wrong-device"),
    "one node on the CPU": (_ended(GOOD | {"ort": _step(placed={CPU: 1})}), "failed", "wrong-device"),
    "a step is missing": (_ended({"conv": _step()}), "failed", "matmul-failed"),
    "import fails": (_ended({}, error="ImportError: no"), "failed", "import-failed"),
    "out of memory": (
        _ended(GOOD | {"conv": _raised("CUDA failure 2: out of memory ; GPU=0")}),
        "inconclusive",
        "out-of-memory",
    ),
    "out of memory, says cuBLAS": (
        _ended(GOOD | {"matmul": _raised("CUBLAS failure 3: CUBLAS_STATUS_ALLOC_FAILED ; GPU=0 ; hostname=h")}),
        "inconclusive",
        "out-of-memory",
    ),
    "a full GPU explains any failure": (
        _ended(
            GOOD | {"matmul": _raised("CUBLAS failure 1: CUBLAS_STATUS_NOT_INITIALIZED ; GPU=0")},
            memory={"total_bytes": 8 << 30, "used_before_bytes": (8 << 30) - (100 << 20), "used_after_bytes": 8 << 30},
        ),
        "inconclusive",
        "out-of-memory",
    ),
    "out of memory while importing": (_ended({}, error="MemoryError: "), "inconclusive", "out-of-memory"),
    "an abort for want of memory": (
        ChildResult(-6, stderr="terminate called after throwing an instance of 'std::bad_alloc'"),
        "inconclusive",
        "out-of-memory",
    ),
    "the device went away": (
        _ended(dict.fromkeys(GOOD, _raised("CUDA failure 100: no CUDA-capable device ; GPU=-1", providers=None))),
        "inconclusive",
        "busy",
    ),
    "driver too old": (
        _ended(dict.fromkeys(GOOD, _raised("CUDA failure 35: CUDA driver version is insufficient", providers=None))),
        "failed",
        "provider-failed",
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
    "too many processes": (
        ChildResult(None, not_started="[Errno 11] Resource temporarily unavailable: 'python'"),
        "inconclusive",
        "out-of-memory",
    ),
    "stuck in the kernel": (ChildResult(None), "inconclusive", "killed"),
    "leaves in the middle of a step": (_ended({}, complete=False, at="matmul"), "failed", "matmul-failed"),
    "no answer": (ChildResult(1, stderr="ModuleNotFoundError: No module named 'encodings'"), "failed", "import-failed"),
    "no memory for python": (ChildResult(1, stderr="MemoryError"), "inconclusive", "out-of-memory"),
    "garbage": (ChildResult(0, stdout="\x00\xff" * 1000), "failed", "import-failed"),
    "an answer of the wrong shape": (
        ChildResult(
            0, stdout='{"complete": 1, "memory": 7, "libraries": [], "steps": {"conv": 1, "matmul": [], "ort": null}}'
        ),
        "failed",
        "provider-failed",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_every_end_has_its_outcome_and_kind(case: str) -> None:
    ended, outcome, kind = CASES[case]
    result = judged(CUDA, GPU, ended)
    assert (result.outcome, result.kind) == (outcome, kind), result.detail
    assert (result.detail is None) == result.ok
    json.dumps(result.report.to_json(), allow_nan=False)


def test_a_missing_library_is_named_with_the_file_that_wanted_it() -> None:
    result = judged(CUDA, GPU, _ended(NOT_LOADED, stderr=MISSING))
    assert (result.library, result.wanted_by) == ("libcublasLt.so.13", "libonnxruntime_providers_cuda.so")
    assert result.wheel == "nvidia-cublas"
    assert result.detail == (
        "libcublasLt.so.13, which libonnxruntime_providers_cuda.so needs, was not found;"
        " the wheel `nvidia-cublas` supplies it"
    )


NO_CUDNN = "cuDNN is not available. Install cuDNN, update the system library search path, or set enable_cudnn=0 to …"


@pytest.mark.skipif(sys.platform == "win32", reason="named as on Linux")
def test_a_convolution_without_cudnn_names_what_is_missing() -> None:
    result = judged(CUDA, GPU, _ended(GOOD | {"conv": _raised(NO_CUDNN)}))
    assert (result.kind, result.library, result.wheel) == ("conv-failed", "libcudnn.so.9", "nvidia-cudnn-cu13")
    assert result.wanted_by == "libonnxruntime_providers_cuda.so"
    loaded = _ended(GOOD | {"conv": _raised(NO_CUDNN)}, libraries={"libcudnn.so.9": "/usr/lib/libcudnn.so.9"})
    assert judged(CUDA, GPU, loaded).library is None


def test_a_crash_names_its_step_and_the_part_of_cudnn_that_is_missing() -> None:
    so_far = json.dumps({"steps": {}, "at": "conv", "complete": False, "build": {"cuda": "13.0"}})
    talk = "Unable to load any of {libcudnn_ops.so.9.16.0, libcudnn_ops.so.9.16, libcudnn_ops.so.9, libcudnn_ops.so}\n"
    result = judged(CUDA, GPU, ChildResult(-6, stdout=so_far, stderr=talk))
    assert (result.outcome, result.kind) == ("crashed", "crashed")
    assert (result.library, result.wheel) == ("libcudnn_ops.so.9.16.0", "nvidia-cudnn-cu13")
    assert result.detail is not None
    assert result.detail.startswith("the check crashed with SIGABRT in the step conv: ")


def test_a_damaged_library_is_not_called_missing() -> None:
    """The provider only says that the name leads nowhere: its file was refused when it was loaded before."""
    preload = (
        "Failed to load /v/nvidia/cu13/lib/libcublasLt.so.13: /v/nvidia/cu13/lib/libcublasLt.so.13: file too short\n"
        "Failed to load /v/nvidia/cu13/lib/libcublas.so.13: libcublasLt.so.13: cannot open shared object file: No\n"
    )
    result = judged(CUDA, GPU, _ended(NOT_LOADED, stderr=MISSING, preload=preload))
    assert (result.kind, result.library, result.wheel) == ("provider-failed", "libcublasLt.so.13", "nvidia-cublas")
    assert result.detail is not None
    assert "file too short" in result.detail


def test_a_driver_without_a_function_is_too_old() -> None:
    talk = MISSING.partition("libcublasLt")[0] + "/x/libonnxruntime_providers_cuda.so: undefined symbol: cuTensorMapX\n"
    result = judged(CUDA, GPU, _ended(NOT_LOADED, stderr=talk))
    assert result.kind == "provider-failed"
    assert result.detail == (
        "libonnxruntime_providers_cuda.so cannot be loaded: undefined symbol: cuTensorMapX;"
        " the NVIDIA driver is too old for this build"
    )


def test_windows_names_the_library_that_a_library_depends_on() -> None:
    talk = (
        'Error loading "C:\\v\\onnxruntime_providers_cuda.dll" which depends on "cublasLt64_13.dll" which is missing.'
    )
    result = judged(CUDA, GPU, _ended(dict.fromkeys(GOOD, _raised(talk, providers=None))))
    assert (result.library, result.wanted_by, result.wheel) == (
        "cublasLt64_13.dll",
        "onnxruntime_providers_cuda.dll",
        "nvidia-cublas",
    )


NOISY = (
    "RuntimeException: [ONNXRuntimeError] : 6 : RUNTIME_EXCEPTION : \x1b[1;31mNon-zero status while running X node. "
    "/onnxruntime_src/onnxruntime/core/providers/cuda/thing.cc:17 it broke ; hostname=secret-host ; "
    "file=/home/someone/x.cc\n" + "z" * 5000
)


def test_what_libraries_wrote_is_passed_on_in_one_short_line_without_paths_and_names() -> None:
    result = judged(CUDA, GPU, _ended(GOOD | {"ort": _raised(NOISY)}, stderr=NOISY))
    text = json.dumps(result.report.to_json())
    assert "Non-zero status" in text
    assert not {word for word in ("secret-host", "/home", "onnxruntime_src", "\\u001b", "\\n") if word in text}
    assert len(text) < 2500


def test_a_build_without_the_provider_is_the_wrong_device() -> None:
    ended = _ended(NOT_LOADED)
    ended = ChildResult(0, stdout=ended.stdout.replace(f'"{CUDA}", "{CPU}"]}}', f'"{CPU}"]}}'))
    assert judged(CUDA, GPU, ended).kind == "wrong-device"


def test_a_verdict_counts_for_the_check_that_gave_it() -> None:
    assert len(CHECK_ID) == 16
