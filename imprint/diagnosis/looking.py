"""Gathers what doctor judges: configuration, target, machine, plan, what loads, and one real embedding.

Never raises and changes nothing. A fact that cannot be had is None, with its
error beside it.
"""

from __future__ import annotations

import contextlib
import math
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from imprint import envvars, resources
from imprint.causes.circumstances import here
from imprint.context import Context
from imprint.diagnosis import gathering, own_import, probe
from imprint.diagnosis.facts import Aside, Embedded, Facts, Interpreter, Loaded, OwnImport, Proof, Runtimes
from imprint.diagnosis.gathering import Gathering
from imprint.diagnosis.libraries import cuda_major, wanted_libraries
from imprint.errors import ImprintError
from imprint.hints import helps
from imprint.planning.builds import BuildTable, Wheel
from imprint.planning.fingerprints import fingerprint_of
from imprint.planning.model import Device, Gpu, Machine, Plan, Verdict
from imprint.planning.rule import decide
from imprint.probing.host import Host
from imprint.probing.once import OnceHost
from imprint.probing.survey import survey
from imprint.probing.this_machine import RealHost
from imprint.runtime.check.run import CheckResult, run_check
from imprint.runtime.distributions import inventory
from imprint.runtime.distributions.inventory import RuntimePackage
from imprint.runtime.foreign import journal
from imprint.runtime.foreign.target import build_of, environment_target
from imprint.runtime.installer.startup_output import files_run_at_start
from imprint.runtime.target import Target, current_target
from imprint.runtime.verdict import Seen
from imprint.situation import inputs as planning_inputs
from imprint.situation.inputs import Inputs
from imprint.situation.verdict import Prove, look_at, what_setup_does
from imprint.state import config, last_run, mutex, settings, verdicts
from imprint.state.config import Setting
from imprint.state.findings import Findings
from imprint.values import fields_of
from imprint.values import replace as replace_value

QUICK_SECONDS = 15.0
"""For what only reads files. A network disk that hangs costs this much, and the other checks still answer."""

START_SECONDS = 10.0
"""For the target's interpreter to say what it is. It is asked once, whoever wants to know."""

MACHINE_SECONDS = 50.0
"""For the survey: its own limits for a driver that hangs are 10 and 30 seconds."""

DEEP_SECONDS = 900.0
"""For hashing every file: 2 GB of a GPU set from a slow disk."""

TRY_SECONDS = 75.0
"""For loading ONNX Runtime and for one embedding, both of which end their children before."""

CPU_SECONDS = 30.0
"""For loading it, or for the check, where no GPU is there to be started."""

Embed = Callable[[], Embedded]


