"""What a check of a target proved, as values: which outcome, which kind, and each step apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from imprint.planning.model import Device
from imprint.runtime.check.reads import Needs

CPU = "CPUExecutionProvider"
CUDA = "CUDAExecutionProvider"

STEPS = ("conv", "matmul", "ort")
"""In the order they run: a convolution (cuDNN), a matrix product (cuBLAS), ONNX Runtime's own kernels."""


@dataclass(frozen=True, slots=True)
class Step:
    """One computation: whether its numbers are right, the largest relative error, or why there is none.

    `providers` are those of the session, `placed` how many nodes each was given; None where that is not known.
    """

    ok: bool
    error: str | None = None
    max_error: float | None = None
    seconds: float | None = None
    providers: tuple[str, ...] | None = None
    placed: Mapping[str, int] | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the step as `imprint check --json` has it."""
        return {
            "ok": self.ok,
            "error": self.error,
            "max_error": self.max_error,
            "seconds": self.seconds,
            "placed": None if self.placed is None else dict(self.placed),
        }


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What a check proved.

    `outcome` is ok, failed, crashed or inconclusive; `kind` says how, None when ok. failed: no-kernel,
    library-missing, conv-failed, matmul-failed, ort-failed, wrong-numbers, wrong-device, provider-failed,
    import-failed, not-started. crashed: crashed. inconclusive: timeout, out-of-memory, busy, killed. `detail` is one
    sentence fragment, never the libraries' own text at length.

    `library` is the file that is missing or broken, `wanted_by` the file that wanted it, `wheel` the distribution that
    supplies it. `lacks` names packages that embedding needs besides and that cannot be imported, `mapped` the system's
    shared libraries that were loaded, `reads` the newest models that the build takes. `memory` holds total_bytes,
    used_before_bytes and used_after_bytes of the GPU where the driver told; `libraries` the CUDA libraries that were
    loaded, path by file name.
    """

    outcome: str
    kind: str | None
    provider: str
    device: Device | None
    detail: str | None = None
    library: str | None = None
    wanted_by: str | None = None
    steps: Mapping[str, Step] = field(default_factory=dict)
    package: str | None = None
    version: str | None = None
    wheel: str | None = None
    memory: Mapping[str, int] | None = None
    libraries: Mapping[str, str] = field(default_factory=dict)
    lacks: tuple[str, ...] = ()
    mapped: tuple[str, ...] = ()
    reads: Needs | None = None

    @property
    def ok(self) -> bool:
        """Whether the target computes what it should, where it should."""
        return self.outcome == "ok"

    def to_json(self) -> dict[str, Any]:
        """Return the `data` of `imprint check --json`; `placement` is for whoever ran the model too."""
        device: dict[str, Any] = {"kind": "cpu" if self.provider == CPU else "gpu", "provider": self.provider}
        if self.device is not None:
            device |= {"index": self.device.index, "uuid": self.device.uuid, "name": self.device.name}
        return {
            "outcome": self.outcome,
            "kind": self.kind,
            "detail": self.detail,
            "library": self.library,
            "wanted_by": self.wanted_by,
            "wheel": self.wheel,
            "device": device,
            "package": self.package,
            "version": self.version,
            "steps": {name: step.to_json() for name, step in self.steps.items()},
            "memory": None if self.memory is None else dict(self.memory),
            "libraries": dict(self.libraries),
            "lacks": list(self.lacks),
            "placement": None,
        }
