"""What the checks judge: facts gathered beforehand, so that every check is a function of values.

They lie in six groups, and `gathering` has one function for each. None always means that a fact is not known;
`Facts.failures` then has the error under the fact's name.
"""

from __future__ import annotations

from collections.abc import Mapping

from imprint.causes.circumstances import Circumstances
from imprint.errors import ImprintError
from imprint.planning.builds import Wheel
from imprint.planning.model import Machine, Plan
from imprint.runtime.distributions.inventory import RuntimePackage
from imprint.runtime.verdict import Seen
from imprint.state.findings import Finding as StateFinding
from imprint.values import Record
from imprint.words import AskedDevice


class Interpreter(Record):
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


class Damage(Record):
    """One installed package that is not as its RECORD says.

    `kind` is missing, size, hash (of files), no-record, no-metadata, odd-record, odd-metadata (no regular file),
    no-installer, dangling (links that lead nowhere), or hollow (ONNX Runtime without its modules); `count` says how
    many files, `example` names one. `blocking` are files of its metadata that are no regular files: an installer that
    reads them may wait for ever.
    """

    distribution: str
    kind: str
    count: int = 1
    example: str | None = None
    blocking: tuple[str, ...] = ()


class Runtimes(Record):
    """What is installed in the target, read from its folder of packages alone.

    `builds` are the ONNX Runtime distributions (`onnxruntime-gpu 1.31.1`), `package` is what the files of ONNX Runtime
    say they are; `distributions` counts all, `versions` has them by name. `write_error` says why the folder cannot be
    changed. `size` is the recorded size of all (bytes), `gpu_size` that of GPU builds and NVIDIA's packages, which
    the CPU build would free. `requirers` name the packages that ask for a build of ONNX Runtime; `free` are the free
    bytes on that disk; `leftovers` are folders that a killed pip left among the packages, each with its size (bytes).
    """

    builds: tuple[str, ...] = ()
    distributions: int = 0
    damages: tuple[Damage, ...] = ()
    hashed: bool = False
    packages: str | None = None
    versions: Mapping[str, str | None] = {}
    requirers: tuple[str, ...] = ()
    write_error: str | None = None
    size: int | None = None
    free: int | None = None
    leftovers: tuple[tuple[str, int], ...] = ()
    gpu_size: int = 0
    package: RuntimePackage = RuntimePackage()


class Library(Record):
    """One shared library that a GPU build asks for. `source`: wheel, torch, system, or missing.

    `required` tells what nothing works without from what is loaded when some operator needs it. `loaded` says whether
    the probe's process had it mapped in the end.
    """

    name: str
    source: str
    path: str | None = None
    required: bool = True
    loaded: bool = False


class Loaded(Record):
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


class OwnImport(Record):
    """What Python does there as the user starts it, not isolated as Imprint does.

    `printed` is what it wrote to standard output before any program ran, `files` the sitecustomize and usercustomize
    that it loaded, or else what runs at its start and may print; `error` is why `import onnxruntime` failed, and
    `file` from where it came otherwise.
    """

    printed: str = ""
    files: tuple[str, ...] = ()
    error: str | None = None
    file: str | None = None


class Nodes(Record):
    """Device nodes under /dev: those that are there, and those of them that this process may not open."""

    present: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()


class Proof(Record):
    """The last recorded check of what is installed: `result` ok or failed, its kind and time (ISO 8601 UTC).

    `changed` names what is different now from when it was made (driver, GPU, Python …); such a check does not count.
    `on_gpu` tells a verdict about a GPU from a generation's check on the CPU.
    """

    result: str
    time: str | None = None
    kind: str | None = None
    changed: tuple[str, ...] = ()
    on_gpu: bool = False


class Embedded(Record):
    """One real embedding: the provider that computed it, its length, and how long start and text took (seconds)."""

    provider: str
    dims: int
    seconds: float


class Disk(Record):
    """Free bytes where the home lies, and what the planned download and its unpacked files need."""

    free: int
    needed: int | None
    where: str


class Unused(Record):
    """Bytes that nothing needs: generations that are neither current nor kept, and files of the cache alone.

    `kept` are those of the cache where it keeps what another try of a GPU would download; they do not count as unused.
    """

    generations: int = 0
    cache: int = 0
    kept: int = 0


