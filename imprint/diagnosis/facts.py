"""What the checks judge: facts gathered beforehand, so that every check is a function of values.

None always means that a fact is not known; `Facts.failures` then has the error under the fact's name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from imprint.causes.circumstances import Circumstances
from imprint.errors import ImprintError
from imprint.planning.builds import Wheel
from imprint.planning.model import Machine, Plan
from imprint.runtime.verdict import Seen


@dataclass(frozen=True, slots=True)
class Aside:
    """A state file that could not be used: what is wrong with it, what mends it, and the code of the finding."""

    message: str
    hint: str | None = None
    code: str = "state-damaged"


@dataclass(frozen=True, slots=True)
class Interpreter:
    """The target's interpreter: its path, whether something is there, and the version it answered with.

    `made_for` is the series its folder of packages is named after (`3.11`), None where there is none to see. Of an
    error `code` says which, and `hint` what helps.
    """

    path: str
    present: bool
    version: str | None = None
    error: str | None = None
    made_for: str | None = None
    code: str | None = None
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class Damage:
    """One installed package that is not as its RECORD says.

    `kind` is missing, size, hash (of files), no-record, no-metadata, no-installer, dangling (links that lead nowhere),
    or hollow (ONNX Runtime without its modules); `count` says how many files, `example` names one.
    """

    distribution: str
    kind: str
    count: int = 1
    example: str | None = None


@dataclass(frozen=True, slots=True)
class Runtimes:
    """What is installed in the target, read from its folder of packages alone.

    `builds` are the ONNX Runtime distributions (`onnxruntime-gpu 1.31.1`), `distributions` counts all, `versions` has
    them by name. `write_error` says why the folder cannot be changed. `size` is the recorded size of all (bytes);
    `requirers` name the packages that ask for a build of ONNX Runtime; `free` are the free bytes on that disk.
    """

    builds: tuple[str, ...] = ()
    distributions: int = 0
    damages: tuple[Damage, ...] = ()
    hashed: bool = False
    packages: str | None = None
    versions: Mapping[str, str | None] = field(default_factory=dict)
    requirers: tuple[str, ...] = ()
    write_error: str | None = None
    size: int | None = None
    free: int | None = None
    leftovers: tuple[tuple[str, int], ...] = ()
    """Folders that a killed pip left among the packages, each with its size (bytes)."""
    gpu_size: int = 0
    """The recorded size of the GPU builds and of NVIDIA's packages (bytes): what the CPU build would free."""


