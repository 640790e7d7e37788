"""What a check of a target proved, as values: which outcome, which kind, and each step apart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from imprint.planning.model import Device
from imprint.runtime.check.reads import Needs
from imprint.values import ABSENT, Absent, Record
from imprint.words import CPU_PROVIDER, CUDA_PROVIDER, FailureKind, Outcome

CPU, CUDA = CPU_PROVIDER, CUDA_PROVIDER

STEPS = ("conv", "matmul", "ort")
"""In the order they run: a convolution (cuDNN), a matrix product (cuBLAS), ONNX Runtime's own kernels."""


class Step(Record):
    """One computation: whether its numbers are right, the largest relative error, or why there is none.

    `placed` says how many nodes each provider was given, None where that is not known.
    """

    ok: bool
    error: str | None = None
    max_error: float | None = None
    seconds: float | None = None
    placed: Mapping[str, int] | None = None


class GpuMemory(Record):
    """The GPU's memory around the check, in bytes."""

    total_bytes: int
    used_before_bytes: int
    used_after_bytes: int


class Share(Record):
    """What one provider was given of a model; a share is None where there is nothing to share."""

    nodes: int
    share_of_nodes: float | None
    share_of_time: float | None


class OnCpu(Record):
    """An operation that ran on the CPU, whether that is normal, and why."""

    op: str
    nodes: int
    normal: bool
    reason: str


class Placement(Record):
    """Where one model ran. `runs`: it computed, and on the provider that was asked for.

    `provider` is the session's first, None when it did not come that far; `error` one line on why it did not run.
    """

    model: str
    runs: bool
    provider: str | None
    error: str | None
    providers: Mapping[str, Share]
    on_cpu: tuple[OnCpu, ...]

    @property
    def misplaced(self) -> tuple[str, ...]:
        """The operations on the CPU that belong on the GPU."""
        return tuple(dict.fromkeys(row.op for row in self.on_cpu if not row.normal))


class CheckedDevice(Record):
    """What a check ran on; a GPU has its names besides."""

    kind: Literal["cpu", "gpu"]
    provider: str
    index: int | Absent | None = ABSENT
    uuid: str | Absent | None = ABSENT
    name: str | Absent | None = ABSENT


class CheckReport(Record):
    """A check as `imprint check` shows it. `recorded` is there where that command made it."""

    outcome: Outcome
    kind: FailureKind | None
    detail: str | None
    library: str | None
    wanted_by: str | None
    wheel: str | None
    device: CheckedDevice
    package: str | None
    version: str | None
    steps: Mapping[str, Step]
    memory: GpuMemory | None
    libraries: Mapping[str, str]
    lacks: tuple[str, ...]
    placement: Placement | None = None
    recorded: bool | Absent = ABSENT


class CheckResult(Record):
    """What a check proved.

    `kind` says how a check ended that is not ok. `detail` is one sentence fragment, never the libraries' own text at
    length.

    `library` is the file that is missing or broken, `wanted_by` the file that wanted it, `wheel` the distribution that
    supplies it. `lacks` names packages that embedding needs besides and that cannot be imported, `mapped` the system's
    shared libraries that were loaded, `reads` the newest models that the build takes. `memory` is there where
    the driver told; `libraries` the CUDA libraries that were loaded, path by file name.
    """

    outcome: Outcome
    kind: FailureKind | None
    provider: str
    device: Device | None
    detail: str | None = None
    library: str | None = None
    wanted_by: str | None = None
    steps: Mapping[str, Step] = {}
    package: str | None = None
    version: str | None = None
    wheel: str | None = None
    memory: GpuMemory | None = None
    libraries: Mapping[str, str] = {}
    lacks: tuple[str, ...] = ()
    mapped: tuple[str, ...] = ()
    reads: Needs | None = None

    @property
    def ok(self) -> bool:
        """Whether the target computes what it should, where it should."""
        return self.outcome == "ok"

    @property
    def report(self) -> CheckReport:
        """What is shown of it."""
        named = () if self.device is None else (self.device.index, self.device.uuid, self.device.name)
        return CheckReport(
            outcome=self.outcome,
            kind=self.kind,
            detail=self.detail,
            library=self.library,
            wanted_by=self.wanted_by,
            wheel=self.wheel,
            device=CheckedDevice("cpu" if self.provider == CPU else "gpu", self.provider, *named),
            package=self.package,
            version=self.version,
            steps=self.steps,
            memory=self.memory,
            libraries=self.libraries,
            lacks=self.lacks,
        )
