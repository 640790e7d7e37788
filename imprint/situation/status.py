"""The status of a target, as every command that ends with it shows it: the line, and the facts behind it."""

from __future__ import annotations

from imprint.planning.model import Device
from imprint.runtime.verdict import TargetVerdict
from imprint.values import ABSENT, Absent, Record
from imprint.words import RunsOn


class StatusProblem(Record):
    """What is wrong: `fix` is the command that helps, `hint` what helps as a sentence."""

    code: str
    text: str
    fix: str | None
    hint: str | None


class StatusProof(Record):
    """The check behind the answer, and what is different since then."""

    outcome: str
    kind: str | None
    detail: str | None
    provider: str | None
    time: str | None
    changed: tuple[str, ...]


class Status(Record):
    """What `imprint status` shows; docs/json.md says what each field means."""

    line: str
    build: str | None
    version: str | None
    device: Device | None
    runs_on: RunsOn
    embeds: bool
    code: str | None
    reason: str | None
    since: str | None
    pending: bool
    missed_gpu: bool
    check_deferred: bool
    problem: StatusProblem | None
    proof: StatusProof | None
    hint: str | Absent | None = ABSENT


def status_of(verdict: TargetVerdict, hint: str | Absent | None = ABSENT) -> Status:
    """Return a verdict as it is shown; `hint` is what to type for a GPU, where a command says that."""
    seen, problem, plan, told = verdict.seen, verdict.problem, verdict.seen.plan, verdict.seen.proof
    return Status(
        line=verdict.line,
        build=seen.build,
        version=seen.version,
        device=verdict.device,
        runs_on=verdict.runs_on,
        embeds=verdict.embeds,
        code=problem.code if problem is not None else plan.code if plan is not None else None,
        reason=plan.reason if plan is not None else None,
        since=seen.since,
        pending=verdict.pending,
        missed_gpu=verdict.missed,
        check_deferred=seen.elsewhere,
        problem=None if problem is None else StatusProblem(problem.code, problem.text, problem.fix, problem.hint),
        proof=None
        if told is None
        else StatusProof(told.outcome, told.kind, told.detail, told.provider, told.time, seen.changed),
        hint=hint,
    )
