"""One run of setup under the mutex: plan after plan, until one is proved or nothing more can be tried.

What differs between the managed target and somebody's own environment is in their `Place`. It is one long file because
every step reads what the run has met so far.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from imprint.context import Context
from imprint.errors import ImprintError
from imprint.hints import helps
from imprint.planning.model import Device, Installed, Plan
from imprint.provisioning.downloads import Download, download_into, sizes_of
from imprint.provisioning.notices import (
    DeferredFolder,
    notices_of_left_out,
    notices_of_pruned,
    notices_of_skipped,
    notices_of_vendors,
    tell_pruned,
    waiting,
)
from imprint.provisioning.options import (
    Seams,
    SetupOptions,
    Story,
    confirm_download,
    not_honoured,
    provide_model,
    refusal_of,
)
from imprint.provisioning.retrying import keep_for_retry, kept_for, release_unless_wanted, retry_hint
from imprint.results import Notice, Result
from imprint.runtime import prune
from imprint.runtime.check.result import CheckReport
from imprint.runtime.check.run import CheckResult
from imprint.runtime.checkpoint import reached
from imprint.runtime.distributions import vendors
from imprint.runtime.distributions.embedding_needs import BASE_LOCK
from imprint.runtime.events import Event, OnEvent
from imprint.runtime.installer.sources import Sources
from imprint.runtime.installer.uv import find_uv
from imprint.runtime.managed import deferred
from imprint.runtime.managed.place import ManagedPlace
from imprint.runtime.place import Change, Changed, EnvironmentChanges, Place
from imprint.runtime.prune import Pruned
from imprint.runtime.target import Target, read_pointer
from imprint.runtime.verdict import TargetVerdict, decide
from imprint.situation import homes
from imprint.situation.checked import failure_of, lies_outside, name_of, record
from imprint.situation.inputs import Inputs, gather, load_builds, machine_here
from imprint.situation.reading import notices_of
from imprint.situation.status import Status, status_of
from imprint.situation.targets import damage_in, withheld_from
from imprint.situation.verdict import default_hint, elsewhere_line, errors_of, holds, judge_just_proved, look_at
from imprint.state import config
from imprint.state.findings import Findings
from imprint.values import ABSENT, Absent, Record, replace


class SetupResult(Record):
    """What setup did, or with `download` what it would do; `environment` is there for somebody's own."""

    plan: Plan
    check: CheckReport | None
    status: Status
    changes: tuple[Changed, ...]
    freed_bytes: int | None
    deferred: tuple[DeferredFolder, ...]
    download: Download | Absent | None = ABSENT
    environment: EnvironmentChanges | Absent | None = ABSENT


def place_of(context: Context, options: SetupOptions, seams: Seams) -> Place:
    """Return the managed target, or the environment that the options name."""
    if options.venv is None:
        return ManagedPlace(context.home, context.environ, seams.lock_path, elsewhere=options.machine is not None)
    from imprint.runtime.foreign.place import ForeignPlace  # most runs change nobody's environment

    return ForeignPlace(options.venv, context.home, context.environ, load_builds(digests=False), seams.lock_path)


def inputs_for(  # noqa: PLR0913 - all but the first four are keywords
    context: Context,
    options: SetupOptions,
    seams: Seams,
    target: Target | None,
    *,
    findings: Findings,
    ignore_failed: bool = False,
    device: str | None = None,
) -> Inputs:
    """Return the plan for a target as the options ask for it; `device` stands for what the configuration says."""
    flags = dict(context.flags) | ({"model.device": device} if device is not None else {})
    context = Context(context.home, context.environ, flags)
    machine = seams.machine if options.machine is None else machine_here(options.machine, context)
    return gather(context, target, findings=findings, machine=machine, ignore_failed=ignore_failed)


def download_for_change(context: Context, inputs: Inputs, change: Change, seams: Seams) -> Download:
    """Return what a change fetches at most: the build's whole lock when any of it is missing."""
    from imprint.runtime.distributions.pins import pins_of

    base = pins_of([seams.lock_path(BASE_LOCK)]) if change.install else ()
    return download_into(context, inputs, change.install, base, kept_for(context, inputs))


