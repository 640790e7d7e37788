"""`check`: proves the current target now, on the device that is planned, and records what it found."""

from __future__ import annotations

from pathlib import Path

from imprint.errors import BusyError, ImprintError
from imprint.operations.context import Context
from imprint.operations.planning_inputs import Inputs, gather
from imprint.operations.result import Remark, Result
from imprint.operations.status import remarks_of
from imprint.operations.targets import command_for, target_of
from imprint.planning.fingerprints import fingerprint_of
from imprint.planning.model import Device, Verdict
from imprint.runtime import generations
from imprint.runtime.check import CheckResult, run_check
from imprint.runtime.interrupts import interruptible
from imprint.runtime.target import Target
from imprint.state import mutex, verdicts
from imprint.state.files import Damage


def check(
    context: Context,
    venv: Path | None = None,
    *,
    prove: generations.Check = run_check,
    wait_seconds: float = mutex.DEFAULT_WAIT,
) -> Result:
    """Run the check in the managed target, or in the environment `venv`, and return what it proved.

    Anything but ok is an error of the result.

    A GPU counts when the plan names one and its build is what is installed; else the check runs on the CPU. Waits at
    most `wait_seconds` for the mutex to record the answer; when it stays busy that is a warning. Raises ImprintError
    (`not-installed`) without a target, StateError, StateNewerError and InterruptedByUserError.
    """
    findings: list[Damage] = []
    target = target_of(context, venv, findings)
    if target is None or (venv is not None and target.version is None):
        where = "yet" if venv is None else f"in `{venv}`"
        raise ImprintError(f"nothing is installed {where}", hint=f"run `{command_for(target)}`", code="not-installed")
    inputs = gather(context, target, findings=findings)
    device = inputs.plan.device if inputs.plan.build == target.build else None
    warnings = []
    with interruptible("the check"):
        result = prove(target.python, device, context.environ)
        try:
            with mutex.hold(context.home, wait_seconds, command="imprint check"):
                findings.extend(record(context, target, inputs, result))
        except BusyError as error:
            warnings.append(Remark("not-recorded", f"the answer was not recorded: {error.message}", error.hint))
    errors = () if result.ok else (failure_of(result),)
    return Result(result.to_json(), warnings=(*remarks_of(findings), *warnings), errors=errors)


def record(context: Context, target: Target | None, inputs: Inputs, result: CheckResult) -> tuple[Damage, ...]:
    """Record what a check proved: on a GPU as a verdict, on the CPU in the target's manifest.

    A check on a GPU that is the first of a target is noted there as well. An inconclusive check proved nothing and is
    not recorded. The caller holds the mutex.
    """
    if result.outcome == "inconclusive":
        return ()
    first = target is not None and target.manifest is not None and target.manifest.check is None
    if target is not None and (result.device is None or first):
        generations.note_check(context.home, target, result)
    if result.device is None:
        return ()
    verdict = Verdict(
        build=inputs.plan.build or "",
        result="ok" if result.ok else "failed",
        kind=result.kind,
        time=generations.now(),
        fingerprint=fingerprint_of(inputs.plan, None, inputs.machine, inputs.builds),
    )
    return verdicts.record(context.home, verdict)


def failure_of(result: CheckResult) -> Remark:
    """Return the remark that a check which is not ok amounts to."""
    name = name_of(result.device)
    if result.outcome == "inconclusive":
        return Remark(
            "check-inconclusive",
            f"the check on {name} proved nothing: {result.detail}",
            "run `imprint setup` again when nothing else uses that device",
        )
    hint = (
        "run `imprint setup --repair`" if result.device is None else "mend the cause, then `imprint setup --retry-gpu`"
    )
    return Remark("check-failed", f"the check on {name} failed ({result.kind}): {result.detail}", hint)


def name_of(device: Device | None) -> str:
    """Return what a person calls the device of a check."""
    return "the CPU" if device is None else device.name or "the GPU"
