"""`setup`: survey, plan, provision, check, record, prune, and say in one line what embeddings run on and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from imprint import resources
from imprint.embedding import models
from imprint.errors import ImprintError, UsageError
from imprint.operations.check import failure_of, record
from imprint.operations.context import Context
from imprint.operations.planning_inputs import Inputs, gather, request_of
from imprint.operations.result import Remark, Result
from imprint.operations.status import remarks_of, status_data
from imprint.planning.model import Installed, Machine, Plan
from imprint.planning.wire import plan_to_json
from imprint.runtime import generations, prune
from imprint.runtime.check import CheckResult, run_check
from imprint.runtime.checkpoint import reached
from imprint.runtime.events import Event, OnEvent
from imprint.runtime.interrupts import interruptible
from imprint.runtime.prune import Pruned
from imprint.runtime.recipe import Recipe, own_interpreter, pins_of, recipe_for
from imprint.runtime.target import Target, current_target, read_pointer
from imprint.runtime.uv import Sources, find_uv
from imprint.state import config, files, mutex
from imprint.state.files import Damage


@dataclass(frozen=True, slots=True)
class SetupOptions:
    """How to set up. The device and the model are configuration, and come with the context's flags.

    `confirm` is asked before a download of more than `CONFIRM_ABOVE` bytes; None asks nobody. `wait_seconds` is for the
    mutex, 0 fails at once.
    """

    require_gpu: bool = False
    retry_gpu: bool = False
    repair: bool = False
    dry_run: bool = False
    offline: bool = False
    find_links: Path | None = None
    index_url: str | None = None
    wait_seconds: float = mutex.DEFAULT_WAIT
    command: str = "imprint setup"
    confirm: Callable[[Plan], bool] | None = field(default=None, compare=False)


CONFIRM_ABOVE = 100 * 10**6
"""Bytes; a smaller download is not worth a question."""


@dataclass(frozen=True, slots=True)
class Seams:
    """What setup asks of the world around it; tests play it. `machine` None: this one is surveyed."""

    machine: Machine | None = None
    check: generations.Check = run_check
    lock_path: Callable[[str], Path] = resources.lock_path
    install_model: Callable[..., object] = models.install_model


def setup(context: Context, options: SetupOptions, on_event: OnEvent, *, seams: Seams = Seams()) -> Result:
    """Bring the managed target to what the plan says, prove it, and return what embeddings run on and why.

    The old target stays current until the new one is proved. A second run with everything right starts no child and
    uses no network. With `require_gpu` a plan without a GPU is an error and changes nothing. Raises BusyError,
    NetworkError, IntegrityError, NoSpaceError, StateError, InterruptedByUserError, or ImprintError; then what was
    current still is.
    """
    if options.dry_run:
        return _dry_run(context, options, seams)
    sources = _sources(options)

    def on_wait(message: str) -> None:
        on_event(Event("info", "survey", message))

    with (
        interruptible("setup"),
        mutex.hold(context.home, options.wait_seconds, command=options.command, on_wait=on_wait),
    ):
        reached("mutex-held")
        return _Run(context, options, on_event, seams, sources).to_the_end()


@dataclass(frozen=True, slots=True)
class _Provisioned:
    """How provisioning ended: the plan it followed, what is current now, and the check that was made, if any."""

    plan: Plan
    target: Target | None
    proved: bool
    check: CheckResult | None = None
    refused: Remark | None = None


@dataclass(slots=True)
class _Run:
    """One run under the mutex, and what it has to tell."""

    context: Context
    options: SetupOptions
    on_event: OnEvent
    seams: Seams
    sources: Sources
    findings: list[Damage] = field(default_factory=list)
    warnings: list[Remark] = field(default_factory=list)
    discarded: set[str] = field(default_factory=set)
    """Distributions of a generation that did not pass: the cache need not keep them."""

    def to_the_end(self) -> Result:
        home = self.context.home
        files.sweep(home.data)
        before = current_target(home, self.findings)
        prune.sweep(home, read_pointer(home), unfinished_only=True)
        reached("swept")
        ended = self._provision(before)
        pruned = Pruned()
        damage: tuple[str, ...] = ()
        if ended.refused is not None:
            damage = generations.damage_of(ended.target) if ended.target is not None else ()
        else:
            self._provide_model()
            pruned = self._prune(before, ended.target)
        reached("pruned")
        plan = _as_done(ended.plan, ended.target)
        return Result(
            {
                "plan": plan_to_json(plan),
                "check": ended.check.to_json() if ended.check is not None else None,
                "status": status_data(plan, ended.target, proved=ended.proved, damage=damage),
                "changes": _changes(before, ended.target),
                "freed_bytes": pruned.freed,
                "deferred": [{"path": str(left.path), "bytes": left.size, "pid": left.pid} for left in pruned.deferred],
            },
            # A check that failed in this run has said already why the CPU is used.
            warnings=(
                *remarks_of(self.findings),
                *(self.warnings or _not_honoured(self.context, plan, ended.refused)),
            ),
            errors=(ended.refused,) if ended.refused is not None else (),
        )

    def _provision(self, before: Target | None) -> _Provisioned:
        inputs = self._gather(before, ignore_failed=self.options.retry_gpu)
        retry = self.options.retry_gpu
        tried: set[tuple[str | None, object]] = set()
        failed: CheckResult | None = None
        while True:
            plan = inputs.plan
            refused = _refusal(plan, self.options)
            if refused is not None:
                return _Provisioned(plan, before, inputs.proved, refused=refused)
            ended = self._follow(plan, inputs, before, retry=retry)
            retry = False
            check = ended.check
            if check is None or check.ok:
                return ended if failed is None else replace(ended, check=failed)
            if self.options.require_gpu:
                return _Provisioned(plan, before, False, check, failure_of(check))
            self.warnings.append(failure_of(check))
            failed = check
            tried.add((plan.build, plan.device))
            if check.outcome == "inconclusive":
                return self._fall_back(plan, check, before)
            inputs = self._gather(before)
            if (inputs.plan.build, inputs.plan.device) in tried:
                # The verdict does not count because something of these surroundings is unknown.
                return self._fall_back(plan, check, before)

    def _follow(self, plan: Plan, inputs: Inputs, before: Target | None, *, retry: bool) -> _Provisioned:
        """Do what one plan says; the result's target is `before` when the check of a GPU build was not passed."""
        recipe = recipe_for(plan, self.seams.lock_path)
        whole = None if self.options.repair else self._whole(recipe, before)
        if whole is not None and (plan.device is None or (inputs.proved and not retry)):
            return _Provisioned(plan, self._current(whole, before), inputs.proved)
        if whole is not None:
            self.on_event(Event("start", "check", "checking the GPU build"))
            check = self.seams.check(whole.python, plan.device, self.context.environ)
            self._record(inputs, check)
            return _Provisioned(plan, self._current(whole, before) if check.ok else before, check.ok, check)
        self._confirm(plan)
        staged = generations.stage(
            self.context.home,
            find_uv(self.context.home, self.context.environ, self.sources),
            recipe,
            device=plan.device,
            environ=self.context.environ,
            check=self.seams.check,
            deep=self.options.repair,
            on_event=self.on_event,
        )
        check = staged.check
        if not check.ok:
            generations.discard(staged)
            if plan.device is None:
                raise _cpu_failed(check)
            self._record(inputs, check)
            if check.outcome != "inconclusive":
                self.discarded.update(staged.manifest.distributions)
            return _Provisioned(plan, before, False, check)
        self.on_event(Event("start", "switch", "making it current"))
        target = generations.switch(self.context.home, staged)
        self._record(inputs, check)
        return _Provisioned(plan, target, plan.device is not None, check)

    def _whole(self, recipe: Recipe, before: Target | None) -> Target | None:
        """Return a generation that needs nothing: the current one, or a finished one that nothing points to."""
        if before is not None:
            faults = generations.faults_of(before, recipe)
            if not faults:
                return before
            self.on_event(Event("info", "plan", f"the current runtime is replaced: {faults[0]}"))
        return generations.find_whole(self.context.home, recipe)

    def _current(self, whole: Target, before: Target | None) -> Target:
        if before is not None and whole.generation == before.generation:
            return before
        if whole.manifest is None:
            return whole
        return generations.point_to(self.context.home, whole.manifest)

    def _fall_back(self, plan: Plan, check: CheckResult, before: Target | None) -> _Provisioned:
        """End without the planned GPU: what works stays (unless its check just failed), else the CPU build comes."""
        stays = before is not None and not generations.damage_of(before)
        if stays and before is not None and (check.outcome == "inconclusive" or before.build != plan.build):
            return _Provisioned(plan, before, False, check)
        inputs = self._gather(before, device="cpu")
        ended = self._follow(inputs.plan, inputs, before, retry=False)
        return _Provisioned(plan, ended.target, False, check)

    def _gather(self, target: Target | None, *, ignore_failed: bool = False, device: str | None = None) -> Inputs:
        flags = dict(self.context.flags) | ({"model.device": device} if device is not None else {})
        context = Context(self.context.home, self.context.environ, flags)
        return gather(context, target, findings=self.findings, machine=self.seams.machine, ignore_failed=ignore_failed)

    def _record(self, inputs: Inputs, check: CheckResult) -> None:
        """Record what a check on a GPU proved; that of a new generation on the CPU is in its manifest."""
        if check.device is not None:
            self.findings.extend(record(self.context, None, inputs, check))
            reached("recorded")

    def _confirm(self, plan: Plan) -> None:
        confirm = self.options.confirm
        # Unknown sizes: the builds for GPUs are all large, the one for the CPU is not.
        size = plan.download_bytes
        small = plan.device is None if size is None else size <= CONFIRM_ABOVE
        if confirm is None or small or confirm(plan):
            return
        raise ImprintError("nothing was changed: the download was declined", code="declined")

    def _prune(self, before: Target | None, after: Target | None) -> Pruned:
        home = self.context.home
        changed = after is not None and (before is None or before.generation != after.generation)
        if not changed and not self.discarded:
            return prune.sweep(home, read_pointer(home))
        self.on_event(Event("start", "prune", "removing what is not needed any more"))
        uv = find_uv(home, self.context.environ, self.sources)
        return prune.prune(home, uv, keep_previous=_is_worth_keeping(before, after), unused=self.discarded)

    def _provide_model(self) -> None:
        """Install the configured model when it is not there, or not whole."""
        home = self.context.home

        def installer(lock: Path, folder: Path) -> None:
            uv = find_uv(home, self.context.environ, self.sources)
            # What is downloaded, and the model that is made of it beside.
            needed = 2 * models.load_catalogue().model(name).download.size
            uv.install([lock], python=own_interpreter(), folder=folder, needed=needed)

        name = config.load(home, self.context.environ, self.context.flags).text("model.name")
        self.seams.install_model(home, name, installer=installer, on_event=self.on_event, deep=self.options.repair)
        reached("model-installed")


