"""The checks, a module for each subject, and their run.

A module's checks are told in the order in which they stand there, and the modules in the order below: a new check is a
function in one of them. Each is a judgement over gathered facts that reads nothing itself; one that lacks a fact is
skipped with the reason, and one that crashes is reported as that and stops no other.
"""

from __future__ import annotations

from collections.abc import Sequence

from imprint.diagnosis.checking import Check, finding
from imprint.diagnosis.checks import cuda, device, home, machine, privacy, runtime, storage, target
from imprint.diagnosis.facts import Facts
from imprint.diagnosis.findings import ERROR, Finding, Observation
from imprint.diagnosis.standing import verdict_of

_SUBJECTS = (home, target, runtime, cuda, privacy, machine, device, storage)

CHECKS: tuple[Check, ...] = tuple(
    dict.fromkeys(known for subject in _SUBJECTS for known in vars(subject).values() if isinstance(known, Check))
)
"""Every check, in order: what is quick first."""


def run(checks: Sequence[Check], facts: Facts) -> list[Finding]:
    """Return the findings of the checks, in order, whatever happens inside one of them."""
    findings: list[Finding] = []
    for check in checks:
        try:
            findings += check(facts)
        except Exception as error:
            crash = Observation("check-crashed", ERROR, f"{type(error).__name__}: {error}")
            findings.append(finding(facts, check.id, crash))
    return [_unexplained(facts, found) for found in findings] if _nobody_says_why(facts, findings) else findings


def _nobody_says_why(facts: Facts, findings: Sequence[Finding]) -> bool:
    """Whether embeddings do not run, and no check has found out why."""
    verdict = verdict_of(facts)
    return verdict is not None and not verdict.embeds and all(found.status != ERROR for found in findings)


def _unexplained(facts: Facts, found: Finding) -> Finding:
    """Return the finding that sums up with the reason that the verdict gives; any other as it is."""
    verdict, plan = verdict_of(facts), facts.planned.plan
    problem = verdict.problem if verdict is not None else None
    if found.id != device.embedding_device.id or problem is None:
        return found
    seen = f"embeddings do not run: {problem.text}{f': {plan.reason}' if plan is not None else ''}"
    return finding(facts, found.id, Observation("embedding-failed", ERROR, seen, told=problem.hint))
