"""Gathers what is planned for the target, what is proved, and whether setup would refuse it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

from imprint.diagnosis.facts import PlanFacts, Proof
from imprint.diagnosis.gathering.runtime import Known
from imprint.diagnosis.gathering.sources import TRY_SECONDS, Look
from imprint.errors import ImprintError
from imprint.planning.fingerprints import fingerprint_of
from imprint.planning.model import Gpu, Machine, Plan, Verdict
from imprint.planning.rule import decide
from imprint.runtime.foreign.target import environment_target
from imprint.runtime.target import Target
from imprint.runtime.verdict import Seen
from imprint.situation import inputs as planning_inputs
from imprint.situation.inputs import Inputs
from imprint.situation.verdict import look_at, what_setup_does
from imprint.state.config import Config
from imprint.state.last_run import LastRun
from imprint.values import fields_of, replace
from imprint.words import CUDA_PROVIDER

_REFUSED_FOR_GOOD = frozenset({"not-an-environment", "externally-managed", "python-unsupported", "managed-target"})
"""Why an environment is never changed, whatever is run in it first."""


def plan_facts(
    look: Look, known: Known, inputs: Inputs | None, settings: Config | None, last: LastRun | None
) -> Callable[[], PlanFacts]:
    """Judge the plan as every other command does: by what is recorded, and by the check where nothing that holds is."""
    ask, target, venv = look.sources.ask, known.target, look.venv
    here = target.generation if target is not None else None
    seen = ask("seen", (lambda: _seen(look, known, target, inputs, last)) if target and inputs else None, TRY_SECONDS)
    refusal = ask("refusal", lambda: _refusal(look, target, inputs, venv))
    proof = ask("proof", (lambda: _proof(known.build, target, inputs)) if target and inputs else None)

    def facts() -> PlanFacts:
        return PlanFacts(
            plan=inputs.plan if inputs is not None else None,
            waiting=_waiting(inputs, settings),
            seen=seen(),
            proved=inputs is not None and inputs.proved,
            proof=proof(),
            missed_gpu=last is not None and last.missed_the_gpu and last.generation == here,
            refusal=refusal(),
        )

    return facts


def inputs_for(look: Look, known: Known, machine: Machine | None) -> Inputs:
    """Return the plan for the target. Raises as planning does."""
    target = known.target
    if target is not None and not target.managed:
        target = dataclasses.replace(target, build=known.build, version=known.version)
    return planning_inputs.gather(look.context, target, findings=look.findings, machine=machine)


def _seen(look: Look, known: Known, target: Target, inputs: Inputs, last: LastRun | None) -> Seen:
    """Return the facts that the other commands' verdict is made of, gathered as they gather them."""
    if not target.managed:
        target = environment_target(look.context.home, target.prefix, known.builds)
    prove = look.prove if known.starts else None
    return look_at(look.context, target, inputs.plan, gpu_proved=inputs.proved, prove=prove, last=last, host=look.host)


def _refusal(look: Look, target: Target | None, inputs: Inputs | None, venv: Path | None) -> ImprintError | None:
    """Return why setup would refuse the target, however its interpreter is mended, or as planned."""
    from imprint.runtime.foreign.environment import look_at as look_at_environment

    try:
        if venv is not None:
            look_at_environment(venv, look.context.home, look.host)
    except ImprintError as error:
        return error if error.specific_code in _REFUSED_FOR_GOOD else None
    if inputs is None or inputs.plan.build is None or (venv is not None and target is None):
        return None
    return what_setup_does(look.context, target, inputs.plan, look.host)[1]


def _waiting(inputs: Inputs | None, settings: Config | None) -> Plan | None:
    """Return the plan for a GPU where the CPU is only the default, so that doctor can say what waits."""
    setting = settings.get("model.device") if settings is not None else None
    if inputs is None or setting is None or setting.value != "cpu" or setting.origin != "default":
        return None
    request = replace(inputs.request, device="auto")
    return decide(request, inputs.machine, inputs.builds, inputs.verdicts, inputs.installed)


def _proof(build: str | None, target: Target, inputs: Inputs) -> Proof | None:
    """Return the newest recorded check of what is installed, and what changed since."""
    recorded = [verdict for verdict in inputs.verdicts if verdict.build == build]
    failed = [verdict for verdict in inputs.verdicts if inputs.plan.code == "check-failed"]
    chosen = max(recorded or failed, key=lambda verdict: verdict.time or "", default=None)
    if chosen is not None:
        return _of_a_gpu(chosen, inputs)
    check = target.manifest.check if target.manifest is not None else None
    if check is None or check.get("provider") == CUDA_PROVIDER:
        return None
    return Proof("ok" if check.get("outcome") == "ok" else "failed", check.get("time"), check.get("kind"))


def _of_a_gpu(verdict: Verdict, inputs: Inputs) -> Proof:
    device, gpus = inputs.plan.device, inputs.machine.nvidia.gpus or ()
    gpu = next((one for one in gpus if device is None or one.uuid == device.uuid), Gpu())
    here = fingerprint_of(verdict.build, gpu, inputs.machine, inputs.builds)
    names = fields_of(type(here))
    changed = tuple(name for name in names if getattr(here, name) != getattr(verdict.fingerprint, name))
    return Proof(verdict.result, verdict.time, verdict.kind, changed, on_gpu=True)