def _sources(options: SetupOptions) -> Sources:
    folder = options.find_links
    if folder is not None and not folder.is_dir():
        raise UsageError(f"`--find-links {folder}` is no folder")
    url = options.index_url
    if url is not None and not url.startswith(("https://", "http://", "file://")):
        raise UsageError("`--index-url` needs a URL that begins with https://, http:// or file://")
    return Sources(options.offline, folder.absolute() if folder is not None else None, url)


def _refusal(plan: Plan, options: SetupOptions) -> Remark | None:
    if plan.build is None or (options.require_gpu and plan.device is None):
        return Remark(plan.code, plan.reason, plan.hint)
    return None


def _not_honoured(context: Context, plan: Plan, refused: Remark | None) -> tuple[Remark, ...]:
    """Return the warning that an explicit GPU was asked for and the CPU is planned; refusals say so themselves."""
    if refused is not None or plan.device is not None or request_of(context).device != "gpu":
        return ()
    return (Remark(plan.code, f"a GPU was asked for, the CPU is planned: {plan.reason}", plan.hint),)


def _cpu_failed(check: CheckResult) -> ImprintError:
    found = failure_of(check)
    hint = "nothing was changed; run `imprint setup --repair`, and `imprint doctor --report` if that does not help"
    return ImprintError(f"the new runtime was not used: {found.message}", hint=hint, code=found.code)


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


