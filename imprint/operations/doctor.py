"""`doctor`: gathers the facts, each on its own so that a failing one hides no other, and lets the checks judge."""

from __future__ import annotations

import difflib
import os
import platform
import shutil
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from imprint import __version__
from imprint.doctor import checks, report
from imprint.doctor.facts import Aside, Damage, Disk, Facts, Interpreter, Runtimes
from imprint.doctor.findings import CODES, Finding
from imprint.errors import ImprintError, UsageError
from imprint.operations import planning_inputs
from imprint.operations.context import Context
from imprint.operations.result import Remark, Result
from imprint.operations.status import status_data
from imprint.probing.host import RealHost
from imprint.probing.interpreter import ask_interpreter, parse_python
from imprint.probing.survey import survey
from imprint.runtime.inventory import Inventory, RuntimePackage
from imprint.runtime.target import Target
from imprint.state import config, files, settings, verdicts

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class DoctorOptions:
    """Which checks to run (none named: all), whether warnings count as errors, whether files are hashed, the report."""

    ids: tuple[str, ...] = ()
    strict: bool = False
    deep: bool = False
    report: bool = False


def list_checks() -> Result:
    """Return every check's id and what it looks at."""
    return Result({"checks": [{"id": check.id, "about": check.about} for check in checks.CHECKS]})


def explain_code(code: str) -> Result:
    """Return what a finding's code means and what mends it. Raises UsageError for a code that does not exist."""
    if code not in CODES:
        raise UsageError(f"unknown finding code: {code}", hint=_nearest(code, tuple(CODES)))
    found = CODES[code]
    return Result({"code": code, "means": found.means, "fix": found.fix})


def diagnose(context: Context, options: DoctorOptions) -> Result:
    """Return what the checks find; changes nothing but to set damaged state files aside.

    Errors among the findings make an error of the result (with `strict`, warnings too). Raises UsageError for an
    unknown id.
    """
    chosen = _chosen(options.ids)
    facts = gather(context, deep=options.deep)
    findings = checks.run(chosen, facts)
    counted = checks.counts(findings)
    data: dict[str, Any] = {
        "runs_on": facts.runs_on,
        "findings": [asdict(finding) for finding in findings],
        "counts": counted,
    }
    if options.report:
        data["report"] = report.compose(_surroundings(context, facts), findings, counted, _hidden(context))
    return Result(data, errors=_verdict(findings, strict=options.strict))


def _chosen(ids: tuple[str, ...]) -> list[checks.Check]:
    known = {check.id: check for check in checks.CHECKS}
    for name in ids:
        if name not in known:
            raise UsageError(f"unknown check: {name}", hint=_nearest(name, tuple(known)))
    return [check for check in checks.CHECKS if not ids or check.id in ids]


def _nearest(word: str, known: tuple[str, ...]) -> str:
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.4)
    return f"did you mean `{near[0]}`?" if near else f"known are {', '.join(known)}"


def _verdict(findings: list[Finding], *, strict: bool) -> tuple[Remark, ...]:
    counting = {"error", "warning"} if strict else {"error"}
    bad = [finding for finding in findings if finding.status in counting]
    if not bad:
        return ()
    what = "1 check needs attention" if len(bad) == 1 else f"{len(bad)} checks need attention"
    return (Remark("doctor", f"{what}: {', '.join(dict.fromkeys(finding.id for finding in bad))}", bad[0].fix),)


@dataclass(slots=True)
class _Gathering:
    """Facts under way: what each source raised, by the name of the fact."""

    failures: dict[str, ImprintError] = field(default_factory=dict)

    def attempt(self, name: str, source: Callable[[], T]) -> T | None:
        """Return what the source gives; an error of any kind is kept under the name, and None returned."""
        try:
            return source()
        except ImprintError as error:
            self.failures[name] = error
        except Exception as error:
            self.failures[name] = ImprintError(f"{type(error).__name__}: {error}", code="bug")
        return None


def gather(context: Context, *, deep: bool = False) -> Facts:
    """Return everything the checks judge. Never raises; a fact that cannot be had is None, with its error beside it."""
    gathering = _Gathering()
    loaded = gathering.attempt("config", lambda: config.load(context.home, context.environ, context.flags))
    damages: list[files.Damage] = []
    target = gathering.attempt("target", lambda: _target(context, damages))
    gathering.attempt("verdicts", lambda: _verdicts(context, damages))
    inputs = gathering.attempt("plan", lambda: planning_inputs.gather(context, target))
    plan = inputs.plan if inputs else None
    model = (
        gathering.attempt("model", lambda: _model(context, loaded.text("model.name"), deep=deep)) if loaded else None
    )
    return Facts(
        home=str(context.home.root),
        home_error=_home_error(context.home.root),
        asides=tuple(Aside(damage.message, damage.hint) for damage in damages),
        unknown_variables=tuple(settings.unknown_variables(context.environ)),
        device_asked=loaded.text("model.device") if loaded else None,
        provisioned=None if "target" in gathering.failures else target is not None,
        runs_on=_runs_on(inputs, target),
        interpreter=_interpreter(target) if target else None,
        runtimes=gathering.attempt("runtimes", lambda: _runtimes(target, deep=deep)) if target else None,
        plan=plan,
        model=model,
        disk=gathering.attempt("disk", lambda: _disk(context, plan.installed_bytes if plan and plan.pending else None)),
        failures=gathering.failures,
    )


