"""`check`: proves the current target now, on the device that is planned, and records what it found."""

from __future__ import annotations

from pathlib import Path

from imprint.context import Context
from imprint.errors import ImprintError
from imprint.hints import helps
from imprint.planning.model import Device
from imprint.results import Notice, Result
from imprint.runtime.check import proof
from imprint.runtime.check.result import CPU, CheckReport, Placement
from imprint.runtime.check.run import CheckResult, run_check
from imprint.runtime.interrupts import interruptible
from imprint.runtime.managed import generations
from imprint.runtime.target import Target
from imprint.runtime.verdict import TargetVerdict, decide
from imprint.situation.checked import failure_of, lies_outside, name_of, record
from imprint.situation.inputs import Inputs, gather
from imprint.situation.reading import notices_of, read_as_writer
from imprint.situation.targets import command_for, damage_in, require_start, target_of
from imprint.situation.verdict import look_at, notices_of_verdict, to_set_up
from imprint.state import mutex
from imprint.state.findings import Findings
from imprint.values import replace

__all__ = ["CheckReport", "Placement", "check"]


def check(
    context: Context,
    venv: Path | None = None,
    *,
    placement: bool = False,
    prove: generations.Check = run_check,
    wait_seconds: float = mutex.DEFAULT_WAIT,
) -> Result[CheckReport]:
    """Run the check in the managed target, or in the environment `venv`, and return what it proved.

    Anything but ok is an error of the result, and so is what keeps embeddings from running on what works. A GPU counts
    when the plan names one and its build is what is installed, whatever an earlier check found; else the check runs on
    the CPU. With `placement` the configured model runs too, and says where. Waits at most `wait_seconds` for the mutex
    to record the answer; when it stays busy that is a warning. Raises ImprintError (`not-installed`) without a target,
    StateError, StateNewerError and InterruptedByUserError.
    """

    def read(findings: Findings) -> tuple[Target | None, Inputs]:
        found = target_of(context, venv, findings)
        return found, gather(context, found, findings=findings, ignore_failed=True)

    (target, inputs), findings = read_as_writer(context, read, "imprint check", wait_seconds=wait_seconds)
    if target is None or (venv is not None and target.version is None):
        hint = to_set_up(context, target, inputs.plan)
        if target is not None and (damage := damage_in(context, target)):
            raise ImprintError(f"the runtime in `{venv}` is damaged: {damage[0]}", hint=hint, code="target-damaged")
        where = "yet" if venv is None else f"in `{venv}`"
        raise findings.explain(ImprintError(f"nothing is installed {where}", hint=hint, code="not-installed"))
    require_start(target)
    device = inputs.plan.device if inputs.plan.build == target.build else None
    with interruptible("the check"):
        result = prove(target.python, device, context.environ)
        recorded, warnings = _record(context, target, inputs, result, wait_seconds, findings)
        verdict = _besides(context, target, inputs, result)
        problem = next(iter(notices_of_verdict(verdict)), None) if verdict is not None else None
        placed = _place(context, target, device) if placement else None
    errors = [] if result.ok else [failure_of(result, venv)]
    if problem is not None and result.ok and verdict is not None and not verdict.embeds:
        message = f"ONNX Runtime works, but embeddings do not run: {problem.message}"
        errors.append(Notice(problem.code, message, problem.hint))
    elif problem is not None and result.ok:
        warnings.append(problem)
    elif problem is not None and result.device is None and not lies_outside(result):
        # One story: what helps is what the verdict says.
        errors = [Notice(errors[0].code, errors[0].message, problem.hint)]
    if isinstance(placed, Notice):
        errors += [] if placed.code in {error.code for error in errors} else [placed]
    elif placed is not None:
        more, worse = _about_placement(placed, result)
        warnings += more
        errors += worse
    ran = None if isinstance(placed, Notice) else placed
    report = replace(result.report, placement=ran, recorded=recorded)
    return Result(report, warnings=(*notices_of(findings), *warnings), errors=tuple(errors))