class _Ended(Record):
    """How a run ended: the plan it followed, what is there now, and the check that was made, if any.

    `proved`: a check on the planned GPU holds; `refused` is why nothing was done, or what the last check found.
    """

    plan: Plan
    target: Target | None
    proved: bool
    check: CheckResult | None = None
    refused: Notice | None = None

    @property
    def is_sure(self) -> bool:
        """Whether the target was looked at and proved by this run, so that neither has to be done again."""
        return self.refused is None and (self.check is None or self.check.ok)


@dataclass(slots=True)
class Run:
    """One run under the mutex, and what it has to tell. `acted`: something was installed, removed or made current."""

    context: Context
    options: SetupOptions
    on_event: OnEvent
    seams: Seams
    sources: Sources
    place: Place = field(init=False)
    findings: Findings = field(init=False)
    story: Story = field(init=False)
    warnings: list[Notice] = field(default_factory=list)
    has_model: bool = False
    acted: bool = False

    def __post_init__(self) -> None:
        self.place = place_of(self.context, self.options, self.seams)
        self.findings = Findings(writing_in=self.context.home)
        self.story = Story(self.on_event)

    def to_the_end(self) -> Result[SetupResult]:
        """Provision, provide the model, prune, and return the data of `imprint setup --json`."""
        before = self.place.current(self.findings)
        self.place.recover()
        reached("swept")
        ended = self._provision(before)
        if ended.refused is None:
            self._provide_model()
        pruned = self._prune(before, ended)
        reached("pruned")
        plan = _as_done(ended.plan, ended.target)
        changes = self.place.changed(before, ended.target)
        verdict = self._verdict(ended, plan)
        return Result(
            SetupResult(
                plan=plan,
                check=ended.check.report if ended.check is not None else None,
                status=self._status(verdict, ended, plan),
                changes=changes,
                freed_bytes=pruned.freed,
                deferred=waiting(pruned),
                environment=ABSENT if self.place.prefix is None else self.place.details(),
            ),
            warnings=(
                *notices_of(self.findings),
                # A check that failed in this run has said already why the CPU is used.
                *(self.warnings or not_honoured(self.context, plan, ended.refused)),
                *notices_of_vendors(changes, done=True),
                *notices_of_left_out(self.place.left_out()),
                *notices_of_skipped(self.place.skipped()),
                *notices_of_pruned(pruned),
                *self._not_configured(ended),
            ),
            errors=self._errors(verdict, ended),
        )

    @property
    def _elsewhere(self) -> bool:
        return self.options.machine is not None

    def _verdict(self, ended: _Ended, plan: Plan) -> TargetVerdict:
        if ended.is_sure and ended.target is not None:
            return judge_just_proved(self.context, ended.target, plan, gpu_proved=ended.proved)
        return decide(look_at(self.context, ended.target, plan, gpu_proved=ended.proved, prove=None))

    def _errors(self, verdict: TargetVerdict, ended: _Ended) -> tuple[Notice, ...]:
        """Return why this run failed: what refused it, or that embeddings do not run after it all the same."""
        if ended.refused is not None:
            return (ended.refused,)
        return () if self._elsewhere else errors_of(verdict)

    def _status(self, verdict: TargetVerdict, ended: _Ended, plan: Plan) -> Status:
        status = status_of(verdict, default_hint(self.context, plan, self.place.prefix))
        if self._elsewhere and ended.refused is None and ended.target is not None:
            return replace(status, line=elsewhere_line(plan), runs_on="none", embeds=False, device=None)
        return status

    def _not_configured(self, ended: _Ended) -> tuple[Notice, ...]:
        """Return the warning that the other machine would plan something else, since an option is for one run only."""
        if not self._elsewhere or ended.refused is not None or "model.device" not in self.context.flags:
            return ()
        asked = self.context.flags["model.device"]
        configured = config.load(self.context.home, self.context.environ, {}).device
        if configured == asked:
            return ()
        message = (
            f"the configuration says model.device = {configured}, so `imprint setup` there would switch back to that"
        )
        return (Notice("device-not-configured", message, helps("set-device", device=asked)),)

    # --- plan after plan --------------------------------------------------------------------------------------------

    def _provision(self, before: Target | None) -> _Ended:
        """Follow the plan, and the next one when its GPU does not pass; at most once for each build and device."""
        inputs = self._plan(before, ignore_failed=self.options.retry_gpu)
        release_unless_wanted(self.context, inputs)
        retry, now = self.options.retry_gpu, before
        tried: set[tuple[str | None, object]] = set()
        failed: CheckResult | None = None
        while True:
            plan = inputs.plan
            refused = refusal_of(self.context, inputs, self.options)
            if refused is not None:
                return _Ended(plan, now, inputs.proved, refused=refused)
            ended = self._follow(inputs, now, retry=retry)
            now, retry, check = ended.target, False, ended.check
            if check is None or check.ok:
                # A check that failed in this run says more than the one on the CPU that followed.
                return ended if failed is None else replace(ended, check=failed)
            failure = self._failure(inputs, check)
            if plan.device is None or self.options.require_gpu:
                return replace(ended, refused=failure)
            self.warnings.append(failure)
            failed = check
            tried.add((plan.build, plan.device))
            inputs = self._plan(now)
            # Such a verdict does not count where something of these surroundings is unknown.
            if check.outcome == "inconclusive" or (inputs.plan.build, inputs.plan.device) in tried:
                told = plan if check.outcome == "inconclusive" else inputs.plan
                return self._fall_back(told, check, now)

    def _fall_back(self, plan: Plan, check: CheckResult, now: Target | None) -> _Ended:
        """End without the planned GPU: what works and was there before stays, else the CPU build comes."""
        stays = now is not None and not self.acted and not damage_in(self.context, now)
        if stays and now is not None and (check.outcome == "inconclusive" or now.build != plan.build):
            return _Ended(plan, now, False, check)
        inputs = self._plan(now, device="cpu")
        ended = self._follow(inputs, now, retry=False)
        bad = ended.check is not None and not ended.check.ok
        refused = self._failure(inputs, ended.check) if bad and ended.check is not None else None
        return _Ended(plan, ended.target, False, check, refused)

    def _follow(self, inputs: Inputs, before: Target | None, *, retry: bool) -> _Ended:
        """Do what one plan says, and return what is there then."""
        plan = inputs.plan
        change = self._compare(inputs, repair=self.options.repair)
        whole = change.whole
        if whole is not None and (self._elsewhere or self._is_proved(whole, inputs, retry=retry)):
            return _Ended(plan, self._adopt(whole, before), inputs.proved)
        if whole is not None and (withheld := withheld_from(whole)) is not None:
            raise withheld
        self.story.begin(inputs)
        if whole is not None:
            self.on_event(Event("start", "check", "checking what is installed"))
            check = self.seams.check(whole.python, plan.device, self.context.environ)
            self._record(whole, inputs, check)
            if check.ok:
                self._adopt(whole, before)
                # Read again: what was recorded of the check may be with it.
                return _Ended(plan, self.place.current(), plan.device is not None, check)
            if plan.device is not None or not self.place.rebuilds or lies_outside(check):
                return _Ended(plan, before, False, check)
            self.on_event(Event("warning", "check", f"replacing what is installed: {failure_of(check).message}"))
            change = self._compare(inputs, repair=True)
        return self._carry_out(change, inputs, before)

    def _carry_out(self, change: Change, inputs: Inputs, before: Target | None) -> _Ended:
        plan = inputs.plan
        # Whether a disk is too full is seen where something has to be fetched.
        homes.require(self.context.home, None, managed=self.place.prefix is None)
        if change.install:
            expected = download_for_change(self.context, inputs, change, self.seams)
            confirm_download(self.options, inputs, expected)
            change.expect(expected.total, expected.on_disk)
        for told in _announced(change):
            self.on_event(Event("info", "plan", told))
        if not change.interrupted:
            self._provide_model()
        # Whatever stops this run, the next one knows what the cache may hold for nothing.
        deferred.note(self.context.home, change.names)
        reached("noted")
        uv = find_uv(self.context.home, self.context.environ, self.sources)
        carried = change.carry_out(uv, self._check, self.on_event)
        check = carried.check
        self.acted = self.acted or carried.made
        if not carried.made and (plan.device is None or self._elsewhere):
            raise _not_used(check)
        if self._elsewhere:
            return _Ended(plan, carried.target, False)
        # What a generation passed on the CPU before it was made current is in its manifest.
        self._record(carried.target if self.place.prefix is not None else None, inputs, check)
        if not carried.made and check.outcome == "inconclusive":
            deferred.forget(self.context.home, change.names)
        if check.ok and plan.device is not None:
            deferred.release(self.context.home)
        return _Ended(plan, carried.target if carried.made else before, check.ok and plan.device is not None, check)

    # --- the steps --------------------------------------------------------------------------------------------------

    def _plan(self, target: Target | None, *, ignore_failed: bool = False, device: str | None = None) -> Inputs:
        return inputs_for(
            self.context,
            self.options,
            self.seams,
            target,
            findings=self.findings,
            ignore_failed=ignore_failed,
            device=device,
        )

    def _compare(self, inputs: Inputs, *, repair: bool) -> Change:
        needed = sizes_of(inputs)[1]
        return self.place.compare(inputs.plan, needed=needed, repair=repair, findings=self.findings)

    def _is_proved(self, whole: Target, inputs: Inputs, *, retry: bool) -> bool:
        """Whether what is whole needs no check: it passed one here, on the planned device, that still holds."""
        return holds(self.context, whole) and (inputs.plan.device is None or (inputs.proved and not retry))

    def _adopt(self, whole: Target, before: Target | None) -> Target:
        if before is not None and (whole.prefix, whole.generation) == (before.prefix, before.generation):
            return whole
        # What stops the model keeps what is there current.
        self._provide_model()
        self.acted = True
        return self.place.adopt(whole)

    def _check(self, python: Path, device: Device | None, environ: Any) -> CheckResult:  # noqa: ANN401 - see Check
        self.on_event(Event("start", "check", "checking that it computes correctly"))
        check = self.seams.check(python, device, environ)
        if check.ok:
            self.on_event(Event("done", "check", f"correct results on {name_of(device)}"))
        return check

    def _record(self, target: Target | None, inputs: Inputs, check: CheckResult) -> None:
        if check.device is not None or target is not None:
            record(self.context, target, inputs, check, self.findings)
            reached("recorded")

    def _failure(self, inputs: Inputs, check: CheckResult) -> Notice:
        """Return the notice on a check that was not passed, and keep what another try of a GPU would download."""
        if check.device is not None and check.outcome != "inconclusive":
            from imprint.runtime.distributions.pins import pins_of

            keep_for_retry(self.context, inputs, pins_of([self.seams.lock_path(inputs.plan.lock or "")]))
        hint = retry_hint(self.context, inputs, inputs.plan.build, self.place.prefix)
        return failure_of(check, self.place.prefix, retry=hint)

    def _provide_model(self) -> None:
        """Install the model, once in a run and before another runtime is current: what stops it changes nothing.

        An environment that is half changed comes first.
        """
        if not self.has_model:
            provide_model(self.context, self.options, self.seams, self.sources, self.on_event)
        self.has_model = True

    def _prune(self, before: Target | None, ended: _Ended) -> Pruned:
        home = self.context.home
        if not self.acted and (ended.refused is not None or not prune.is_due(home, read_pointer(home))):
            return Pruned()
        if self.place.prefix is None:
            self.on_event(Event("start", "prune", "removing what is no longer needed"))
        uv = find_uv(home, self.context.environ, self.sources)
        pruned = prune.prune(home, uv, keep_previous=self.place.keeps(before, ended.target))
        tell_pruned(pruned, self.on_event)
        return pruned


def _announced(change: Change) -> Iterator[str]:
    """Yield what has to be said before a change begins."""
    if change.interrupted:
        yield "an earlier change was interrupted; this run finishes it"
    if change.replaces is not None:
        yield f"replacing the current runtime: {change.replaces}"
    if names := vendors.leaving(change.changes):
        yield f"this replaces {vendors.with_providers(names)}"


def _not_used(check: CheckResult) -> ImprintError:
    found = failure_of(check)
    hint = helps("doctor-nothing-changed")
    if lies_outside(check) and found.hint is not None:
        hint = helps("nothing-changed-then", hint=found.hint)
    return ImprintError(f"the new runtime was not used, because {found.message}", hint=hint, code=found.code)


def _as_done(plan: Plan, target: Target | None) -> Plan:
    """Return the plan with what is installed after it was followed."""
    if target is None or target.build is None:
        return plan
    pending = (target.build, target.version) != (plan.build, plan.version)
    return replace(plan, installed=Installed(target.build, target.version), pending=pending)
