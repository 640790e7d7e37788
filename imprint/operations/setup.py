"""`setup`: survey, plan, provision, check, record, prune, and say in one line what embeddings run on and why."""

from __future__ import annotations

from typing import Any

from imprint.operations.context import Context
from imprint.operations.downloads import Download, download_of, model_download
from imprint.operations.planning_inputs import gather
from imprint.operations.provisioning import Provisioning, distributions_of, machine_here
from imprint.operations.result import Result
from imprint.operations.setup_options import (
    CONFIRM_ABOVE,
    REAL,
    Seams,
    SetupOptions,
    UnansweredError,
    agreed_to,
    asking_later,
    changes_between,
    command_again,
    not_honoured,
    refusal_of,
    sources_of,
)
from imprint.operations.status import remarks_of
from imprint.operations.verdict import judge
from imprint.planning.wire import plan_to_json
from imprint.runtime import generations
from imprint.runtime.checkpoint import reached
from imprint.runtime.events import Event, OnEvent
from imprint.runtime.interrupts import FINISH, interruptible
from imprint.runtime.recipe import pins_of, recipe_for
from imprint.runtime.target import current_target
from imprint.runtime.uv import Sources
from imprint.state import mutex
from imprint.state.findings import Findings

__all__ = ["CONFIRM_ABOVE", "Seams", "SetupOptions", "setup"]


def setup(context: Context, options: SetupOptions, on_event: OnEvent, *, seams: Seams = REAL) -> Result:
    """Bring a target to what the plan says, prove it, and return what embeddings run on and why.

    The managed target's old generation stays current until the new one is proved; somebody's own environment is
    changed in place, resumably. A second run with everything right starts no child and uses no network. With
    `require_gpu` a plan without a GPU is an error and changes nothing. Raises BusyError, NetworkError,
    IntegrityError, NoSpaceError, StateError, InterruptedByUserError, or ImprintError; then what was current still is.
    """
    if options.dry_run and options.venv is None:
        return _dry_run(context, options, seams)
    if options.dry_run:
        from imprint.operations.setup_inplace import dry_run_inplace

        return dry_run_inplace(context, options, seams)
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
) -> Result:
    def on_wait(message: str) -> None:
        on_event(Event("info", "survey", message))

    with mutex.hold(context.home, options.wait_seconds, command=options.command, on_wait=on_wait):
        reached("mutex-held")
        if options.venv is not None:
            from imprint.operations.setup_inplace import setup_inplace

            return setup_inplace(context, options, on_event, seams, sources)
        return Provisioning(context, options, on_event, seams, sources).to_the_end()


def _dry_run(context: Context, options: SetupOptions, seams: Seams) -> Result:
    findings = Findings()
    target = current_target(context.home, findings)
    machine = seams.machine if options.machine is None else machine_here(options.machine, context)
    inputs = gather(context, target, findings=findings, machine=machine, ignore_failed=options.retry_gpu)
    refused = refusal_of(context, inputs, options)
    changes: list[dict[str, Any]] = []
    expected: Download | None = None
    verdict = judge(context, target, inputs.plan, gpu_proved=inputs.proved, prove=seams.check)
    verdict = verdict.with_setup(command_again(context, options))
    if refused is None:
        recipe = recipe_for(inputs.plan, seams.lock_path)
        if target is None or generations.faults_of(target, recipe) or options.repair:
            changes = changes_between(distributions_of(target), pins_of(recipe.locks))
            expected = download_of(context, inputs)
        elif missing := model_download(context):
            expected = Download(0, 0, missing, 0)
    return Result(
        {
            "plan": plan_to_json(inputs.plan),
            "check": None,
            "status": verdict.to_json(),
            "changes": changes,
            "freed_bytes": 0,
            "deferred": [],
            "download": None if expected is None else expected.to_json(),
        },
        warnings=(*remarks_of(findings), *not_honoured(context, inputs.plan, refused)),
        errors=(refused,) if refused is not None else (),
    )
