"""`rollback`: makes the generation before the current one current again, from what is on disk alone."""

from __future__ import annotations

from imprint.context import Context
from imprint.errors import ImprintError
from imprint.hints import helps
from imprint.results import Result
from imprint.runtime.check.result import CheckReport
from imprint.runtime.check.run import run_check
from imprint.runtime.interrupts import interruptible
from imprint.runtime.managed import generations
from imprint.runtime.managed.place import distributions_of
from imprint.runtime.place import Changed, between
from imprint.runtime.target import (
    Target,
    current_target,
    managed_target,
    read_manifest,
    read_pointer,
)
from imprint.runtime.verdict import decide, refusal_of
from imprint.situation.checked import failure_of, record
from imprint.situation.inputs import gather
from imprint.situation.reading import notices_of
from imprint.situation.status import Status, status_of
from imprint.situation.targets import command_for
from imprint.situation.verdict import look_at, what_setup_does
from imprint.state import mutex
from imprint.state.findings import Findings
from imprint.values import Record


class RollbackResult(Record):
    """What is current now, its check, and what that changed."""

    status: Status
    check: CheckReport
    changes: tuple[Changed, ...]


def rollback(
    context: Context, *, prove: generations.Check = run_check, wait_seconds: float = mutex.DEFAULT_WAIT
) -> Result[RollbackResult]:
    """Check the previous generation and make it current; the one before becomes the previous.

    Uses no network and no installer. Raises ImprintError `nothing-kept` without one, `target-damaged` or
    `check-failed` when it cannot be used (then nothing changes), BusyError, StateError and InterruptedByUserError.
    """
    findings = Findings(writing_in=context.home)
    with interruptible("rollback"), mutex.hold(context.home, wait_seconds, command="imprint rollback"):
        before = _current(context, findings)
        found = _previous(context, findings)
        if found.refused is not None:
            raise found.refused
        if damage := generations.damage_of(found):
            raise ImprintError(
                f"the previous runtime is damaged: {damage[0]}", hint=helps("setup"), code="target-damaged"
            )
        inputs = gather(context, found, findings=findings)
        device = inputs.plan.device if inputs.plan.build == found.build else None
        check = prove(found.python, device, context.environ)
        if not check.ok:
            failed = failure_of(check)
            raise ImprintError(f"nothing was changed: {failed.message}", hint=failed.hint, code=failed.code)
        assert found.manifest is not None  # noqa: S101 - `_previous` found it by its manifest
        now = generations.point_to(context.home, found.manifest)
        record(context, now, inputs, check, findings)
    now = current_target(context.home) or now
    verdict = decide(look_at(context, now, inputs.plan, gpu_proved=device is not None, prove=None))
    changes = between(distributions_of(before), distributions_of(now))
    return Result(RollbackResult(status_of(verdict), check.report, changes), warnings=tuple(notices_of(findings)))


def _current(context: Context, findings: Findings) -> Target | None:
    pointer = read_pointer(context.home, findings)
    return _target(context, pointer.generation, findings) if pointer is not None else None


def _previous(context: Context, findings: Findings) -> Target:
    pointer = read_pointer(context.home, findings)
    found = None
    if pointer is not None and pointer.previous is not None:
        found = _target(context, pointer.previous, findings)
    if found is None:
        raise ImprintError("no previous runtime was kept", hint=_nothing_kept(context, findings), code="nothing-kept")
    return found


def _nothing_kept(context: Context, findings: Findings) -> str:
    """Return why nothing is kept, and what setup would do instead: install, or refuse."""
    current = _current(context, findings)
    refused = what_setup_does(context, current, gather(context, current, findings=findings).plan)[1]
    then = helps("installs-the-planned") if refused is None else refusal_of(command_for(current), refused)
    return helps("nothing-kept", then=then)


def _target(context: Context, generation: str, findings: Findings) -> Target | None:
    manifest = read_manifest(context.home, generation, findings)
    return managed_target(context.home, manifest) if manifest is not None else None
