"""`status`: the one authoritative line about what embeddings run on, and the facts behind it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from imprint.operations.context import Context
from imprint.operations.planning_inputs import gather
from imprint.operations.result import Remark, Result
from imprint.planning.model import Plan
from imprint.runtime.generations import damage_of
from imprint.runtime.target import Target, current_target
from imprint.state.files import Damage


def status(context: Context) -> Result:
    """Return the authoritative line and its facts. Nothing is started; no hardware is read when the CPU is asked for.

    Raises StateError and StateNewerError for state that cannot be used.
    """
    findings: list[Damage] = []
    target = current_target(context.home, findings)
    inputs = gather(context, target, findings=findings)
    damage = damage_of(target) if target is not None else ()
    data = status_data(inputs.plan, target, proved=inputs.proved, damage=damage)
    return Result(data, warnings=tuple(remarks_of(findings)))


def remarks_of(findings: list[Damage]) -> list[Remark]:
    """Return the remarks that state files set aside amount to."""
    return [Remark(found.code, found.message, found.hint) for found in findings]


def status_data(
    plan: Plan, target: Target | None, *, proved: bool = True, damage: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Return the `data` of `imprint status --json`.

    `plan` is what should be, `target` what is. `proved` says whether a check of the planned GPU build passed on the
    planned GPU in these surroundings; a GPU that was not proved does not count as what embeddings run on.
    """
    pending = plan.pending or target is None or bool(damage) or target.build != plan.build
    facts: dict[str, Any] = {
        "build": target.build if target is not None else None,
        "version": target.version if target is not None else None,
        "device": None,
        "runs_on": "none",
        "code": plan.code,
        "reason": plan.reason,
        "since": target.since if target is not None else None,
        "pending": pending,
    }
    if target is None:
        would = f"; `imprint setup` would install {plan.build} {plan.version}" if plan.build is not None else ""
        return {"line": f"embeddings do not run, nothing is installed{would}: {plan.reason}", **facts}
    if damage:
        line = f"embeddings do not run, the runtime is damaged ({damage[0]}); run `imprint setup`"
        return {"line": line, **facts, "code": "target-damaged"}
    gpu = plan.device if plan.build == target.build and proved else None
    facts["runs_on"] = "cpu" if gpu is None else "gpu"
    facts["device"] = None if gpu is None else asdict(gpu)
    if gpu is None:
        return {"line": _on_cpu(plan, target, pending=pending), **facts}
    runtime = f"ONNX Runtime {target.version}, {target.build}"
    return {"line": f"embeddings run on {gpu.name or 'the GPU'} ({runtime}): {plan.reason}", **facts}


def _on_cpu(plan: Plan, target: Target, *, pending: bool) -> str:
    now = f"embeddings run on the CPU (ONNX Runtime {target.version})"
    if plan.build is None:
        return f"{now}; no build is planned: {plan.reason}"
    if pending and plan.build != target.build:
        return f"{now}; `imprint setup` would install {plan.build} {plan.version}: {plan.reason}"
    if plan.device is not None:
        return f"{now}; the GPU build is not proved here, run `imprint setup`: {plan.reason}"
    return f"{now}: {plan.reason}"