@dataclass(frozen=True, slots=True)
class Library:
    """One shared library that a GPU build asks for. `source`: wheel, torch, system, or missing.

    `required` tells what nothing works without from what is loaded when some operator needs it. `loaded` says whether
    the probe's process had it mapped in the end.
    """

    name: str
    source: str
    path: str | None = None
    required: bool = True
    loaded: bool = False


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a child saw when it loaded ONNX Runtime in the target; see `imprint.inside.probe`.

    `error` is why the import failed. `ended` says how the child ended when it did not end well (`SIGBUS`, `timeout`),
    `stage` what it was about to do then (import, cpu, gpu, libraries). `session` are the providers of a session that
    asked for the GPU, None when none was tried; `run_error` why that session did not compute; `cpu_error` why none on
    the CPU did. `missing` is the library the loader did not find, `wanted_by` the file that needs it. `sends`: the
    build holds a telemetry client, whatever this process has switched off.
    """

    package: str | None = None
    version: str | None = None
    cuda: str | None = None
    file: str | None = None
    available: tuple[str, ...] = ()
    has_session: bool = True
    error: str | None = None
    ended: str | None = None
    stage: str | None = None
    session: tuple[str, ...] | None = None
    run_error: str | None = None
    cpu_error: str | None = None
    missing: str | None = None
    wanted_by: str | None = None
    talk: str = ""
    libraries: tuple[Library, ...] | None = None
    sends: bool | None = None


@dataclass(frozen=True, slots=True)
class OwnImport:
    """What Python does there as the user starts it, not isolated as Imprint does.

    `printed` is what it wrote to standard output before any program ran, `files` the sitecustomize and usercustomize
    that it loaded, or else what runs at its start and may print; `error` is why `import onnxruntime` failed, and
    `file` from where it came otherwise.
    """

    printed: str = ""
    files: tuple[str, ...] = ()
    error: str | None = None
    file: str | None = None


@dataclass(frozen=True, slots=True)
class Nodes:
    """Device nodes under /dev: those that are there, and those of them that this process may not open."""

    present: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Proof:
    """The last recorded check of what is installed: `result` ok or failed, its kind and time (ISO 8601 UTC).

    `changed` names what is different now from when it was made (driver, GPU, Python …); such a check does not count.
    `on_gpu` tells a verdict about a GPU from a generation's check on the CPU.
    """

    result: str
    time: str | None = None
    kind: str | None = None
    changed: tuple[str, ...] = ()
    on_gpu: bool = False


@dataclass(frozen=True, slots=True)
class Embedded:
    """One real embedding: the provider that computed it, its length, and how long start and text took (seconds)."""

    provider: str
    dims: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Disk:
    """Free bytes where the home lies, and what the planned download and its unpacked files need."""

    free: int
    needed: int | None
    where: str


@dataclass(frozen=True, slots=True)
class Unused:
    """Bytes that nothing needs: generations that are neither current nor kept, and files of the cache alone.

    `kept` are those of the cache where it keeps what another try of a GPU would download; they do not count as unused.
    """

    generations: int = 0
    cache: int = 0
    cache_path: str = ""
    kept: int = 0


PLAIN = Circumstances(
    frozenset({"linux", "posix"}), {"cost": "", "saving": "", "free": "", "sudo": "sudo ", "user": '"$(id -un)"'}
)
"""The circumstances of a process nothing is known about, but that it runs on Linux."""


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything gathered for one run of doctor.

    `venv` is the environment that was named, None for the managed target; `device_set` tells a device that somebody
    set from the default. `installed_build` is the build's name in our table, `wheel` its entry for this platform, where
    it has them; `tested` are the versions its lock pins. `proved`: a passed check of the planned GPU build holds here;
    `missed_gpu`: the last worker asked for that GPU and ran on the CPU.
    `around` are the circumstances of this process: system, shell, rights; `kinds` are the traits of a named environment
    (virtual, conda, externally-managed); `uv` is the word that starts uv there.
    `exposed` names the secrets that the configuration file holds; `refused` is why the runtime's interpreter is not
    started.
    `refusal` is why `setup --venv` will never change that environment, such as that it is no virtual one.
    `busy` describes the process that is changing things right now, `interrupted` a change that did not end.
    """

    home: str
    home_error: str | None = None
    asides: tuple[Aside, ...] = ()
    exposed: tuple[str, ...] = ()
    environ: Mapping[str, str] = field(default_factory=dict)
    unknown_variables: tuple[tuple[str, str | None], ...] = ()
    device_asked: str | None = None
    device_set: bool = False
    declared_gb: float | None = None
    venv: str | None = None
    kinds: tuple[str, ...] = ()
    around: Circumstances = PLAIN
    uv: str = "uv"
    ours: bool = True
    provisioned: bool | None = None
    interpreter: Interpreter | None = None
    runtimes: Runtimes | None = None
    loaded: Loaded | None = None
    machine: Machine | None = None
    nodes: Nodes | None = None
    installed_build: str | None = None
    wheel: Wheel | None = None
    tested: Mapping[str, str] = field(default_factory=dict)
    plan: Plan | None = None
    waiting: Plan | None = None
    """The plan if a GPU were asked for, where nobody chose the CPU; None where it was chosen or a GPU is asked for."""
    seen: Seen | None = None
    """What the verdict of every other command is made of, gathered as they gather it; None where that failed."""
    proc: bool = True
    own_import: OwnImport | None = None
    proved: bool = False
    proof: Proof | None = None
    missed_gpu: bool = False
    interrupted: bool = False
    refusal: ImprintError | None = None
    refused: ImprintError | None = None
    busy: str | None = None
    model: str | None = None
    embedded: Embedded | None = None
    disk: Disk | None = None
    unused: Unused | None = None
    copies: bool | None = None
    """Whether the cache lies on another disk than the runtimes, so that files are copied; None unknown."""
    failures: Mapping[str, ImprintError] = field(default_factory=dict)