def _record(  # noqa: PLR0913, PLR0917 - one call site
    context: Context,
    target: Target,
    inputs: Inputs,
    result: CheckResult,
    wait_seconds: float,
    findings: Findings,
) -> tuple[bool, list[Notice]]:
    """Record the answer where it says something about the build on this device; return whether it was recorded."""
    if result.outcome == "inconclusive":
        return False, []
    if result.device is not None and not result.ok and (why := _says_nothing_of_the_gpu(context, target, result)):
        return False, [Notice("not-recorded", f"this does not count against the GPU: {why}", _repair(target))]
    if result.device is None and target.waits_for_gpu:
        why = "the check on the GPU is left to the machine that this runtime was set up for"
        return False, [Notice("not-recorded", f"the result was not recorded: {why}")]
    try:
        with mutex.hold(context.home, wait_seconds, command="imprint check"):
            writing = Findings(writing_in=context.home)
            record(context, target, inputs, result, writing)
        findings.update(writing)
    except ImprintError as error:
        # The mutex is busy, or the home cannot be written: what was proved is told all the same.
        return False, [Notice("not-recorded", f"the result was not recorded: {error.message}", error.hint)]
    return True, []


def _says_nothing_of_the_gpu(context: Context, target: Target, result: CheckResult) -> str | None:
    """Return why a failure is the target's own, as a fragment, None when the build failed on this GPU."""
    damage = damage_in(context, target)
    if damage:
        return f"the runtime is damaged ({damage[0]})"
    if result.wheel is not None:
        return f"{result.library} should be in this environment, but cannot be loaded from it"
    if result.kind in {"import-failed", "not-started"}:
        return "the runtime does not load at all"
    return None


def _besides(context: Context, target: Target, inputs: Inputs, result: CheckResult) -> TargetVerdict | None:
    """Return the verdict that follows, which knows what else is wrong; None where the check proved nothing."""
    if result.outcome == "inconclusive":
        return None
    seen = proof.proof_of(result, target, context.environ)
    return decide(look_at(context, target, inputs.plan, gpu_proved=inputs.proved, prove=None, evidence=seen))


def _repair(target: Target) -> str:
    return helps("repair", setup=command_for(target))


def _place(context: Context, target: Target, device: Device | None) -> Placement | Notice:
    """Run the configured model and return where it ran, or the notice on why it cannot be tried."""
    from imprint.embedding.catalogue import load_catalogue
    from imprint.embedding.client import Settings
    from imprint.embedding.models import model_files
    from imprint.embedding.placement import measure
    from imprint.state import config

    try:
        name = config.load(context.home, context.environ, context.flags).text("model.name")
        model, files = load_catalogue().model(name), model_files(context.home, name)
    except ImprintError as error:
        return Notice.of(error)
    settings = Settings(
        python=target.python,
        model=files.model,
        tokenizer=files.tokenizer,
        dims=model.dims,
        gpu=device,
        max_tokens=model.max_tokens,
        environ=context.environ,
    )
    return measure(settings, name)


def _about_placement(placed: Placement, result: CheckResult) -> tuple[list[Notice], list[Notice]]:
    """Return the warnings and the errors that a placement amounts to."""
    where = name_of(result.device)
    if placed.error is not None:
        return [], [Notice("model-failed", f"{placed.model} does not run on {where}: {placed.error}")]
    if not placed.runs:
        message = f"you asked for a GPU, but {placed.model} runs on the CPU: {where} was not used"
        return [], [Notice("gpu-not-used", message, helps("check-above"))]
    if placed.misplaced:
        share = placed.providers[CPU].share_of_time or 0
        message = f"{', '.join(placed.misplaced)} of {placed.model} run on the CPU, {share:.0%} of the time"
        return [Notice("placement-on-cpu", message, helps("placement-json"))], []
    if not result.ok and result.device is not None:
        message = f"{placed.model} runs on {where} anyway: it does not need what failed"
        return [Notice("model-runs", message)], []
    return [], []