def _home_error(root: Path) -> str | None:
    place = root
    while not place.exists() and place != place.parent:
        place = place.parent
    if place.is_dir() and os.access(place, os.W_OK | os.X_OK):
        return None
    return f"{root} cannot be written" if place == root else f"{root} cannot be made: {place} cannot be written"


def _target(context: Context, damages: list[files.Damage]) -> Target | None:
    from imprint.runtime.target import current_target

    return current_target(context.home, damages)


def _verdicts(context: Context, damages: list[files.Damage]) -> None:
    damages.extend(verdicts.load(context.home)[1])


def _runs_on(inputs: planning_inputs.Inputs | None, target: Target | None) -> str:
    if inputs is None or target is None:
        return "none"
    from imprint.runtime.generations import damage_of

    return str(status_data(inputs.plan, target, proved=inputs.proved, damage=damage_of(target))["runs_on"])


def _model(context: Context, name: str, *, deep: bool) -> str:
    from imprint.embedding.models import flaws, load_catalogue, model_files

    model_files(context.home, name)
    wrong = flaws(context.home, load_catalogue().model(name), deep=True) if deep else []
    if wrong:
        raise ImprintError(f"the model {name} is damaged: {wrong[0]}", hint="`imprint setup`", code="model-damaged")
    return name


def _interpreter(target: Target) -> Interpreter:
    present = target.python.exists()
    if not present:
        return Interpreter(str(target.python), present=False)
    try:
        version = parse_python(ask_interpreter(RealHost(), target.python)).version
    except ImprintError as error:
        return Interpreter(str(target.python), present=True, error=error.message)
    return Interpreter(str(target.python), present=True, version=version)


def _runtimes(target: Target, *, deep: bool) -> Runtimes:
    from imprint.runtime.inventory import inspect

    return summarise(inspect(target.prefix, deep=deep), hashed=deep)


def summarise(inventory: Inventory, *, hashed: bool) -> Runtimes:
    """Return what the checks need of an inventory: problems counted by distribution and kind, hollow builds named."""
    grouped: dict[tuple[str, str], list[str | None]] = {}
    for problem in inventory.problems:
        grouped.setdefault((problem.distribution, problem.kind), []).append(problem.path)
    damages = [Damage(name, kind, len(paths), paths[0]) for (name, kind), paths in grouped.items()]
    builds = inventory.runtime_distributions
    if builds and inventory.runtime in {None, RuntimePackage()}:
        damages = [damage for damage in damages if damage.distribution not in {build.name for build in builds}]
        damages += [Damage(build.name, "hollow") for build in builds]
    return Runtimes(
        builds=tuple(f"{build.name} {build.version or ''}".rstrip() for build in builds),
        distributions=len(inventory.distributions),
        damages=tuple(damages),
        hashed=hashed,
    )


def _disk(context: Context, needed: int | None) -> Disk:
    place = context.home.root
    while not place.exists() and place != place.parent:
        place = place.parent
    return Disk(shutil.disk_usage(place).free, needed, str(place))


def _surroundings(context: Context, facts: Facts) -> list[tuple[str, str]]:
    lines = [
        ("imprint", __version__),
        ("system", f"{platform.system()} {platform.release()} {platform.machine()}"),
        ("python", platform.python_version()),
        ("home", str(context.home.root)),
        ("embeddings run on", facts.runs_on),
    ]
    if facts.plan is not None:
        plan = facts.plan
        lines.append(("plan", f"{plan.build} {plan.version or ''} [{plan.code}] {plan.reason}"))
    try:
        machine = survey(RealHost(context.environ))
    except ImprintError as error:
        lines.append(("machine", error.message))
    else:
        nvidia = machine.nvidia
        lines += [
            ("libc", f"{machine.platform.libc.name} {machine.platform.libc.version}" if machine.platform.libc else "?"),
            ("wsl, container", f"{machine.platform.wsl}, {machine.platform.container}"),
            ("nvidia", f"{nvidia.status}, driver {nvidia.driver}, kernel {nvidia.kernel_driver}, CUDA {nvidia.cuda}"),
            ("libcuda", str(nvidia.libcuda)),
        ]
        lines += [("gpu", f"{gpu.name} ({gpu.compute_capability}, {gpu.memory_mib} MiB)") for gpu in nvidia.gpus or ()]
        lines += [("other gpu", f"{gpu.vendor} {gpu.name} ({gpu.kind})") for gpu in machine.other_gpus or ()]
    lines += [
        (name, "(set)" if "TOKEN" in name or "KEY" in name else value)
        for name, value in sorted(context.environ.items())
        if name.startswith("IMPRINT_") or name in {"CUDA_VISIBLE_DEVICES", "LD_LIBRARY_PATH"}
    ]
    return lines


def _hidden(context: Context) -> Mapping[str, str]:
    found = {str(context.home.root): "<home>", platform.node(): "<host>"}
    for name in ("HOME", "USERPROFILE"):
        if len(context.environ.get(name, "")) > 1:
            found[context.environ[name]] = "<user>"
    for name in ("USER", "USERNAME", "LOGNAME"):
        # A very short or common name would tear words apart.
        if len(context.environ.get(name, "")) > 4:
            found[context.environ[name]] = "<user>"
    return found