class SettingsFacts(Record):
    """What somebody asked for: the configuration, and the variables of this process.

    `device_set` tells a device that somebody set from the default; `exposed` names the secrets that the configuration
    file holds.
    """

    environ: Mapping[str, str] = {}
    unknown_variables: tuple[tuple[str, str | None], ...] = ()
    device_asked: AskedDevice | None = None
    device_set: bool = False
    declared_gb: float | None = None
    exposed: tuple[str, ...] = ()

    @property
    def asks_for_gpu(self) -> bool:
        """Whether a GPU is asked for, be it as one of both."""
        return self.insists_on_gpu or self.device_asked == "auto"

    @property
    def insists_on_gpu(self) -> bool:
        """Whether nothing but a GPU is asked for."""
        return self.device_asked == "gpu"


class HomeFacts(Record):
    """The home: why it cannot be written (`foreign`: it is another user's), what is wrong with its files, and its disk.

    `model` is the configured model, None where its files are not there. `copies` says whether the cache lies on another
    disk than the runtimes, so that files are copied.
    """

    path: str
    error: str | None = None
    foreign: bool = False
    asides: tuple[StateFinding, ...] = ()
    model: str | None = None
    disk: Disk | None = None
    unused: Unused | None = None
    copies: bool | None = None


class SystemFacts(Record):
    """This machine, and this process on it: its shell and rights (`around`), and the word that starts uv there."""

    machine: Machine | None = None
    nodes: Nodes | None = None
    proc: bool = True
    around: Circumstances = Circumstances(
        frozenset({"linux", "posix"}), {"cost": "", "saving": "", "free": "", "sudo": "sudo ", "user": '"$(id -un)"'}
    )
    uv: str = "uv"


class TargetFacts(Record):
    """The environment that is looked at: `venv` where one was named, None for the managed target.

    `kinds` are the traits of a named one (virtual, conda, externally-managed); `ours`: Imprint set it up. `refused` is
    why its interpreter is not started. `busy` describes the process that is changing things right now, `interrupted` a
    change that did not end.
    """

    venv: str | None = None
    kinds: tuple[str, ...] = ()
    ours: bool = True
    provisioned: bool | None = None
    interpreter: Interpreter | None = None
    runtimes: Runtimes | None = None
    refused: ImprintError | None = None
    interrupted: bool = False
    busy: str | None = None

    @property
    def starts(self) -> bool:
        """Whether the interpreter is there and answered."""
        return self.interpreter is not None and self.interpreter.present and self.interpreter.version is not None

    @property
    def installed(self) -> Runtimes:
        """What is installed, as far as it is known."""
        return self.runtimes or Runtimes()

    @property
    def build_names(self) -> frozenset[str]:
        """The names of the installed builds of ONNX Runtime; a plug-in is none."""
        return frozenset(build.partition(" ")[0] for build in self.installed.builds if build)


class RuntimeFacts(Record):
    """The ONNX Runtime that is installed, and what it does when it is tried.

    `build` is its name in our table, `wheel` its entry for this platform, where it has them; `tested` are the versions
    its lock pins.
    """

    build: str | None = None
    wheel: Wheel | None = None
    tested: Mapping[str, str] = {}
    loaded: Loaded | None = None
    own_import: OwnImport | None = None
    embedded: Embedded | None = None


class PlanFacts(Record):
    """What is planned, and what is proved.

    `waiting` is the plan if a GPU were asked for, where nobody chose the CPU; None where it was chosen or a GPU is
    asked for. `seen` is what the verdict of every other command is made of, gathered as they gather it; None where that
    failed. `proved`: a passed check of the planned GPU build holds here; `missed_gpu`: the last worker asked for that
    GPU and ran on the CPU. `refusal` is why setup would not change that target, such as that it is no virtual
    environment.
    """

    plan: Plan | None = None
    waiting: Plan | None = None
    seen: Seen | None = None
    proved: bool = False
    proof: Proof | None = None
    missed_gpu: bool = False
    refusal: ImprintError | None = None


class Facts(Record):
    """Everything gathered for one run of doctor."""

    home: HomeFacts
    settings: SettingsFacts = SettingsFacts()
    system: SystemFacts = SystemFacts()
    target: TargetFacts = TargetFacts()
    runtime: RuntimeFacts = RuntimeFacts()
    planned: PlanFacts = PlanFacts()
    failures: Mapping[str, ImprintError] = {}
