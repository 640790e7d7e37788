"""What doctor can say: what a check observed, the finding made of it, its four outcomes, and how many of each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from imprint.causes.catalogue import Advice
from imprint.values import Record, fields_of
from imprint.words import FindingStatus, RunsOn

OK: Final = "ok"
WARNING: Final = "warning"
ERROR: Final = "error"
SKIPPED: Final = "skipped"


class Observation(Record):
    """What a check observed: `code` names the state, `status` says whether it matters here, `seen` is the fact.

    A state that is somebody's choice is ok. `traits` and `words` are what the check knows for its remedies beyond the
    facts (a word that is None is not known); `told` is the remedy that an error brought along; `runs_on` is what
    embeddings run on then, where that is certain.
    """

    code: str
    status: FindingStatus
    seen: str
    traits: tuple[str, ...] = ()
    words: Mapping[str, str | None] = {}
    told: str | None = None
    runs_on: RunsOn | None = None


def ok(seen: str) -> Observation:
    """Return that nothing is wrong."""
    return Observation("ok", OK, seen)


def skipped(why: str) -> Observation:
    """Return that a check cannot judge, with the reason."""
    return Observation("skipped", SKIPPED, why)


class Finding(Record):
    """What one check found, with what follows from it.

    `means` is what the state amounts to, `runs_on` what embeddings run on now, None where nobody can
    know, `fix` what helps, in one sentence, None where there is nothing to do; `remedies` has its parts with their
    kinds.
    """

    id: str
    code: str
    status: FindingStatus
    seen: str
    means: str
    runs_on: RunsOn | None
    fix: str | None = None
    remedies: tuple[Advice, ...] = ()


class Counts(Record):
    """How many findings have each status."""

    ok: int
    warning: int
    error: int
    skipped: int


def counts(findings: Iterable[Finding]) -> Counts:
    """Count the findings."""
    statuses: list[str] = [finding.status for finding in findings]
    return Counts(*map(statuses.count, fields_of(Counts)))
