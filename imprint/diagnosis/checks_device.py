"""The check that sums up: what embeddings run on against what was asked, with the plan's reason word for word. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from imprint.diagnosis.checks_driver import driver, nodes
from imprint.diagnosis.checks_gpu import libraries, proof, session
from imprint.diagnosis.facts import Facts
from imprint.diagnosis.findings import ERROR, OK, WARNING, Finding
from imprint.diagnosis.judging import (
    finding,
    missing,
    skipped,
    what_embeddings_run_on,
)
from imprint.diagnosis.standing import gpu_asked_of_runtime, verdict_of
from imprint.planning.model import Plan
from imprint.sizes import in_units

GPU_ABSENT = frozenset(
    {"device-cpu", "no-nvidia-gpu", "vendor-not-nvidia", "os-no-gpu-build", "arch-no-gpu-build"},
)
"""Plan codes that say there is no GPU to use here: with `auto` the CPU is then what was asked for."""

_CHECK = "runtime:embedding-device"


def embedding_device(facts: Facts) -> list[Finding]:  # noqa: PLR0911 - one for each answer, the gravest first
    """Judge what embeddings run on against what was asked."""
    plan = facts.plan
    if plan is None:
        return missing(facts, _CHECK, "plan")
    verdict = verdict_of(facts)
    if verdict is None:
        return skipped(facts, _CHECK, "what embeddings run on is not known; see the other findings")
    runs_on = verdict.runs_on
    if plan.build is None:
        if facts.venv is not None and runs_on != "none":
            seen = f"embeddings run on the CPU with what is installed; Imprint has no build for it: {plan.reason}"
            return [finding(facts, _CHECK, "ok-cpu", OK, seen)]
        return [finding(facts, _CHECK, "no-build", ERROR, plan.reason)]
    if _pending(facts, plan):
        if facts.venv is not None and facts.runtimes is not None and facts.runtimes.write_error is not None:
            return skipped(facts, _CHECK, f"{plan.build} should be installed, see target:writable: {plan.reason}")
        have = f"{plan.installed.build} {plan.installed.version or ''}".rstrip() if plan.installed else "nothing"
        wanted = f"{plan.build} {plan.version or ''}".rstrip()
        seen = f"{have} is installed, but {wanted} should be: {plan.reason}"
        return [finding(facts, _CHECK, "change-pending", WARNING, seen)]
    if not verdict.embeds:
        return skipped(
            facts,
            _CHECK,
            f"embeddings do not run; see the other findings ({plan.build} is planned: {plan.reason})",
        )
    if runs_on == "gpu":
        return [finding(facts, _CHECK, "ok-gpu", OK, f"the GPU is used: {plan.reason}")]
    return [_on_cpu(facts, plan)]


def waiting(facts: Facts) -> list[Finding]:
    """Judge whether a GPU waits for somebody to ask for it."""
    check = "gpu:waiting"
    plan = facts.waiting
    if plan is None or plan.device is None:
        return [finding(facts, check, "ok", OK, "no GPU is left unused by the default")]
    name = plan.device.name or "a GPU"
    seen = f"{name} could be used ({plan.build} {plan.version}), but model.device is cpu, the default"
    cost = f" (a download of {in_units(plan.download_bytes)})" if plan.download_bytes else ""
    return [finding(facts, check, "gpu-waits", OK, seen, words={"cost": cost})]


def _pending(facts: Facts, plan: Plan) -> bool:
    if not plan.pending or not facts.provisioned:
        return False
    # An environment that is not ours may hold what its owner likes, unless somebody asks for a GPU that it cannot use.
    return facts.ours or (plan.device is not None and what_embeddings_run_on(facts) != "gpu")


def _causes(facts: Facts) -> Iterator[Finding]:
    """Yield what the checks on the way to the GPU find: a cause that can be removed says more than this check."""
    for check in (driver, nodes, libraries, session, proof):
        yield from check(facts)


def _on_cpu(facts: Facts, plan: Plan) -> Finding:
    if (facts.embedded is not None or facts.missed_gpu) and gpu_asked_of_runtime(facts):
        seen = f"the worker asked for the GPU, but runs on the CPU: {plan.reason}"
        return finding(facts, _CHECK, "embedding-on-cpu", ERROR, seen)
    if plan.device is None and (
        facts.device_asked == "cpu" or (facts.device_asked == "auto" and plan.code in GPU_ABSENT)
    ):
        return finding(facts, _CHECK, "ok-cpu", OK, f"the CPU is used: {plan.reason}")
    bad = [found for found in _causes(facts) if found.status in {WARNING, ERROR} and found.remedies]
    if bad:
        return skipped(facts, _CHECK, f"the CPU is used; see {bad[0].id}: {plan.reason}")[0]
    if plan.device is not None:
        seen = f"a GPU is planned, but not in use: {plan.reason}"
        code = "gpu-unavailable" if facts.venv is not None or facts.proved else "not-proved"
        return finding(facts, _CHECK, code, WARNING, seen)
    return finding(facts, _CHECK, "gpu-unavailable", WARNING, plan.reason)
