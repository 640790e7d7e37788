"""The one verdict about a target: what embeddings run on there, what that rests on, and what is in the way.

`status`, `setup`, `plan --check`, `check`, `embed` and `rollback` take what they say from here, so that none of them
claims what another denies. A check that was recorded counts while everything it rests on is as it was; where it does
not, whoever may start a child has the check run again on the CPU, and the others say what is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from imprint.errors import ImprintError
from imprint.hints import helps
from imprint.operations.context import Context
from imprint.operations.targets import command_for, command_of, damage_in
from imprint.planning.model import Device, Plan
from imprint.runtime import proof
from imprint.runtime.check_result import CPU, CheckResult
from imprint.runtime.proof import WORDS, Proof
from imprint.runtime.target import Target
from imprint.state import config
from imprint.state.findings import Findings
from imprint.state.last_run import LastRun
from imprint.values import Record

Prove = Callable[[Path, Device | None, Mapping[str, str]], CheckResult]


class Problem(Record):
    """Why embeddings do not run, or what will go wrong: stable code, sentence fragment, the command that helps."""

    code: str
    text: str
    fix: str | None = None


class TargetVerdict(Record):
    """What is known of a target.

    `runs_on` is what ONNX Runtime computes on there: cpu, gpu or none; `embeds` whether embeddings run, for which a
    model and two packages are needed besides. `proof` is the check this rests on, None where none was made, and
    `changed` names what is different since; then nothing newer is known. `problem` is the gravest of all. `setup` is
    the command that sets up as planned, where that needs options.
    """

    target: Target | None
    plan: Plan
    runs_on: str
    embeds: bool
    pending: bool
    device: Device | None = None
    problem: Problem | None = None
    proof: Proof | None = None
    changed: tuple[str, ...] = ()
    missed: LastRun | None = None
    setup: str | None = None

    @property
    def proved(self) -> bool:
        """Whether a check that still holds says what it runs on."""
        return self.proof is not None and not self.changed

    @property
    def deferred(self) -> bool:
        """Whether it was provisioned for another machine and no check has decided here yet."""
        return self.target is not None and self.target.manifest is not None and self.target.manifest.check is None

    @property
    def line(self) -> str:
        """The authoritative line."""
        return _line(self)

    def to_json(self) -> dict[str, Any]:
        """Return the `data` of `imprint status --json`."""
        target, found = self.target, self.proof
        return {
            "line": self.line,
            "build": target.build if target is not None else None,
            "version": target.version if target is not None else None,
            "device": None if self.device is None else asdict(self.device),
            "runs_on": self.runs_on,
            "embeds": self.embeds,
            "code": self.plan.code if self.problem is None else self.problem.code,
            "reason": self.plan.reason,
            "since": target.since if target is not None else None,
            "pending": self.pending,
            "missed_gpu": self.missed is not None,
            "check_deferred": self.deferred,
            "problem": None if self.problem is None else asdict(self.problem),
            "proof": None
            if found is None
            else {
                "outcome": found.outcome,
                "kind": found.kind,
                "detail": found.detail,
                "provider": found.provider,
                "time": found.time,
                "changed": list(self.changed),
            },
        }


def judge(  # noqa: PLR0913 - each keyword is one thing that a caller may already know
    context: Context,
    target: Target | None,
    plan: Plan,
    *,
    gpu_proved: bool,
    prove: Prove | None,
    evidence: Proof | None = None,
    look: bool = True,
    last: LastRun | None = None,
    findings: Findings | None = None,
) -> TargetVerdict:
    """Return the verdict about a target for which `plan` is planned.

    `gpu_proved` says whether a passed check of the planned build on the planned GPU is recorded. `prove` runs the
    check where nothing that is recorded holds; None starts no child. `evidence` is what was seen a moment ago, and
    comes before what is recorded; without `look` it is all that counts, and files are not read. `last` is the last
    worker of the managed target. Raises StateError for records that cannot be read.
    """
    damage = damage_in(context, target) if look and target is not None else ()
    if target is None or (not target.managed and target.version is None and not damage):
        problem = _absent(target, plan)
        return TargetVerdict(target, plan, "none", embeds=False, pending=plan.build is not None, problem=problem)
    if target.refused is not None:
        problem = Problem(target.refused.specific_code, target.refused.message)
        return TargetVerdict(target, plan, "none", embeds=False, pending=True, problem=problem)
    found, changed = _proof(context, target, prove, evidence, damage, findings)
    gpu = plan.device if gpu_proved and plan.build == target.build else None
    if found is not None and not changed and not found.ok and found.outcome != "inconclusive":
        gpu = None
    runs_on = _runs_on(target, found, changed, damage, gpu)
    problems = tuple(_problems(context, target, plan, found, changed, damage, runs_on)) if look else ()
    missed = last if gpu is not None and last is not None and last.generation == target.generation else None
    missed = missed if missed is not None and missed.missed_the_gpu else None
    if missed is not None:
        runs_on = "cpu"
    codes = {problem.code for problem in problems}
    changes = plan.pending or plan.build != target.build
    return TargetVerdict(
        target,
        plan,
        runs_on,
        embeds=runs_on != "none" and codes <= {DAMAGED},
        pending=changes or bool(codes & _MENDED_BY_SETUP),
        device=gpu if runs_on == "gpu" else None,
        problem=_together(problems),
        proof=found,
        changed=changed,
        missed=missed,
    )


DAMAGED, BROKEN, LACKING = "target-damaged", "target-incomplete", "packages-missing"
"""The codes where files of the runtime are broken, where it does not work and setup has something to install, and where
embedding lacks packages of its own beside it."""

_MENDED_BY_SETUP = frozenset({DAMAGED, BROKEN, LACKING, "model-missing", "model-damaged"})


def _absent(target: Target | None, plan: Plan) -> Problem:
    if plan.build is None:
        return Problem("not-installed", "nothing is installed, and no build exists for this machine")
    return Problem("not-installed", "nothing is installed", command_for(target))


def _proof(  # noqa: PLR0913, PLR0917 - one call site
    context: Context,
    target: Target,
    prove: Prove | None,
    evidence: Proof | None,
    damage: tuple[str, ...],
    findings: Findings | None,
) -> tuple[Proof | None, tuple[str, ...]]:
    """Return the proof to go by, and what has changed since it was made."""
    if evidence is not None:
        return evidence, ()
    kept = proof.read(context.home, target, findings)
    changed = proof.changed_since(kept, target, context.environ) if kept is not None else ()
    if kept is not None and not changed and not damage:
        return kept, ()
    if prove is None or not target.starts:
        return kept, changed
    result = prove(target.python, None, context.environ)
    if result.outcome == "inconclusive":
        return kept, changed
    fresh = proof.proof_of(result, target, context.environ)
    if kept is not None and kept.provider != CPU and fresh.ok:
        # It loads and computes; of the GPU only the older check knows.
        return kept, changed
    return fresh, ()


def _runs_on(
    target: Target, found: Proof | None, changed: tuple[str, ...], damage: tuple[str, ...], gpu: Device | None
) -> str:
    if not target.starts:
        return "none"
    if found is not None and not changed and not found.ok:
        return "none"
    if damage and (found is None or changed):
        return "none"
    return "cpu" if gpu is None else "gpu"


def _problems(  # noqa: PLR0913, PLR0917 - one call site
    context: Context,
    target: Target,
    plan: Plan,
    found: Proof | None,
    changed: tuple[str, ...],
    damage: tuple[str, ...],
    runs_on: str,
) -> Iterator[Problem]:
    """Yield all that is wrong, the gravest first."""
    setup = command_for(target)
    if damage:
        yield Problem(DAMAGED, f"the runtime is damaged ({damage[0]})", setup if plan.build else None)
    elif runs_on == "none" and found is not None:
        what = f"ONNX Runtime {target.version or ''}".rstrip()
        how = "does not load" if found.kind in {"import-failed", "not-started"} else "does not compute"
        changes = _setup_changes(context, target, plan)
        code = BROKEN if changes else "check-failed"
        yield Problem(code, f"{what} {how}: {found.detail or found.kind}", setup if changes else _doctor(target))
    if runs_on != "none" and (lacks := _lacks(target, found, changed)):
        verb = "is" if len(lacks) == 1 else "are"
        # For a free-threaded Python there is nothing to install.
        fix = None if _is_free_threaded(target) else setup
        yield Problem(LACKING, f"{' and '.join(lacks)} {verb} missing", fix)
    missing = model_problem(context)
    if missing is not None:
        yield Problem(missing.specific_code, missing.message, setup)


def _setup_changes(context: Context, target: Target, plan: Plan) -> bool:
    """Whether setup would install something in a target that does not work; it is only asked of such a one."""
    if plan.build is None or plan.lock is None:
        return False
    if plan.build != target.build:
        return True
    if target.managed:
        return False
    from imprint import resources
    from imprint.probing.host import RealHost
    from imprint.runtime import inplace
    from imprint.runtime.recipe import BASE_LOCK

    locks = (resources.lock_path(plan.lock), resources.lock_path(BASE_LOCK))
    try:
        return inplace.prepare(target.prefix, plan, context.home, host=RealHost(context.environ), locks=locks).pending
    except ImprintError:
        return False


def _is_free_threaded(target: Target) -> bool:
    from imprint.runtime import inventory

    packages = inventory.packages_folder(target.prefix)
    return packages is not None and packages.parent.name.endswith("t")


def _together(problems: tuple[Problem, ...]) -> Problem | None:
    """Return the gravest problem with what else is wrong behind it."""
    if not problems:
        return None
    return Problem(problems[0].code, ", and ".join(problem.text for problem in problems), problems[0].fix)


def _lacks(target: Target, found: Proof | None, changed: tuple[str, ...]) -> tuple[str, ...]:
    if found is not None and not changed:
        return found.lacks
    if target.managed:
        # What its manifest lists and is not there counts as damage.
        return ()
    from imprint.runtime import inventory

    return proof.lacking(inventory.inspect(target.prefix).versions)


def judge_just_proved(context: Context, target: Target, plan: Plan, *, gpu_proved: bool) -> TargetVerdict:
    """Return the verdict about a target that this run looked at and whose recorded check it made, or found to hold."""
    kept = proof.read(context.home, target)
    return judge(context, target, plan, gpu_proved=gpu_proved, prove=None, evidence=kept, look=kept is None)


def holds(context: Context, target: Target) -> bool:
    """Whether a check that the target passed is recorded, and everything it rests on is as it was."""
    kept = proof.read(context.home, target)
    return kept is not None and kept.ok and not proof.changed_since(kept, target, context.environ)


def model_problem(context: Context) -> ImprintError | None:
    """Return what is wrong with the configured model on disk, None when its files are there and of the right size."""
    from imprint.embedding.models import model_files

    try:
        model_files(context.home, config.load(context.home, context.environ, context.flags).text("model.name"))
    except ImprintError as error:
        return error
    return None


def default_hint(context: Context, plan: Plan, venv: Path | None = None) -> str | None:
    """Return what to type for a GPU, where the CPU is used because nobody chose a device; no hardware is looked at."""
    setting = config.load(context.home, context.environ, context.flags).get("model.device")
    if plan.device is not None or plan.build is None or setting.origin != "default" or setting.value != "cpu":
        return None
    return helps("default-device", setup=command_of("setup", venv))


def _doctor(target: Target) -> str:
    return command_for(target, "doctor")


# --- the line -------------------------------------------------------------------------------------------------------


def _line(verdict: TargetVerdict) -> str:
    plan, target, problem = verdict.plan, verdict.target, verdict.problem
    if target is None or (problem is not None and problem.code == "not-installed"):
        setup = verdict.setup or command_for(target)
        would = f"; `{setup}` would install {plan.build} {plan.version}" if plan.build is not None else ""
        return f"embeddings do not run; nothing is installed{would}: {plan.reason}"
    if not verdict.embeds and problem is not None:
        runs = "" if verdict.runs_on == "none" else f" although ONNX Runtime {target.version} works"
        then = f"; run `{problem.fix}`" if problem.fix is not None else ""
        return f"embeddings do not run{runs}: {problem.text}{then}: {plan.reason}"
    if verdict.missed is not None:
        gpu = plan.device.name if plan.device is not None and plan.device.name else "the GPU"
        line = f"embeddings ran on the CPU at {verdict.missed.time} although you asked for {gpu}"
        return f"{line} (ONNX Runtime {target.version}, {target.build}; run `imprint check`): {plan.reason}"
    if verdict.device is not None:
        runtime = f"ONNX Runtime {target.version}, {target.build}"
        line = f"embeddings run on {verdict.device.name or 'the GPU'} ({runtime})"
        return f"{line}{_unless(verdict)}: {plan.reason}"
    return f"embeddings run on the CPU (ONNX Runtime {target.version}){_but(verdict, target)}: {plan.reason}"


def _but(verdict: TargetVerdict, target: Target) -> str:
    """Return the clause about what would change, and what is not known."""
    plan, command = verdict.plan, verdict.setup or command_for(target)
    if verdict.problem is not None:
        return f", but {verdict.problem.text}; run `{verdict.problem.fix or command}`"
    if plan.build is None:
        return "; no build is planned"
    switch = "" if plan.build == target.build else f"; `{command}` would install {plan.build} {plan.version}"
    if verdict.deferred:
        return f"; the check was deferred (run `imprint check`){switch}"
    if switch:
        return switch
    if plan.device is not None:
        return f"; the GPU build is not proved here (run `{command}`)"
    return _unless(verdict)


def _unless(verdict: TargetVerdict) -> str:
    """Return the clause that a line needs whose check does not hold, or was never made."""
    check = command_for(verdict.target, "check")
    if verdict.proof is None:
        return f"; not proved yet (run `{check}`)"
    if verdict.changed:
        what = [WORDS[name] for name in verdict.changed]
        verb = "have" if len(what) > 1 or what[0].endswith("s") else "has"
        return f", by the check of {verdict.proof.time}; {', '.join(what)} {verb} changed since (run `{check}`)"
    return ""