def gather(  # noqa: PLR0913 - all but the first are keywords
    context: Context,
    *,
    venv: Path | None = None,
    deep: bool = False,
    slow: frozenset[str] = frozenset(),
    host: Host | None = None,
    prove: Prove | None = None,
    embed: Embed | None = None,
) -> Facts:
    """Return everything the checks judge about the managed target, or about the environment `venv`.

    `slow` names those slow facts that are wanted (`unused`, `embedded`). `host` None: this machine. `prove` runs the
    check where none that holds is recorded, None: the check itself. `embed` makes one real embedding.
    """
    gathered = Gathering()
    damages = Findings()
    asked = OnceHost(host or RealHost(context.environ), START_SECONDS)
    home = context.home
    first = gathered.together(
        QUICK_SECONDS,
        config=lambda: config.load(home, context.environ, context.flags),
        target=lambda: _target(context, venv, damages),
        verdicts=lambda: verdicts.load(home, damages),
        last=lambda: last_run.read(home, damages),
        busy=lambda: _busy(context),
        nodes=gathering.nodes,
        copies=lambda: gathering.copies(home),
        blocked=lambda: gathering.blocked(home),
        uv=lambda: _uv(context),
    )
    target: Target | None = first["target"]
    second = _look(gathered, asked, target, deep=deep)
    known = _Known(context, target, second, prove or _prove, asked)
    planned = gathered.together(QUICK_SECONDS, plan=lambda: known.inputs(damages))
    inputs: Inputs | None = planned["plan"]
    third = _try(gathered, context, known, inputs, first, slow=slow, deep=deep, embed=embed)
    refusal = gathered.together(QUICK_SECONDS, refusal=lambda: _refusal(context, venv, asked, known, inputs))["refusal"]
    kept = gathered.together(
        QUICK_SECONDS,
        receipt=lambda: known.receipt(damages),
        interrupted=lambda: known.interrupted(damages),
        kinds=lambda: _kinds(target),
    )
    loaded, settled = third["loaded"], first["config"]
    setting = settled.get("model.device") if settled is not None else None
    plan = inputs.plan if inputs is not None else None
    needed = plan.installed_bytes if plan is not None and plan.pending else None
    fourth = gathered.together(QUICK_SECONDS, disk=lambda: gathering.disk(home, needed))
    return Facts(
        home=str(home.root),
        home_error=gathering.told_of(first["blocked"]),
        asides=tuple(Aside(damage.message, damage.hint, damage.code) for damage in damages),
        environ=context.environ,
        unknown_variables=tuple(settings.unknown_variables(context.environ)),
        device_asked=str(setting.value) if setting is not None else None,
        device_set=setting is not None and setting.origin != "default",
        declared_gb=_number(context.environ.get(envvars.VRAM_GB)),
        venv=str(target.prefix if target is not None else venv) if venv is not None else None,
        kinds=kept["kinds"] or (),
        around=here(context.environ, traits=["foreign-home"] if gathering.is_foreign(first["blocked"]) else []),
        uv=first["uv"] or "uv",
        ours=venv is None or kept["receipt"] is not None,
        exposed=settled.exposed if settled is not None else (),
        refused=target.refused if target is not None else None,
        provisioned=None if "target" in gathered.failures else target is not None,
        interpreter=second["interpreter"],
        runtimes=second["runtimes"][0] if second["runtimes"] is not None else None,
        loaded=loaded,
        machine=second["machine"],
        nodes=first["nodes"],
        installed_build=known.build,
        wheel=known.wheel,
        tested=gathered.together(QUICK_SECONDS, tested=known.tested)["tested"] or {},
        plan=plan,
        waiting=_waiting(inputs, setting),
        seen=third["seen"],
        proc=sys.platform != "linux" or Path("/proc/self/stat").exists(),
        own_import=third["own_import"],
        proved=inputs is not None and inputs.proved,
        proof=gathered.together(QUICK_SECONDS, proof=lambda: known.proof(inputs))["proof"],
        missed_gpu=known.missed(first["last"]),
        interrupted=bool(kept["interrupted"]),
        refusal=refusal,
        busy=first["busy"],
        model=third["model"],
        embedded=third["embedded"],
        disk=fourth["disk"],
        unused=third["unused"],
        copies=first["copies"],
        failures=gathered.failures,
    )


def _target(context: Context, venv: Path | None, damages: Findings) -> Target | None:
    return current_target(context.home, damages) if venv is None else gathering.environment_target(venv)


_REFUSED_FOR_GOOD = frozenset({"not-an-environment", "externally-managed", "python-unsupported", "managed-target"})
"""Why an environment is never changed, whatever is run in it first."""


def _refusal(
    context: Context, venv: Path | None, host: Host, known: _Known, inputs: Inputs | None
) -> ImprintError | None:
    """Return why setup would refuse the environment, however its interpreter is mended."""
    if venv is None:
        return None
    from imprint.runtime.foreign.environment import look_at as look_at_environment

    try:
        look_at_environment(venv, context.home, host)
    except ImprintError as error:
        return error if error.specific_code in _REFUSED_FOR_GOOD else None
    return known.refusal(inputs)


def _kinds(target: Target | None) -> tuple[str, ...]:
    return gathering.kinds(target.prefix) if target is not None and not target.managed else ()


def _uv(context: Context) -> str:
    """Return the word that starts uv there: a person may not have it on the path, and then ours is meant."""
    from imprint.runtime.installer.uv import find_uv

    return (
        "uv"
        if shutil.which("uv", path=context.environ.get("PATH"))
        else str(find_uv(context.home, context.environ).executable)
    )


def _busy(context: Context) -> str | None:
    holder = mutex.holder(context.home)
    return holder.describe() if holder is not None else None


