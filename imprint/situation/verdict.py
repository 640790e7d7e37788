"""Gathers the facts of the one verdict about a target, which `runtime.verdict` makes: what embeddings run on there.

`status`, `setup`, `plan --check`, `check`, `embed`, `rollback` and `doctor` take what they say from here, so that none
of them claims what another denies. A check that was recorded counts while everything it rests on is as it was; where it
does not, whoever may start a child has the check run again on the CPU, and the others say what is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from imprint.causes.circumstances import here
from imprint.context import Context
from imprint.errors import ImprintError
from imprint.hints import helps
from imprint.planning.model import Device, Plan
from imprint.probing.host import Host
from imprint.results import Notice
from imprint.runtime import proofs
from imprint.runtime.check import proof
from imprint.runtime.check.proof import Proof
from imprint.runtime.check.reads import Needs, needs_of
from imprint.runtime.check.result import CPU, CheckResult
from imprint.runtime.distributions.embedding_needs import lacking
from imprint.runtime.installer.startup_output import files_run_at_start
from imprint.runtime.target import Target
from imprint.runtime.verdict import Commands, Seen, TargetVerdict, decide, refusal_of
from imprint.situation.targets import command_for, command_of, damage_in, withheld_from
from imprint.state import config
from imprint.state.findings import UNHEARD, Findings
from imprint.state.last_run import LastRun
from imprint.values import replace

Prove = Callable[[Path, Device | None, Mapping[str, str]], CheckResult]


def look_at(  # noqa: PLR0913 - each keyword is one thing that a caller may already know
    context: Context,
    target: Target | None,
    plan: Plan,
    *,
    gpu_proved: bool,
    prove: Prove | None,
    evidence: Proof | None = None,
    look: bool = True,
    last: LastRun | None = None,
    findings: Findings = UNHEARD,
    host: Host | None = None,
) -> Seen:
    """Return the facts about a target for which `plan` is planned.

    `gpu_proved` says whether a passed check of the planned build on the planned GPU is recorded. `prove` runs the
    check where nothing that is recorded holds; None starts no child. `evidence` is what was seen a moment ago, and
    comes before what is recorded; without `look` it is all that counts, and files are not read. `last` is the last
    worker of the managed target; `host` is whom to ask about an interpreter, None: this machine. Raises StateError for
    records that cannot be read.
    """
    damage = damage_in(context, target) if look and target is not None else ()
    seen = _of_the_target(context, target, plan, damage)
    if seen.refused is not None:
        return seen
    if target is None or not seen.there:
        return _if_allowed(context, target, seen, asks=prove is not None, host=host)
    # What the system does not let run need not be started to know that.
    starter = prove if seen.withheld is None else None
    found, changed = _proof(context, target, starter, evidence, damage, findings)
    holding = found if not changed else None
    missed = last if last is not None and last.generation == target.generation and last.missed_the_gpu else None
    lacks = _lacks(target, holding, look=look)
    failed = holding is not None and not holding.ok
    seen = replace(
        seen,
        proof=found,
        changed=changed,
        lacks=lacks,
        installable=not (lacks and _is_free_threaded(target)),
        model=model_problem(context) if look else None,
        needs=_needs(context) if holding is not None and holding.reads is not None else None,
        gpu=gpu_proved and plan.build == target.build and plan.device is not None,
        missed=missed.time if missed is not None else None,
        mendable=failed and not damage and _setup_changes(context, target, plan),
        startup=tuple(map(str, files_run_at_start(target.prefix))) if failed else (),
    )
    return _if_allowed(context, target, seen, asks=prove is not None, host=host) if look else seen


def _of_the_target(context: Context, target: Target | None, plan: Plan, damage: tuple[str, ...]) -> Seen:
    """Return what is known of a target before anything is proved."""
    commands = Commands(command_for(target), command_for(target, "check"), command_for(target, "doctor"))
    if target is None:
        return Seen(plan, there=False, commands=commands)
    return Seen(
        plan,
        there=target.managed or target.version is not None or bool(damage),
        managed=target.managed,
        build=target.build,
        version=target.version,
        since=target.since,
        elsewhere=target.manifest is not None and target.manifest.check is None,
        starts=target.starts,
        refused=target.refused,
        withheld=withheld_from(target),
        damage=damage,
        commands=commands,
        environ=context.environ,
        around=here(context.environ, traits=["managed" if target.managed else "named"]),
    )


def _proof(  # noqa: PLR0913, PLR0917 - one call site
    context: Context,
    target: Target,
    prove: Prove | None,
    evidence: Proof | None,
    damage: tuple[str, ...],
    findings: Findings,
) -> tuple[Proof | None, tuple[str, ...]]:
    """Return the proof to go by, and what has changed since it was made."""
    if evidence is not None:
        return evidence, ()
    kept = proofs.read(context.home, target, findings)
    changed = proof.changed_since(kept, target, context.environ) if kept is not None else ()
    believed = prove is None or (kept is not None and kept.ok and not _refuses_the_model(context, kept))
    if kept is not None and not changed and not damage and believed:
        return kept, ()
    if prove is None or not target.starts:
        return kept, changed
    fresh = proof.proof_of(prove(target.python, None, context.environ), target, context.environ)
    # What failed may have been mended where no file of it shows that, as with a library of the system.
    if kept is not None and (kept.ok or not changed) and fresh.outcome == "inconclusive":
        return kept, changed
    if kept is not None and kept.provider != CPU and fresh.ok:
        # It loads and computes; of the GPU only the older check knows.
        return replace(kept, reads=fresh.reads), changed
    return fresh, ()


def _refuses_the_model(context: Context, kept: Proof) -> bool:
    """Whether a check says that the runtime is too old for the model: that keeps embeddings from running at all."""
    needs = _needs(context) if kept.reads is not None else None
    return needs is not None and kept.reads is not None and needs.beyond(kept.reads, None) is not None


def _needs(context: Context) -> Needs | None:
    """Return what the configured model asks of a runtime; None where it is not on disk."""
    from imprint.embedding.catalogue import MODEL
    from imprint.embedding.models import folder_of

    name = config.load(context.home, context.environ, context.flags).text("model.name")
    return needs_of(folder_of(context.home, name) / MODEL)


def _if_allowed(context: Context, target: Target | None, seen: Seen, *, asks: bool, host: Host | None) -> Seen:
    """Return the facts with why setup would refuse, where it is what would be advised.

    Without `asks` only where something is wrong: whoever starts no child asks nothing of a target that works.
    """
    if seen.plan is None or seen.plan.build is None:
        return seen
    verdict = decide(seen)
    if not (verdict.advises_setup if asks else verdict.mended_by_setup):
        return seen
    return replace(seen, blocked=what_setup_does(context, target, seen.plan, host)[1])


def what_setup_does(
    context: Context, target: Target | None, plan: Plan, host: Host | None = None
) -> tuple[bool, ImprintError | None]:
    """Return whether setup would change somebody's environment as planned, and why it would refuse a target."""
    error = home_refusal(context, plan, managed=target is None or target.managed)
    if target is None or target.managed or error is not None:
        return False, error
    from imprint import resources
    from imprint.probing.this_machine import RealHost
    from imprint.runtime.distributions.embedding_needs import BASE_LOCK
    from imprint.runtime.foreign import inplace

    locks = (resources.lock_path(plan.lock or ""), resources.lock_path(BASE_LOCK))
    host = host or RealHost(context.environ)
    try:
        return inplace.prepare(target.prefix, plan, context.home, host=host, locks=locks).pending, None
    except ImprintError as error:
        return False, error


