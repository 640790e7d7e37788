"""What embeddings run on against what was asked, with the plan's reason word for word, and the last check. Pure."""

from __future__ import annotations

from imprint.diagnosis.checking import PLAN, check
from imprint.diagnosis.checks.cuda import libraries, session
from imprint.diagnosis.checks.machine import driver, nodes
from imprint.diagnosis.facts import Facts, TargetFacts
from imprint.diagnosis.findings import ERROR, OK, WARNING, Observation, ok, skipped
from imprint.diagnosis.standing import gpu_asked_of_runtime, gpu_wanted, verdict_of, what_embeddings_run_on
from imprint.planning.model import Plan
from imprint.runtime.check.outside import outside_cause

GPU_ABSENT = frozenset(
    {"device-cpu", "no-nvidia-gpu", "vendor-not-nvidia", "os-no-gpu-build", "arch-no-gpu-build"},
)
"""Plan codes that say there is no GPU to use here: with `auto` the CPU is then what was asked for."""


@check("runtime:proof", "the last check, and whether it still applies")
def proof(facts: Facts) -> Observation:
    """Judge the last recorded check and whether it still counts."""
    found, plan = facts.planned.proof, facts.planned.plan
    if facts.target.provisioned is False:
        return skipped("no runtime is set up")
    planned = plan is not None and plan.device is not None and plan.build == facts.runtime.build
    if found is None:
        unproved = planned and facts.target.venv is None
        seen = "no check of the installed GPU build is recorded here"
        return Observation("not-proved", WARNING, seen) if unproved else ok("no check is recorded, and none is needed")
    when = f"on {found.time}" if found.time else "at an unknown time"
    if found.changed:
        changed = ", ".join(name.replace("_", " ") for name in found.changed)
        seen = f"the last check was made {when}; since then changed: {changed}"
        return Observation("check-stale", WARNING if planned else OK, seen)
    if found.result == "ok":
        return ok(f"the check {when} passed")
    seen = f"the check {when} failed{f' ({found.kind})' if found.kind else ''}"
    if found.on_gpu:
        return Observation("check-failed", WARNING if gpu_wanted(facts) else OK, seen)
    return _failed_on_the_cpu(facts, seen)


def _failed_on_the_cpu(facts: Facts, seen: str) -> Observation:
    if _computes_now(facts):
        return ok(f"{seen}, but it passes now")
    loaded = facts.runtime.loaded
    said = "" if loaded is None else "\n".join([loaded.error or loaded.cpu_error or loaded.ended or "", loaded.talk])
    if outside_cause(said, facts.settings.environ) is not None:
        return skipped(f"{seen}, for what runtime:loads names; nothing has to be installed again")
    return Observation("check-failed", ERROR, seen, traits=("checked-cpu",))


def _computes_now(facts: Facts) -> bool:
    """Whether the check passes on the CPU, by what every command goes by."""
    verdict = verdict_of(facts)
    return (
        verdict is not None and verdict.runs_on != "none" and verdict.seen.proof is not None and verdict.seen.proof.ok
    )


@check("runtime:embedding-device", "what embeddings run on, and why", PLAN)
def embedding_device(facts: Facts, plan: Plan) -> Observation:
    """Judge what embeddings run on against what was asked."""
    verdict, target = verdict_of(facts), facts.target
    if verdict is None:
        return skipped("what embeddings run on is not known; see the other findings")
    if plan.build is None:
        seen = f"embeddings run on the CPU with what is installed; Imprint has no build for it: {plan.reason}"
        runs = target.venv is not None and verdict.runs_on != "none"
        return Observation("ok-cpu", OK, seen) if runs else Observation("no-build", ERROR, plan.reason)
    if _pending(facts, plan):
        return _change(target, plan)
    if not verdict.embeds:
        return skipped(f"embeddings do not run; see the other findings ({plan.build} is planned: {plan.reason})")
    on_gpu = verdict.runs_on == "gpu"
    return Observation("ok-gpu", OK, f"the GPU is used: {plan.reason}") if on_gpu else _on_cpu(facts, plan)


def _change(target: TargetFacts, plan: Plan) -> Observation:
    if target.venv is not None and target.installed.write_error is not None:
        return skipped(f"{plan.build} should be installed, see target:writable: {plan.reason}")
    have = f"{plan.installed.build} {plan.installed.version or ''}".rstrip() if plan.installed else "nothing"
    wanted = f"{plan.build} {plan.version or ''}".rstrip()
    return Observation("change-pending", WARNING, f"{have} is installed, but {wanted} should be: {plan.reason}")


def _pending(facts: Facts, plan: Plan) -> bool:
    if not plan.pending or not facts.target.provisioned:
        return False
    # An environment that is not ours may hold what its owner likes, unless somebody asks for a GPU that it cannot use.
    return facts.target.ours or (plan.device is not None and what_embeddings_run_on(facts) != "gpu")


def _on_cpu(facts: Facts, plan: Plan) -> Observation:
    asked = facts.settings.device_asked
    if (facts.runtime.embedded is not None or facts.planned.missed_gpu) and gpu_asked_of_runtime(facts):
        seen = f"the worker asked for the GPU, but runs on the CPU: {plan.reason}"
        return Observation("embedding-on-cpu", ERROR, seen)
    if plan.device is None and (asked == "cpu" or (asked == "auto" and plan.code in GPU_ABSENT)):
        return Observation("ok-cpu", OK, f"the CPU is used: {plan.reason}")
    # A cause on the way to the GPU that can be removed says more than this check.
    causes = (found for cause in (driver, nodes, libraries, session, proof) for found in cause(facts))
    bad = next((found for found in causes if found.status in {WARNING, ERROR} and found.remedies), None)
    if bad is not None:
        return skipped(f"the CPU is used; see {bad.id}: {plan.reason}")
    if plan.device is not None:
        code = "gpu-unavailable" if facts.target.venv is not None or facts.planned.proved else "not-proved"
        return Observation(code, WARNING, f"a GPU is planned, but not in use: {plan.reason}")
    return Observation("gpu-unavailable", WARNING, plan.reason)