def _changes(before: Target | None, after: Target | None) -> list[dict[str, Any]]:
    return changes_between(_distributions(before), _distributions(after))


def _distributions(target: Target | None) -> Mapping[str, str]:
    return target.manifest.distributions if target is not None and target.manifest is not None else {}


def changes_between(before: Mapping[str, str], after: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return what differs between two sets of distributions, by name."""
    return [
        {"name": name, "from": before.get(name), "to": after.get(name)}
        for name in sorted({*before, *after})
        if before.get(name) != after.get(name)
    ]


def _dry_run(context: Context, options: SetupOptions, seams: Seams) -> Result:
    findings: list[Damage] = []
    target = current_target(context.home, findings)
    inputs = gather(context, target, findings=findings, machine=seams.machine, ignore_failed=options.retry_gpu)
    refused = _refusal(inputs.plan, options)
    damage = generations.damage_of(target) if target is not None else ()
    changes: list[dict[str, Any]] = []
    if refused is None:
        recipe = recipe_for(inputs.plan, seams.lock_path)
        if target is None or generations.faults_of(target, recipe) or options.repair:
            changes = changes_between(_distributions(target), pins_of(recipe.locks))
    return Result(
        {
            "plan": plan_to_json(inputs.plan),
            "check": None,
            "status": status_data(inputs.plan, target, proved=inputs.proved, damage=damage),
            "changes": changes,
            "freed_bytes": 0,
            "deferred": [],
        },
        warnings=(*remarks_of(findings), *_not_honoured(context, inputs.plan, refused)),
        errors=(refused,) if refused is not None else (),
    )