def _look(gathered: Gathering, host: Host, target: Target | None, *, deep: bool) -> dict[str, Any]:
    """Look at machine and target at the same time; the target's interpreter may be gone, the machine is still there."""

    def machine() -> Machine:
        if target is not None and not target.managed:
            with contextlib.suppress(ImprintError):
                return survey(host, python=target.python)
        return survey(host)

    asked: dict[str, Callable[[], Any]] = {"machine": machine}
    if target is not None and target.refused is None:
        asked["interpreter"] = lambda: gathering.interpreter(target, host, START_SECONDS)
        asked["runtimes"] = lambda: gathering.runtimes(target, deep=deep)
    looked = gathered.together(DEEP_SECONDS if deep else MACHINE_SECONDS, **asked)
    return {"interpreter": None, "runtimes": None, **looked}


def _try(  # noqa: PLR0913 - one call site
    gathered: Gathering,
    context: Context,
    known: _Known,
    inputs: Inputs | None,
    first: Mapping[str, Any],
    *,
    slow: frozenset[str],
    deep: bool,
    embed: Embed | None,
) -> dict[str, Any]:
    """Start what takes longest: loading, one embedding, and the walk over what is unused."""
    settled = first["config"]
    asked: dict[str, Any] = {}
    if known.starts:
        asked["loaded"] = lambda: known.load(inputs)
        asked["own_import"] = known.import_as_user
    if settled is not None:
        asked["model"] = lambda: _model(context, settled.text("model.name"), deep=deep)
    if inputs is not None and known.there:
        asked["seen"] = lambda: known.seen(inputs, first["last"])
    if "unused" in slow:
        asked["unused"] = lambda: gathering.unused(context.home)
    if embed is not None and "embedded" in slow and known.managed and known.starts:
        asked["embedded"] = embed
    nothing = dict.fromkeys(("loaded", "own_import", "model", "unused", "embedded", "seen"))
    return nothing | gathered.together(TRY_SECONDS, **asked)


def _prove(python: Path, device: Device | None, environ: Mapping[str, str]) -> CheckResult:
    return run_check(python, device, environ, deadline=CPU_SECONDS)


