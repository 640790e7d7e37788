"""Brings the managed target to what is planned, under the mutex: a new generation, proved, then made current."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from imprint.errors import ImprintError, UsageError
from imprint.hints import helps
from imprint.operations.check import failure_of, lies_outside, record
from imprint.operations.context import Context
from imprint.operations.downloads import download_of, sizes_of
from imprint.operations.planning_inputs import Inputs, gather
from imprint.operations.result import Remark, Result
from imprint.operations.retrying import keep_for_retry, release_unless_wanted, retry_hint
from imprint.operations.setup_options import (
    Seams,
    SetupOptions,
    Story,
    changes_between,
    confirm_download,
    not_honoured,
    provide_model,
    refusal_of,
)
from imprint.operations.status import deferred_line, remarks_of
from imprint.operations.verdict import default_hint, holds, judge, judge_just_proved
from imprint.planning.model import Installed, Machine, Plan
from imprint.planning.wire import plan_to_json
from imprint.probing.host import RealHost
from imprint.probing.survey import survey
from imprint.runtime import deferred, generations, prune
from imprint.runtime.check import CheckResult
from imprint.runtime.checkpoint import reached
from imprint.runtime.events import Event, OnEvent
from imprint.runtime.prune import Pruned
from imprint.runtime.recipe import Recipe, pins_of, recipe_for
from imprint.runtime.target import Target, current_target, read_pointer
from imprint.runtime.uv import Sources, find_uv
from imprint.sizes import in_units
from imprint.state import config
from imprint.state.findings import Findings


@dataclass(frozen=True, slots=True)
class _Provisioned:
    """How provisioning ended: the plan it followed, what is current now, and the check that was made, if any."""

    plan: Plan
    target: Target | None
    proved: bool
    check: CheckResult | None = None
    refused: Remark | None = None

    @property
    def is_sure(self) -> bool:
        """Whether the target was looked at and proved by this run, so that neither has to be done again."""
        return self.refused is None and (self.check is None or self.check.ok)


@dataclass(slots=True)
class Provisioning:
    """One run under the mutex, and what it has to tell."""

    context: Context
    options: SetupOptions
    on_event: OnEvent
    seams: Seams
    sources: Sources
    findings: Findings = field(init=False)
    warnings: list[Remark] = field(default_factory=list)
    story: Story = field(init=False)
    has_model: bool = False

    def __post_init__(self) -> None:
        self.findings = Findings(writing_in=self.context.home)
        self.story = Story(self.on_event)

    def to_the_end(self) -> Result:
        """Provision, provide the model, prune, and return the data of `imprint setup --json`."""
        home = self.context.home
        before = current_target(home, self.findings)
        prune.sweep_unfinished(home, read_pointer(home))
        reached("swept")
        ended = self._provision(before)
        pruned = Pruned()
        if ended.refused is None:
            self._provide_model()
            pruned = self._prune(before, ended.target)
        reached("pruned")
        plan = _as_done(ended.plan, ended.target)
        if ended.is_sure and ended.target is not None:
            verdict = judge_just_proved(self.context, ended.target, plan, gpu_proved=ended.proved)
        else:
            verdict = judge(self.context, ended.target, plan, gpu_proved=ended.proved, prove=None)
        status = verdict.to_json()
        status |= {"hint": default_hint(self.context, plan)}
        if self.options.machine is not None and ended.refused is None and ended.target is not None:
            status |= {"line": deferred_line(plan), "runs_on": "none", "embeds": False, "device": None}
        return Result(
            {
                "plan": plan_to_json(plan),
                "check": ended.check.to_json() if ended.check is not None else None,
                "status": status,
                "changes": changes_between(distributions_of(before), distributions_of(ended.target)),
                "freed_bytes": pruned.freed,
                "deferred": deferred_to_json(pruned),
            },
            # A check that failed in this run has said already why the CPU is used.
            warnings=(
                *remarks_of(self.findings),
                *(self.warnings or not_honoured(self.context, plan, ended.refused)),
                *remarks_of_pruned(pruned),
                *self._not_configured(ended),
            ),
            errors=(ended.refused,) if ended.refused is not None else (),
        )

    def _not_configured(self, ended: _Provisioned) -> tuple[Remark, ...]:
        """Return the warning that the other machine would plan something else, since an option is for one run only."""
        if self.options.machine is None or ended.refused is not None or "model.device" not in self.context.flags:
            return ()
        asked = self.context.flags["model.device"]
        configured = config.load(self.context.home, self.context.environ, {}).text("model.device")
        if configured == asked:
            return ()
        message = (
            f"the configuration says model.device = {configured}, so `imprint setup` there would switch back to that"
        )
        return (Remark("device-not-configured", message, helps("set-device", device=asked)),)

    def _provision(self, before: Target | None) -> _Provisioned:
        inputs = self._gather(before, ignore_failed=self.options.retry_gpu)
        release_unless_wanted(self.context, inputs)
        retry = self.options.retry_gpu
        tried: set[tuple[str | None, object]] = set()
        failed: CheckResult | None = None
        while True:
            plan = inputs.plan
            refused = refusal_of(self.context, inputs, self.options)
            if refused is not None:
                return _Provisioned(plan, before, inputs.proved, refused=refused)
            ended = self._follow(inputs, before, retry=retry)
            retry = False
            check = ended.check
            if check is None or check.ok:
                return ended if failed is None else replace(ended, check=failed)
            failure = self._failure(inputs, check)
            if self.options.require_gpu:
                return _Provisioned(plan, before, False, check, failure)
            self.warnings.append(failure)
            failed = check
            tried.add((plan.build, plan.device))
            if check.outcome == "inconclusive":
                return self._fall_back(plan, check, before)
            inputs = self._gather(before)
            if (inputs.plan.build, inputs.plan.device) in tried:
                # The verdict does not count because something of these surroundings is unknown.
                return self._fall_back(plan, check, before)

    def _failure(self, inputs: Inputs, check: CheckResult) -> Remark:
        """Return the remark on a GPU that did not pass, and keep what another try would download."""
        if check.outcome != "inconclusive":
            keep_for_retry(self.context, inputs, pins_of(recipe_for(inputs.plan, self.seams.lock_path).locks))
        return failure_of(check, retry=retry_hint(self.context, inputs, inputs.plan.build, None))

    def _follow(self, inputs: Inputs, before: Target | None, *, retry: bool) -> _Provisioned:
        """Do what one plan says; the result's target is `before` when the check of a GPU build was not passed."""
        plan = inputs.plan
        elsewhere = self.options.machine is not None
        recipe = recipe_for(plan, self.seams.lock_path, build_bytes=sizes_of(inputs)[1])
        faults = generations.faults_of(before, recipe) if before is not None else ()
        whole = None if self.options.repair else self._whole(recipe, before, faults)
        if whole is not None and (elsewhere or self._is_proved(whole, inputs, retry=retry)):
            return _Provisioned(plan, self._current(whole, before), inputs.proved)
        self.story.begin(inputs)
        if whole is not None:
            self.on_event(Event("start", "check", "checking what is installed"))
            check = self.seams.check(whole.python, plan.device, self.context.environ)
            self._record(whole, inputs, check)
            if check.ok:
                self._current(whole, before)
                # Read again: what was recorded of the check is in its manifest.
                return _Provisioned(plan, current_target(self.context.home), plan.device is not None, check)
            if plan.device is not None:
                return _Provisioned(plan, before, False, check)
            self.on_event(Event("warning", "check", f"replacing what is installed: {failure_of(check).message}"))
        self._agree(inputs, faults)
        self._provide_model()
        names = pins_of(recipe.locks)
        # Whatever stops this run, the next one knows what the cache may hold for nothing.
        deferred.note(self.context.home, names)
        reached("noted")
        staged = generations.stage(
            self.context.home,
            find_uv(self.context.home, self.context.environ, self.sources),
            recipe,
            # Of another machine's GPU nothing can be proved here, but the build has to load and compute.
            device=None if elsewhere else plan.device,
            environ=self.context.environ,
            check=self.seams.check,
            deferred=elsewhere,
            deep=self.options.repair,
            on_event=self.on_event,
        )
        check = staged.check
        if not check.ok:
            generations.discard(staged)
            if plan.device is None or elsewhere:
                raise _cpu_failed(check)
            self._record(None, inputs, check)
            if check.outcome == "inconclusive":
                deferred.forget(self.context.home, names)
            return _Provisioned(plan, before, False, check)
        self.on_event(Event("start", "switch", "making it current"))
        target = generations.switch(self.context.home, staged)
        self.on_event(Event("done", "switch", f"{recipe.build} {recipe.version} is current"))
        if elsewhere:
            return _Provisioned(plan, target, False)
        self._record(None, inputs, check)
        if plan.device is not None:
            deferred.release(self.context.home)
        return _Provisioned(plan, target, plan.device is not None, check)

    def _provide_model(self) -> None:
        """Install the model, once in a run and before another runtime is current: what stops it changes nothing."""
        if not self.has_model:
            provide_model(self.context, self.options, self.seams, self.sources, self.on_event)
        self.has_model = True

    def _agree(self, inputs: Inputs, faults: Sequence[str]) -> None:
        """Ask before a large download, and only then say that the current runtime goes."""
        confirm_download(self.options, inputs, download_of(self.context, inputs))
        if faults:
            self.on_event(Event("info", "plan", f"replacing the current runtime: {faults[0]}"))

    def _is_proved(self, whole: Target, inputs: Inputs, *, retry: bool) -> bool:
        """Whether a whole generation needs no check: it passed one here, on the planned device, that still holds."""
        return holds(self.context, whole) and (inputs.plan.device is None or (inputs.proved and not retry))

    def _whole(self, recipe: Recipe, before: Target | None, faults: Sequence[str]) -> Target | None:
        """Return a generation that needs nothing: the current one, or a finished one that nothing points to."""
        if before is not None and not faults:
            return before
        return generations.find_whole(self.context.home, recipe)

    def _current(self, whole: Target, before: Target | None) -> Target:
        if before is not None and whole.generation == before.generation:
            return before
        if whole.manifest is None:
            return whole
        self._provide_model()
        # A run that is killed after this has to be recognised by the next: what is left behind may be large.
        deferred.note(self.context.home, distributions_of(before))
        return generations.point_to(self.context.home, whole.manifest)

    def _fall_back(self, plan: Plan, check: CheckResult, before: Target | None) -> _Provisioned:
        """End without the planned GPU: what works stays (unless its check just failed), else the CPU build comes."""
        stays = before is not None and not generations.damage_of(before)
        if stays and before is not None and (check.outcome == "inconclusive" or before.build != plan.build):
            return _Provisioned(plan, before, False, check)
        ended = self._follow(self._gather(before, device="cpu"), before, retry=False)
        return _Provisioned(plan, ended.target, False, check)

    def _gather(self, target: Target | None, *, ignore_failed: bool = False, device: str | None = None) -> Inputs:
        flags = dict(self.context.flags) | ({"model.device": device} if device is not None else {})
        context = Context(self.context.home, self.context.environ, flags)
        machine = self.seams.machine
        if self.options.machine is not None:
            machine = machine_here(self.options.machine, context)
        return gather(context, target, findings=self.findings, machine=machine, ignore_failed=ignore_failed)

    def _record(self, target: Target | None, inputs: Inputs, check: CheckResult) -> None:
        """Record what a check proved; that of a new generation on the CPU is in its manifest already."""
        if check.device is not None or target is not None:
            record(self.context, target, inputs, check, self.findings)
            reached("recorded")

    def _prune(self, before: Target | None, after: Target | None) -> Pruned:
        home = self.context.home
        changed = after is not None and (before is None or before.generation != after.generation)
        if not changed and not prune.is_due(home, read_pointer(home)):
            return Pruned()
        self.on_event(Event("start", "prune", "removing what is no longer needed"))
        uv = find_uv(home, self.context.environ, self.sources)
        pruned = prune.prune(home, uv, keep_previous=_is_worth_keeping(before, after))
        tell_pruned(pruned, self.on_event)
        return pruned


