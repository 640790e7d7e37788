"""`setup --venv`: brings somebody's own environment to what is planned for its Python, in place, and proves it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from imprint.causes.catalogue import as_one, catalogue, general_remedies
from imprint.errors import ImprintError
from imprint.hints import helps
from imprint.operations.check import failure_of, name_of, record
from imprint.operations.context import Context
from imprint.operations.downloads import Download, download_into
from imprint.operations.planning_inputs import Inputs, gather
from imprint.operations.provisioning import deferred_to_json, remarks_of_pruned, tell_pruned
from imprint.operations.result import Remark, Result
from imprint.operations.retrying import keep_for_retry, release_unless_wanted, retry_hint
from imprint.operations.setup_options import (
    Seams,
    SetupOptions,
    Story,
    command_again,
    confirm_download,
    not_honoured,
    provide_model,
    refusal_of,
)
from imprint.operations.status import remarks_of
from imprint.operations.targets import environment_target, target_of
from imprint.operations.verdict import default_hint, holds, judge, judge_just_proved
from imprint.planning.model import Installed, Plan
from imprint.planning.wire import plan_to_json
from imprint.probing.host import RealHost
from imprint.runtime import deferred, inplace, prune, vendors
from imprint.runtime.check import CheckResult
from imprint.runtime.claims import Skipped
from imprint.runtime.events import Event, OnEvent
from imprint.runtime.inplace import InplaceOutcome, InplacePlan
from imprint.runtime.prune import Pruned
from imprint.runtime.recipe import BASE_LOCK, pins_of
from imprint.runtime.target import Target, read_pointer
from imprint.runtime.uv import Sources, find_uv
from imprint.state.findings import Findings


def dry_run_inplace(context: Context, options: SetupOptions, seams: Seams) -> Result:
    """Return what `setup --venv` would do: every change, its bytes, and who requires ONNX Runtime there."""
    findings = Findings()
    prefix = _prefix(options)
    target = target_of(context, prefix, findings)
    inputs = gather(context, target, findings=findings, machine=seams.machine, ignore_failed=options.retry_gpu)
    refused = refusal_of(context, inputs, options)
    details: dict[str, Any] = {}
    changes: list[dict[str, Any]] = []
    expected: Download | None = None
    verdict = judge(context, target, inputs.plan, gpu_proved=inputs.proved, prove=seams.check)
    verdict = verdict.with_setup(command_again(context, options))
    if refused is None:
        prepared = _prepare(context, options, seams, inputs.plan, findings)
        expected = _download(context, seams, inputs, prepared)
        details = prepared.to_json() | {"download_bytes": expected.total}
        changes = [{key: change[key] for key in ("name", "from", "to")} for change in details["changes"]]
    return Result(
        {
            "plan": plan_to_json(inputs.plan),
            "check": None,
            "status": verdict.to_json(),
            "changes": changes,
            "freed_bytes": 0,
            "deferred": [],
            "environment": details or None,
            "download": expected.to_json() if expected is not None and expected.total != 0 else None,
        },
        warnings=(*remarks_of(findings), *_vendors(changes), *not_honoured(context, inputs.plan, refused)),
        errors=(refused,) if refused is not None else (),
    )


def setup_inplace(context: Context, options: SetupOptions, on_event: OnEvent, seams: Seams, sources: Sources) -> Result:
    """Change the environment and return the data of `imprint setup --json`. The caller holds the mutex."""
    return _InplaceRun(context, options, on_event, seams, sources).to_the_end()


@dataclass(slots=True)
class _InplaceRun:
    """One run under the mutex, and what it has to tell."""

    context: Context
    options: SetupOptions
    on_event: OnEvent
    seams: Seams
    sources: Sources
    findings: Findings = field(init=False)
    warnings: list[Remark] = field(default_factory=list)
    outcomes: list[InplaceOutcome] = field(default_factory=list)
    has_model: bool = False

    def __post_init__(self) -> None:
        self.findings = Findings(writing_in=self.context.home)

    def to_the_end(self) -> Result:
        prefix = _prefix(self.options)
        target = target_of(self.context, prefix, self.findings)
        inputs = self._gather(target, ignore_failed=self.options.retry_gpu)
        release_unless_wanted(self.context, inputs)
        refused = refusal_of(self.context, inputs, self.options)
        check: CheckResult | None = None
        pruned = Pruned()
        if refused is None:
            inputs, check, refused = self._follow(inputs)
            if refused is None:
                self._provide_model()
            pruned = self._prune()
        target = environment_target(self.context, prefix)
        plan = _as_done(inputs.plan, target)
        proved = inputs.proved or (check is not None and check.ok and check.device is not None)
        if refused is None and (check is None or check.ok):
            status = judge_just_proved(self.context, target, plan, gpu_proved=proved).to_json()
        else:
            status = judge(self.context, target, plan, gpu_proved=proved, prove=None).to_json()
        return Result(
            {
                "plan": plan_to_json(plan),
                "check": check.to_json() if check is not None else None,
                "status": status | {"hint": default_hint(self.context, plan, prefix)},
                "changes": self._changes(),
                "freed_bytes": pruned.freed,
                "deferred": deferred_to_json(pruned),
                "environment": self.outcomes[0].plan.to_json() if self.outcomes else None,
            },
            warnings=(
                *remarks_of(self.findings),
                *(self.warnings or not_honoured(self.context, plan, refused)),
                *_replaced_vendors(self._changes()),
                *_left_out(self.outcomes),
                *(remark for outcome in self.outcomes for remark in remarks_of_skipped(outcome)),
                *remarks_of_pruned(pruned),
            ),
            errors=(refused,) if refused is not None else (),
        )

    def _follow(self, inputs: Inputs) -> tuple[Inputs, CheckResult | None, Remark | None]:
        """Change and check, and again for the CPU when a GPU build does not pass; at most once for each build."""
        tried: set[str | None] = set()
        retry = self.options.retry_gpu
        failed: CheckResult | None = None
        while True:
            changed = self._apply(inputs)
            plan = inputs.plan
            target = environment_target(self.context, _prefix(self.options))
            known = holds(self.context, target) and (plan.device is None or inputs.proved)
            if known and not changed and not retry:
                return inputs, failed, None
            tried.add(plan.build)
            self.on_event(Event("start", "check", "checking that it computes correctly"))
            check = self.seams.check(target.python, plan.device, self.context.environ)
            record(self.context, target, inputs, check, self.findings)
            if check.ok and plan.device is not None:
                deferred.release(self.context.home)
            if check.ok:
                self.on_event(Event("done", "check", f"correct results on {name_of(plan.device)}"))
                # A check that failed in this run says more than the one on the CPU that followed.
                return inputs, failed or check, None
            failure = self._failure(inputs, check)
            if plan.device is None or self.options.require_gpu:
                return inputs, check, failure
            self.warnings.append(failure)
            failed, retry = check, False
            inputs = self._gather(target)
            if inputs.plan.build in tried or check.outcome == "inconclusive":
                inputs = self._gather(target, device="cpu")

    def _failure(self, inputs: Inputs, check: CheckResult) -> Remark:
        """Return the remark on a check that was not passed, and keep what another try of a GPU would download."""
        venv, build = _prefix(self.options), inputs.plan.build
        if check.device is not None and check.outcome != "inconclusive":
            keep_for_retry(self.context, inputs, pins_of([self.seams.lock_path(inputs.plan.lock or "")]))
        return failure_of(check, venv, retry=retry_hint(self.context, inputs, build, venv))

    def _apply(self, inputs: Inputs) -> bool:
        prepared = _prepare(self.context, self.options, self.seams, inputs.plan, self.findings)
        if not prepared.pending:
            return False
        Story(self.on_event).begin(inputs)
        if prepared.replacement.install:
            expected = _download(self.context, self.seams, inputs, prepared)
            confirm_download(self.options, inputs, expected)
            prepared = prepared.expecting(expected.total, expected.on_disk)
        if prepared.interrupted:
            self.on_event(Event("info", "plan", "an earlier change was interrupted; this run finishes it"))
        leaving = vendors.leaving([{"name": one.name, "to": one.after} for one in prepared.replacement.changes])
        if leaving:
            self.on_event(Event("info", "plan", f"this replaces {vendors.with_providers(leaving)}"))
        if not prepared.interrupted:
            self._provide_model()
        deferred.note(self.context.home, _names(prepared))
        uv = find_uv(self.context.home, self.context.environ, self.sources)
        outcome = inplace.apply(prepared, uv, self.on_event)
        self.outcomes.append(outcome)
        if outcome.changed:
            count = len(outcome.plan.replacement.changes)
            what = "1 change" if count == 1 else f"{count} changes"
            self.on_event(Event("done", "install", f"{what} in `{prepared.environment.prefix}`"))
        return outcome.changed

    def _provide_model(self) -> None:
        """Install the model, once in a run and before the environment is changed: what stops it then changes nothing.

        An environment that is half changed comes first.
        """
        if not self.has_model:
            provide_model(self.context, self.options, self.seams, self.sources, self.on_event)
        self.has_model = True

    def _prune(self) -> Pruned:
        home = self.context.home
        if not self.outcomes and not prune.is_due(home, read_pointer(home)):
            return Pruned()
        uv = find_uv(home, self.context.environ, self.sources)
        pruned = prune.prune(home, uv)
        tell_pruned(pruned, self.on_event)
        return pruned

    def _changes(self) -> list[dict[str, Any]]:
        """Return what is different from before the first change, and what a single one installed anew."""
        first: dict[str, str | None] = {}
        last: dict[str, str | None] = {}
        for outcome in self.outcomes:
            for change in outcome.plan.replacement.changes:
                first.setdefault(change.name, change.before)
                last[change.name] = change.after
        once = len(self.outcomes) == 1
        names = [name for name in sorted(last) if first[name] != last[name] or (once and last[name] is not None)]
        return [{"name": name, "from": first[name], "to": last[name]} for name in names]

    def _gather(self, target: Target | None, *, ignore_failed: bool = False, device: str | None = None) -> Inputs:
        flags = dict(self.context.flags) | ({"model.device": device} if device is not None else {})
        context = Context(self.context.home, self.context.environ, flags)
        return gather(context, target, findings=self.findings, machine=self.seams.machine, ignore_failed=ignore_failed)


def _prefix(options: SetupOptions) -> Path:
    if options.venv is None:
        raise ImprintError("no environment was named", code="usage")
    return options.venv.expanduser().absolute()


def _prepare(context: Context, options: SetupOptions, seams: Seams, plan: Plan, findings: Findings) -> InplacePlan:
    lock = plan.lock or ""
    return inplace.prepare(
        _prefix(options),
        plan,
        context.home,
        host=RealHost(context.environ),
        locks=(seams.lock_path(lock), seams.lock_path(BASE_LOCK)),
        repair=options.repair,
        findings=findings,
    )


def _vendors(changes: Sequence[Mapping[str, Any]]) -> tuple[Remark, ...]:
    """Say which provider goes with a vendor's build that is replaced."""
    names = vendors.leaving(changes)
    if not names:
        return ()
    hint = as_one(general_remedies(catalogue().causes["vendor-build-replaced"]))
    return (Remark("vendor-build-replaced", vendors.replaced_sentence(names), hint),)