class _Known:
    """The target with what is installed in it, and what follows from that."""

    def __init__(
        self,
        context: Context,
        target: Target | None,
        looked: Mapping[str, Any],
        prove: Prove,
        host: Host,
    ) -> None:
        machine: Machine | None = looked["machine"]
        installed: tuple[Runtimes, RuntimePackage | None] | None = looked["runtimes"]
        answered: Interpreter | None = looked["interpreter"]
        self._prove = prove
        self._host = host
        self._context = context
        self._target = target
        self._machine = machine
        self._package = (installed[1] if installed is not None else None) or RuntimePackage()
        self._builds: BuildTable = planning_inputs.load_builds()
        self.build, self.version = self._installed()
        self.there = target is not None
        self.managed = target is not None and target.managed
        # One that did not say what it is would only keep the others waiting.
        self.starts = target is not None and target.starts and answered is not None and answered.version is not None
        self.wheel: Wheel | None = gathering.wheel_of(self.build, self.version, machine, self._builds)

    def _installed(self) -> tuple[str | None, str | None]:
        if self._target is not None and self._target.managed:
            return self._target.build, self._target.version
        build = build_of(self._builds, self._package.package, self._package.version)
        return build.name if build is not None else None, self._package.version

    def inputs(self, damages: Findings) -> Inputs:
        """Return the plan for the target. Raises as planning does."""
        target = self._target
        if target is not None and not target.managed:
            target = replace(target, build=self.build, version=self.version)
        return planning_inputs.gather(self._context, target, findings=damages, machine=self._machine)

    def load(self, inputs: Inputs | None) -> Loaded:
        """Return what loads in the target."""
        assert self._target is not None  # noqa: S101 - only a target that starts is loaded
        machine = self._machine or Machine()
        major = cuda_major(Loaded(cuda=self._package.cuda), self.wheel)
        return probe.try_runtime(
            self._target.python,
            self._context.environ,
            wanted_libraries(self.wheel, major, machine.platform.os),
            device=inputs.plan.device if inputs is not None else None,
            # A driver that hung once would hang the session too.
            gpu=machine.nvidia.status != "timeout",
            deadline=probe.SECONDS if machine.nvidia.gpus else CPU_SECONDS,
        )

    def seen(self, inputs: Inputs, last: last_run.LastRun | None) -> Seen:
        """Return the facts that the other commands' verdict is made of, gathered as they gather them."""
        target = self._target
        assert target is not None  # noqa: S101 - it is asked for only then
        if not target.managed:
            target = environment_target(self._context.home, target.prefix, self._builds)
        prove = self._prove if self.starts else None
        return look_at(
            self._context,
            target,
            inputs.plan,
            gpu_proved=inputs.proved,
            prove=prove,
            last=last,
            host=self._host,
        )

    def refusal(self, inputs: Inputs | None) -> ImprintError | None:
        """Return why setup would not change the environment as planned."""
        if self._target is None or self.managed or inputs is None or inputs.plan.build is None:
            return None
        return what_setup_does(self._context, self._target, inputs.plan, self._host)[1]

    def import_as_user(self) -> OwnImport | None:
        """Return what the target's Python does for its user."""
        assert self._target is not None  # noqa: S101 - as above
        found = own_import.try_import(self._target.python, self._context.environ)
        if found is None or found.files or not found.printed.strip():
            return found
        return replace(found, files=tuple(map(str, files_run_at_start(self._target.prefix))))

    def tested(self) -> Mapping[str, str]:
        """Return what the lock of the installed build pins."""
        if self.wheel is None or not self.wheel.links:
            return {}
        from imprint.runtime.distributions.pins import read_lock

        return {pin.name: pin.version for pin in read_lock(resources.lock_path(self.wheel.lock))}

    def proof(self, inputs: Inputs | None) -> Proof | None:
        """Return the newest recorded check of what is installed, and what changed since."""
        if inputs is None or self._target is None:
            return None
        recorded = [verdict for verdict in inputs.verdicts if verdict.build == self.build]
        failed = [verdict for verdict in inputs.verdicts if inputs.plan.code == "check-failed"]
        chosen = max(recorded or failed, key=lambda verdict: verdict.time or "", default=None)
        if chosen is not None:
            return self._proof(chosen, inputs)
        check = self._target.manifest.check if self._target.manifest is not None else None
        if check is None or check.get("provider") == "CUDAExecutionProvider":
            return None
        return Proof("ok" if check.get("outcome") == "ok" else "failed", check.get("time"), check.get("kind"))

    def _proof(self, verdict: Verdict, inputs: Inputs) -> Proof:
        device = inputs.plan.device
        gpus = inputs.machine.nvidia.gpus or ()
        gpu = next((one for one in gpus if device is None or one.uuid == device.uuid), Gpu())
        here = fingerprint_of(verdict.build, gpu, inputs.machine, inputs.builds)
        changed = tuple(
            name for name in fields_of(type(here)) if getattr(here, name) != getattr(verdict.fingerprint, name)
        )
        return Proof(verdict.result, verdict.time, verdict.kind, changed, on_gpu=True)

    def missed(self, last: last_run.LastRun | None) -> bool:
        """Whether the last worker of this very target was to use the GPU and did not get it."""
        here = self._target.generation if self._target is not None else None
        return last is not None and last.missed_the_gpu and last.generation == here

    def receipt(self, damages: Findings) -> object | None:
        """Return what our last run left in somebody's own environment, None when there was none."""
        if self._target is None or self._target.managed:
            return None
        return journal.read_receipt(journal.store_of(self._context.home, self._target.prefix), damages)

    def interrupted(self, damages: Findings) -> bool:
        """Whether a change of somebody's own environment did not end."""
        if self._target is None or self._target.managed:
            return False
        found = journal.read_journal(journal.store_of(self._context.home, self._target.prefix), damages)
        return journal.is_unfinished(found, inventory.inspect(self._target.prefix))


def _waiting(inputs: Inputs | None, setting: Setting | None) -> Plan | None:
    """Return the plan for a GPU where the CPU is only the default, so that doctor can say what waits."""
    if inputs is None or setting is None or setting.value != "cpu" or setting.origin != "default":
        return None
    request = replace_value(inputs.request, device="auto")
    return decide(request, inputs.machine, inputs.builds, inputs.verdicts, inputs.installed)


def _model(context: Context, name: str, *, deep: bool) -> str:
    from imprint.embedding.models import flaws, load_catalogue, model_files

    model_files(context.home, name)
    wrong = flaws(context.home, load_catalogue().model(name), deep=True) if deep else []
    if wrong:
        raise ImprintError(f"the model {name} is damaged: {wrong[0]}", hint=helps("repair-here"), code="model-damaged")
    return name


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if math.isfinite(number) and number > 0 else None
