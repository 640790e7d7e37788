"""`setup`: survey, plan, provision, check, record, prune, and say in one line what embeddings run on and why."""

from __future__ import annotations

from imprint.context import Context
from imprint.provisioning.downloads import Download, sizes_of
from imprint.provisioning.notices import DeferredFolder, notices_of_vendors
from imprint.provisioning.options import (
    CONFIRM_ABOVE,
    REAL,
    Seams,
    SetupOptions,
    UnansweredError,
    agreed_to,
    asking_later,
    command_again,
    not_honoured,
    refusal_of,
    sources_of,
)
from imprint.provisioning.run import Run, SetupResult, download_for_change, inputs_for, place_of
from imprint.results import Notice, Result
from imprint.runtime.checkpoint import reached
from imprint.runtime.events import Event, OnEvent
from imprint.runtime.installer.sources import Sources
from imprint.runtime.interrupts import FINISH, interruptible
from imprint.runtime.place import Change, Changed, EnvironmentChanges
from imprint.runtime.verdict import decide
from imprint.situation.reading import notices_of
from imprint.situation.status import status_of
from imprint.situation.verdict import home_refusal, look_at
from imprint.state import mutex
from imprint.state.findings import Findings
from imprint.values import ABSENT, Absent, replace

__all__ = [
    "CONFIRM_ABOVE", "Changed", "DeferredFolder", "EnvironmentChanges", "Seams", "SetupOptions", "SetupResult", "setup",
]  # fmt: skip


def setup(context: Context, options: SetupOptions, on_event: OnEvent, *, seams: Seams = REAL) -> Result[SetupResult]:
    """Bring a target to what the plan says, prove it, and return what embeddings run on and why.

    The managed target's old generation stays current until the new one is proved; somebody's own environment is
    changed in place, resumably. A second run with everything right starts no child and uses no network. With
    `require_gpu` a plan without a GPU is an error and changes nothing. Raises BusyError, NetworkError,
    IntegrityError, NoSpaceError, StateError, InterruptedByUserError, or ImprintError; then what was current still is.
    """
    if options.dry_run:
        return _dry_run(context, options, seams)
    sources = sources_of(options)
    # A managed target is replaced as a whole; somebody's own environment may be left half changed.
    finish = {} if options.venv is None else {"hint": FINISH}
    told: list[Event] = []

    def heard(event: Event) -> None:
        told.append(event)
        on_event(event)

    with interruptible("setup", **finish):
        try:
            return _holding_the_mutex(context, asking_later(options), heard, seams, sources)
        except UnansweredError as question:
            # A person may take their time to answer, and nobody else has to wait for that.
            agreed = agreed_to(options, question)
        return _holding_the_mutex(context, agreed, _without(told, on_event), seams, sources)


def _without(told: list[Event], on_event: OnEvent) -> OnEvent:
    """Return `on_event` without what was told before the question was asked, word for word."""
    before = {(event.event, event.step, event.message) for event in told}

    def tell(event: Event) -> None:
        if (event.event, event.step, event.message) not in before:
            on_event(event)

    return tell


def _holding_the_mutex(
    context: Context, options: SetupOptions, on_event: OnEvent, seams: Seams, sources: Sources
) -> Result[SetupResult]:
    def on_wait(message: str) -> None:
        on_event(Event("info", "survey", message))

    with mutex.hold(context.home, options.wait_seconds, command=options.command, on_wait=on_wait):
        reached("mutex-held")
        return Run(context, options, on_event, seams, sources).to_the_end()


def _dry_run(context: Context, options: SetupOptions, seams: Seams) -> Result[SetupResult]:
    """Return what setup would do: every change, its bytes, and for an environment who requires ONNX Runtime there."""
    findings = Findings()
    place = place_of(context, options, seams)
    target = place.current(findings)
    inputs = inputs_for(context, options, seams, target, findings=findings, ignore_failed=options.retry_gpu)
    refused = refusal_of(context, inputs, options)
    verdict = decide(look_at(context, target, inputs.plan, gpu_proved=inputs.proved, prove=seams.check))
    verdict = verdict.with_setup(command_again(context, options))
    change: Change | None = None
    expected: Download | None = None
    if refused is None:
        needed = sizes_of(inputs)[1]
        change = place.compare(inputs.plan, needed=needed, repair=options.repair, findings=findings)
        expected = download_for_change(context, inputs, change, seams)
    changes = change.changes if change is not None else ()
    details: EnvironmentChanges | Absent | None = ABSENT
    if place.prefix is not None:
        details = change.details if change is not None else None
        if details is not None:
            details = replace(details, download_bytes=expected.total if expected is not None else None)
    told = SetupResult(
        plan=inputs.plan,
        check=None,
        status=status_of(verdict),
        changes=changes,
        freed_bytes=0,
        deferred=(),
        download=expected if expected is not None and expected.total != 0 else None,
        environment=details,
    )
    warnings = (*notices_of_vendors(changes, done=False), *not_honoured(context, inputs.plan, refused))
    if change is not None and (change.whole is None or (expected is not None and expected.model)):
        # What is planned can be shown there all the same.
        blocked = home_refusal(context, inputs.plan, managed=place.prefix is None)
        warnings += (Notice.of(blocked),) if blocked is not None else ()
    return Result(told, (*notices_of(findings), *warnings), (refused,) if refused is not None else ())