def _replaced_vendors(changes: Sequence[Mapping[str, Any]]) -> tuple[Remark, ...]:
    """Say which provider went with a vendor's build that was replaced."""
    names = vendors.leaving(changes)
    if not names:
        return ()
    message = f"`imprint setup` replaced {vendors.with_providers(names)}"
    return (Remark("vendor-build-replaced", message, helps("vendor-build-back", names=" and ".join(names))),)


def _left_out(outcomes: Sequence[InplaceOutcome]) -> tuple[Remark, ...]:
    """Say what `pip check` will complain about from now on, to whoever has it in a test of his own."""
    needs = {(need.holder, need.requirement.name) for outcome in outcomes for need in outcome.left_out}
    return tuple(
        Remark(
            "requirement-left-out",
            f"{holder} requires {name}, which Imprint does not use and did not install; `pip check` will report it",
            helps("install-yourself", name=name),
        )
        for holder, name in sorted(needs)
    )


def remarks_of_skipped(outcome: InplaceOutcome) -> tuple[Remark, ...]:
    """Say, for each distribution that was removed, what its RECORD named that is not its own and was left alone."""
    by_name: dict[str, list[Skipped]] = {}
    for row in outcome.skipped:
        by_name.setdefault(row.name, []).append(row)
    return tuple(
        Remark(
            "rows-skipped",
            f"the RECORD of {name} lists what is not its own; that was left as it is: "
            + ", ".join(f"`{row.path[:120]}` ({row.why})" for row in rows[:3])
            + (f", and {len(rows) - 3} more" if len(rows) > 3 else ""),
            helps("look-at-rows", name=name),
        )
        for name, rows in by_name.items()
    )


def _download(context: Context, seams: Seams, inputs: Inputs, prepared: InplacePlan) -> Download:
    """Return what this change fetches at most: the build's whole lock when any of it is missing."""
    install = [pin.name for pin in prepared.replacement.install]
    return download_into(context, inputs, install, pins_of([seams.lock_path(BASE_LOCK)]))


def _names(prepared: InplacePlan) -> set[str]:
    decided = prepared.replacement
    return {*decided.uninstall, *(pin.name for pin in decided.install)}


def _as_done(plan: Plan, target: Target) -> Plan:
    if target.build is None:
        return plan
    pending = (target.build, target.version) != (plan.build, plan.version)
    return replace(plan, installed=Installed(target.build, target.version), pending=pending)
