"""What doctor can say: what a check observed, the finding made of it, its four outcomes, and how many of each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from imprint.causes.catalogue import Advice
from imprint.values import Record

OK = "ok"
WARNING = "warning"
ERROR = "error"
SKIPPED = "skipped"
STATUSES = (OK, WARNING, ERROR, SKIPPED)


class Observation(Record):
    """What a check observed: `code` names the state, `status` says whether it matters here, `seen` is the fact.

    A state that is somebody's choice is ok. `traits` and `words` are what the check knows for its remedies beyond the
    facts (a word that is None is not known); `told` is the remedy that an error brought along; `runs_on` is what
    embeddings run on then, where that is certain.
    """

    code: str
    status: str
    seen: str
    traits: tuple[str, ...] = ()
    words: Mapping[str, str | None] = {}
    told: str | None = None
    runs_on: str | None = None


def ok(seen: str) -> Observation:
    """Return that nothing is wrong."""
    return Observation("ok", OK, seen)


def skipped(why: str) -> Observation:
    """Return that a check cannot judge, with the reason."""
    return Observation("skipped", SKIPPED, why)


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found, with what follows from it.

    `means` is what the state amounts to, `runs_on` (cpu, gpu, none) what embeddings run on now, None where nobody can
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
