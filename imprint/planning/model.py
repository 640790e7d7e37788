"""The values that planning works on: what was seen (facts), asked (request), recorded (verdicts) and decided (plan).

Every field may be None where a fact is unknown; unknown is never an empty string, -1 or 0. The JSON form of each
value has its fields as keys (`Record.to_json`), and `wire.py` reads it. Nothing here does I/O.
"""

from __future__ import annotations

from collections.abc import Mapping

from imprint.values import ABSENT, Absent, Document, Record, Value
from imprint.words import AskedDevice, GateOutcome, GpuKind, NvidiaStatus

# --- what was seen -----------------------------------------------------------------------------------------------


class Libc(Record):
    """The C library of a Linux machine: `glibc` or `musl`, and its version."""

    name: str | None = None
    version: str | None = None


class Platform(Record):
    """The operating system and the architecture of the target's interpreter."""

    os: str | None = None
    arch: str | None = None
    libc: Libc | None = None
    os_version: str | None = None
    wsl: bool | None = None
    container: bool | None = None
    jetson: bool | None = None


class Python(Record):
    """The target's interpreter; `abi` is like `cp312` or `cp313t`, None for the version's standard one."""

    version: str | None = None
    abi: str | None = None


class Cpu(Record):
    """The processor and main memory (MiB)."""

    name: str | None = None
    physical_cores: int | None = None
    memory_mib: int | None = None
    memory_free_mib: int | None = None
    flags: tuple[str, ...] | None = None


class Gpu(Record):
    """One NVIDIA GPU, or MIG slice, that a process here can use; memory in MiB."""

    index: int | None = None
    uuid: str | None = None
    name: str | None = None
    compute_capability: str | None = None
    memory_mib: int | None = None
    memory_free_mib: int | None = None
    integrated: bool | None = None
    mig: bool | None = None
    pci_bus_id: str | None = None


class Nvidia(Record):
    """What libcuda and the driver answered."""

    status: NvidiaStatus | None = None
    driver: str | None = None
    kernel_driver: str | None = None
    cuda: str | None = None
    libcuda: str | None = None
    error: str | None = None
    gpus: tuple[Gpu, ...] | None = None


class OtherGpu(Record):
    """A GPU that is not NVIDIA's."""

    vendor: str | None = None
    name: str | None = None
    kind: GpuKind | None = None
    api: str | None = None
    memory_mib: int | None = None


class Vulkan(Record):
    """The Vulkan loader as it answered."""

    status: str | None = None
    loader: str | None = None
    error: str | None = None


class Rocm(Record):
    """Whether AMD's smi tool is there and this process may open /dev/kfd."""

    smi: bool | None = None
    kfd_access: bool | None = None


class Machine(Document):
    """Everything a plan depends on that was read from a machine; the machine document of docs/json.md."""

    platform: Platform = Platform()
    python: Python = Python()
    cpu: Cpu = Cpu()
    nvidia: Nvidia = Nvidia()
    other_gpus: tuple[OtherGpu, ...] | None = None
    vulkan: Vulkan = Vulkan()
    rocm: Rocm = Rocm()
    environment: Mapping[str, str] = {}


# --- what was asked, recorded and installed ----------------------------------------------------------------------


class Request(Record):
    """What the configuration asks for: `device`, and `gpu_device`: auto, an index or a UUID.

    `portable_gpu` allows the build for GPUs of every vendor; `portable_is_faster` says whether a kept measurement on
    this machine shows that build faster than the CPU and in agreement with it, None where nothing was measured.
    """

    device: AskedDevice = "cpu"
    gpu_device: str = "auto"
    portable_gpu: bool = True
    portable_is_faster: bool | None = None


class Fingerprint(Record):
    """The environment a verdict holds for; a verdict counts only where all fields are known and equal."""

    build: str | None = None
    lock: str | None = None
    gpu_uuid: str | None = None
    gpu_name: str | None = None
    compute_capability: str | None = None
    driver: str | None = None
    python: str | None = None
    check: str | None = None


class Verdict(Record):
    """One recorded check: `result` ok or failed, `kind` how it failed, `detail` the cause, `time` ISO 8601 UTC."""

    build: str
    result: str
    kind: str | None = None
    time: str | None = None
    fingerprint: Fingerprint = Fingerprint()
    detail: str | None = None


class Verdicts(Document):
    """The document of recorded verdicts."""

    verdicts: tuple[Verdict, ...]


class Installed(Record):
    """The build a target holds now; None for a version of ONNX Runtime that is none of ours."""

    build: str | None
    version: str | None = None


# --- what was decided --------------------------------------------------------------------------------------------


class Device(Record):
    """The GPU a plan chose."""

    index: int | None
    uuid: str | None
    name: str | None


class Refusal(Record):
    """Why one build was not planned."""

    build: str
    code: str
    reason: str
    hint: str | None = None


class Note(Record):
    """A notice on the plan that refuses nothing."""

    code: str
    reason: str


class Gate(Record):
    """How one build fares at one gate; code and reason are there only where it is refused."""

    build: str
    version: str | None
    gate: str
    outcome: GateOutcome
    code: str | None = None
    reason: str | None = None


class Plan(Document):
    """The decision: which build, on which device, and one reason. `build` None: no build exists for this machine.

    `reason` is one sentence fragment without capital or full stop; `lock` names a file in locks/; sizes are bytes,
    None where unknown. `provisional` says the driver could not be read and an installed GPU build stays.
    `gates` are there when the plan is to be explained.
    """

    build: str | None
    lock: str | None
    version: str | None
    device: Device | None
    code: str
    reason: str
    hint: str | None = None
    provisional: bool = False
    refused: tuple[Refusal, ...] = ()
    notes: tuple[Note, ...] = ()
    download_bytes: int | None = None
    installed_bytes: int | None = None
    free_bytes_after_prune: int | None = None
    installed: Installed | None = None
    pending: bool = False
    gates: tuple[Gate, ...] | Absent = ABSENT


class Choice(Record):
    """One value: what it does here (`detail`) where it is available, why it is not (`reason`) elsewhere."""

    value: Value
    available: bool | None
    detail: str | Absent | None = ABSENT
    reason: str | Absent = ABSENT
