"""What doctor can say: a finding, its four outcomes, and how many there are of each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from imprint.causes.catalogue import Advice

OK = "ok"
WARNING = "warning"
ERROR = "error"
SKIPPED = "skipped"
STATUSES = (OK, WARNING, ERROR, SKIPPED)


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found.

    `code` names the state; `status` says whether it matters here: a state that is somebody's choice is ok. `seen` is
    the fact, `means` what follows from it, `runs_on` (cpu, gpu, none) what embeddings run on now, None where nobody can
    know, `fix` what helps, in one sentence, None where there is nothing to do; `remedies` has its parts with their
    kinds.
    """

    id: str
    code: str
    status: str
    seen: str
    means: str
    runs_on: str | None
    fix: str | None = None
    remedies: tuple[Advice, ...] = ()


def counts(findings: Iterable[Finding]) -> dict[str, int]:
    """Return how many findings have each status."""
    statuses = [finding.status for finding in findings]
    return {status: statuses.count(status) for status in STATUSES}