def machine_here(machine: Machine, context: Context) -> Machine:
    """Return another machine's document with the interpreter that runs this, which will be the target's.

    Raises UsageError when that machine cannot run what is installed here.
    """
    own = survey(RealHost(context.environ), hardware=False)
    for what in ("os", "arch"):
        theirs, ours = getattr(machine.platform, what), getattr(own.platform, what)
        if theirs is not None and theirs != ours:
            raise UsageError(
                f"that machine has {theirs} and this one has {ours}, so it could not run this runtime",
                hint=helps("setup-there"),
            )
    libcs = [found.platform.libc.name for found in (machine, own) if found.platform.libc is not None]
    if len(set(filter(None, libcs))) > 1:
        raise UsageError("that machine has another C library, so it could not run this runtime")
    return replace(machine, python=own.python)


def distributions_of(target: Target | None) -> Mapping[str, str]:
    """Return what a managed target holds, versions by name."""
    return target.manifest.distributions if target is not None and target.manifest is not None else {}


def deferred_to_json(pruned: Pruned) -> list[dict[str, Any]]:
    """Return the folders that wait for a process, as documents show them."""
    return [{"path": str(left.path), "bytes": left.size, "pid": left.pid} for left in pruned.deferred]


def remarks_of_pruned(pruned: Pruned) -> tuple[Remark, ...]:
    """Return the warning that another uv kept the cache from being cleaned."""
    if not pruned.waiting:
        return ()
    message = f"another uv process is using the cache, so {len(pruned.waiting)} packages in it could not be removed"
    return (Remark("cache-busy", message, helps("next-run-removes")),)