def home_refusal(context: Context, plan: Plan, *, managed: bool) -> ImprintError | None:
    """Return why setup would refuse the home, for a managed runtime as planned or only for the model."""
    from imprint.situation import homes

    return homes.refusal(context.home, plan.installed_bytes, managed=managed, model=_model_to_come(context))


def _model_to_come(context: Context) -> int:
    """Return the bytes that setup needs for the configured model; 0 for one that is whole, or that nobody knows."""
    if model_problem(context) is None:
        return 0
    from imprint.embedding.catalogue import load_catalogue
    from imprint.embedding.models import needed_for

    model = load_catalogue().models.get(config.load(context.home, context.environ, context.flags).text("model.name"))
    return 0 if model is None else needed_for(context.home, model)


def _setup_changes(context: Context, target: Target, plan: Plan) -> bool:
    """Whether setup would install something in a target that does not work; it is only asked of such a one."""
    if plan.build is None or plan.lock is None:
        return False
    if plan.build != target.build:
        return True
    if target.managed:
        return False
    changes, refused = what_setup_does(context, target, plan)
    # What keeps it from mending this is what has to be told.
    return changes or refused is not None


def _is_free_threaded(target: Target) -> bool:
    from imprint.runtime.distributions import inventory

    packages = inventory.packages_folder(target.prefix)
    return packages is not None and packages.parent.name.endswith("t")


def _lacks(target: Target, holding: Proof | None, *, look: bool) -> tuple[str, ...]:
    if holding is not None:
        return holding.lacks
    if target.managed or not look:
        # What its manifest lists and is not there counts as damage.
        return ()
    from imprint.runtime.distributions import inventory

    return lacking(inventory.inspect(target.prefix).versions)


def to_set_up(context: Context, target: Target | None, plan: Plan) -> str:
    """Return the advice to set a target up, or why that would be refused."""
    setup, refused = command_for(target), what_setup_does(context, target, plan)[1]
    return helps("run", command=setup) if refused is None else refusal_of(setup, refused)


def notices_of_verdict(verdict: TargetVerdict) -> tuple[Notice, ...]:
    """Return the notice that a verdict amounts to: the gravest problem, with all that is wrong and what helps."""
    problem = verdict.problem
    return () if problem is None else (Notice(problem.code, problem.text, problem.hint),)


def errors_of(verdict: TargetVerdict) -> tuple[Notice, ...]:
    """Return the error that a verdict amounts to: embeddings do not run."""
    problem = verdict.problem
    if verdict.embeds or problem is None:
        return ()
    return (Notice(problem.code, "embeddings do not run", problem.hint),)


def judge_just_proved(context: Context, target: Target, plan: Plan, *, gpu_proved: bool) -> TargetVerdict:
    """Return the verdict about a target that this run looked at and whose recorded check it made, or found to hold."""
    kept = proofs.read(context.home, target)
    return decide(look_at(context, target, plan, gpu_proved=gpu_proved, prove=None, evidence=kept, look=kept is None))


def holds(context: Context, target: Target) -> bool:
    """Whether a check that the target passed is recorded, and everything it rests on is as it was.

    One by which the runtime is too old for the model is not taken for granted.
    """
    kept = proofs.read(context.home, target)
    if kept is None or not kept.ok or _refuses_the_model(context, kept):
        return False
    return not proof.changed_since(kept, target, context.environ)


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


def elsewhere_line(plan: Plan) -> str:
    """Return the line about a target that was provisioned for another machine."""
    where = "the CPU" if plan.device is None else plan.device.name or "a GPU"
    return (
        f"set up for another machine: ONNX Runtime {plan.version}, {plan.build}, on {where}; "
        f"the check runs there (`imprint check`): {plan.reason}"
    )
