"""`status`: the one authoritative line about what embeddings run on, and the facts behind it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from imprint.operations.context import Context
from imprint.operations.planning_inputs import gather
from imprint.operations.result import Remark, Result
from imprint.operations.targets import command_for, damage_in, target_of
from imprint.planning.model import Plan
from imprint.runtime.target import Target
from imprint.state import last_run
from imprint.state.findings import Findings
from imprint.state.last_run import LastRun


def status(context: Context, venv: Path | None = None) -> Result:
    """Return the authoritative line and its facts, of the managed target or of the environment `venv`.

    Of the managed target nothing is started; no hardware is read when the CPU is asked for. Raises StateError and
    StateNewerError for state that cannot be used, and ImprintError for a `venv` that is no environment.
    """
    findings = Findings()
    target = target_of(context, venv, findings)
    inputs = gather(context, target, findings=findings)
    damage = damage_in(context, target) if target is not None else ()
    last = last_run.read(context.home, findings) if venv is None else None
    data = status_data(inputs.plan, target, proved=inputs.proved, damage=damage, last=last)
    missed = [GPU_MISSED] if data["missed_gpu"] else []
    return Result(data, warnings=(*remarks_of(findings), *missed))


GPU_MISSED = Remark(
    "gpu-not-used",
    "a GPU was asked for, and the last embedding ran on the CPU all the same",
    "run `imprint check` to see why",
)
"""What `status` says beside its line while the last worker missed the GPU."""


def remarks_of(findings: Findings) -> list[Remark]:
    """Return the remarks on state files that could not be used."""
    return [Remark(found.code, found.message, found.hint) for found in findings]


def status_data(
    plan: Plan,
    target: Target | None,
    *,
    proved: bool = True,
    damage: tuple[str, ...] = (),
    last: LastRun | None = None,
) -> dict[str, Any]:
    """Return the `data` of `imprint status --json`.

    `plan` is what should be, `target` what is. `proved` says whether a check of the planned GPU build passed on the
    planned GPU in these surroundings; a GPU that was not proved does not count as what embeddings run on. Neither does
    one that the `last` worker of this target was to use and did not get.
    """
    there = target is not None and (target.managed or target.version is not None)
    pending = plan.pending or not there or bool(damage) or target is None or target.build != plan.build
    facts: dict[str, Any] = {
        "build": target.build if target is not None else None,
        "version": target.version if target is not None else None,
        "device": None,
        "runs_on": "none",
        "code": plan.code,
        "reason": plan.reason,
        "since": target.since if target is not None else None,
        "pending": pending,
        "missed_gpu": False,
        "check_deferred": target is not None and target.manifest is not None and target.manifest.check is None,
    }
    command = command_for(target)
    if damage:
        line = f"embeddings do not run, the runtime is damaged ({damage[0]}); run `{command}`"
        return {"line": line, **facts, "code": "target-damaged"}
    if target is None or not there:
        would = f"; `{command}` would install {plan.build} {plan.version}" if plan.build is not None else ""
        return {"line": f"embeddings do not run, nothing is installed{would}: {plan.reason}", **facts}
    gpu = plan.device if plan.build == target.build and proved else None
    if gpu is not None and last is not None and last.missed_the_gpu and last.generation == target.generation:
        line = f"embeddings ran on the CPU at {last.time} although {gpu.name or 'the GPU'} was asked for"
        line += f" (ONNX Runtime {target.version}, {target.build}), run `imprint check`: {plan.reason}"
        return {"line": line, **facts, "runs_on": "cpu", "missed_gpu": True}
    facts["runs_on"] = "cpu" if gpu is None else "gpu"
    facts["device"] = None if gpu is None else asdict(gpu)
    if gpu is None:
        return {"line": _on_cpu(plan, target, command, pending=pending), **facts}
    runtime = f"ONNX Runtime {target.version}, {target.build}"
    return {"line": f"embeddings run on {gpu.name or 'the GPU'} ({runtime}): {plan.reason}", **facts}


def deferred_line(plan: Plan) -> str:
    """Return the line about a target that was provisioned for another machine."""
    where = "the CPU" if plan.device is None else plan.device.name or "a GPU"
    return (
        f"provisioned for another machine: ONNX Runtime {plan.version}, {plan.build}, on {where}; "
        f"the check is deferred, run `imprint check` there: {plan.reason}"
    )


def _on_cpu(plan: Plan, target: Target, command: str, *, pending: bool) -> str:
    now = f"embeddings run on the CPU (ONNX Runtime {target.version})"
    if plan.build is None:
        return f"{now}; no build is planned: {plan.reason}"
    if target.manifest is not None and target.manifest.check is None and plan.build == target.build:
        return f"{now}; the check was deferred, run `imprint check`: {plan.reason}"
    if pending and plan.build != target.build:
        return f"{now}; `{command}` would install {plan.build} {plan.version}: {plan.reason}"
    if plan.device is not None:
        return f"{now}; the GPU build is not proved here, run `{command}`: {plan.reason}"
    return f"{now}: {plan.reason}"