def tell_pruned(pruned: Pruned, on_event: OnEvent) -> None:
    """Say what became free, and what waits for whom."""
    if pruned.freed:
        on_event(Event("done", "prune", f"{in_units(pruned.freed)} freed", pruned.freed, pruned.freed))
    for left in pruned.deferred:
        size = in_units(left.size)
        on_event(
            Event("info", "prune", f"`{left.path}` ({size}) is in use by process {left.pid}; a later run removes it")
        )


def _cpu_failed(check: CheckResult) -> ImprintError:
    found = failure_of(check)
    hint = helps("doctor-nothing-changed")
    if lies_outside(check) and found.hint is not None:
        hint = helps("nothing-changed-then", hint=found.hint)
    return ImprintError(f"the new runtime was not used, because {found.message}", hint=hint, code=found.code)


def _is_worth_keeping(before: Target | None, after: Target | None) -> bool:
    """Whether the generation before is something to go back to: not damaged, and not the same thing again."""
    if before is None or after is None or (before.build, before.version) == (after.build, after.version):
        return before is not None and after is not None and before.generation == after.generation
    return not generations.damage_of(before)


def _as_done(plan: Plan, target: Target | None) -> Plan:
    """Return the plan with what is installed after it was followed."""
    if target is None or target.build is None:
        return plan
    pending = (target.build, target.version) != (plan.build, plan.version)
    return replace(plan, installed=Installed(target.build, target.version), pending=pending)
