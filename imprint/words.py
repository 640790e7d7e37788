"""The words that documents, state and code share, each kind in one place; the type checker holds everything to them."""

from __future__ import annotations

from typing import Final, Literal, get_args

AskedDevice = Literal["cpu", "gpu", "auto"]
"""What `model.device` may be; `auto` plans as `gpu` does, without insisting."""

RunsOn = Literal["cpu", "gpu", "none"]
"""What is computed on in fact."""

NvidiaStatus = Literal[
    "ok", "none", "driver-missing", "no-device", "bad-visible-devices", "driver-mismatch", "compat-unsupported",
    "uvm-unavailable", "timeout", "error",
]  # fmt: skip
"""How NVIDIA's driver answered; None is unknown."""

GpuKind = Literal["discrete", "integrated", "software"]

BuildKind = Literal["cpu", "cuda", "portable"]

How = Literal["native", "ptx"]
"""How a wheel's code runs on a GPU."""

GateOutcome = Literal["pass", "refused", "not-reached"]

Outcome = Literal["ok", "failed", "inconclusive", "crashed"]
"""How a check ended."""

FailureKind = Literal[
    "no-kernel", "library-missing", "conv-failed", "matmul-failed", "ort-failed", "wrong-numbers", "wrong-device",
    "provider-failed", "import-failed", "not-started", "crashed", "timeout", "out-of-memory", "busy", "killed",
]  # fmt: skip
"""How a check that is not ok ended: failed up to `not-started`, then crashed, then inconclusive."""

Origin = Literal["flag", "env", "file", "default"]
"""What decided the value of a key."""

FindingStatus = Literal["ok", "warning", "error", "skipped"]
"""What a finding of doctor's amounts to."""

RemedyKind = Literal["command", "file", "person"]
"""What a remedy is: a command of ours, a change to a file, or something that somebody does."""

DEVICES: tuple[AskedDevice, ...] = get_args(AskedDevice)
NVIDIA_STATUSES: tuple[NvidiaStatus, ...] = get_args(NvidiaStatus)
GPU_KINDS: tuple[GpuKind, ...] = get_args(GpuKind)

CPU_PROVIDER: Final = "CPUExecutionProvider"
CUDA_PROVIDER: Final = "CUDAExecutionProvider"
"""ONNX Runtime's names for what computes; `inside/loading.py` has them too, since a target sees nothing of ours."""
