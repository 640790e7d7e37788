"""What a check is, how one registers itself, and how what it observed becomes a finding. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, overload

from imprint.causes.catalogue import PERSON, Advice, as_one, catalogue, remedies_for
from imprint.diagnosis.circumstances import circumstances_of
from imprint.diagnosis.facts import Facts
from imprint.diagnosis.findings import Finding, Observation, skipped
from imprint.diagnosis.standing import what_embeddings_run_on

T = TypeVar("T")
Observed = Observation | Sequence[Observation]


@dataclass(frozen=True, slots=True)
class Need(Generic[T]):
    """A fact without which a check is skipped, with the error that `failures` has under its name."""

    name: str
    of: Callable[[Facts], T | None]


MACHINE = Need("machine", lambda facts: facts.system.machine)
NODES = Need("nodes", lambda facts: facts.system.nodes)
RUNTIMES = Need("runtimes", lambda facts: facts.target.runtimes)
LOADED = Need("loaded", lambda facts: facts.runtime.loaded)
PLAN = Need("plan", lambda facts: facts.planned.plan)
DISK = Need("disk", lambda facts: facts.home.disk)
UNUSED = Need("unused", lambda facts: facts.home.unused)
COPIES = Need("copies", lambda facts: facts.home.copies)


@dataclass(frozen=True, slots=True)
class Check:
    """One check: its stable id, what it looks at, its judgement, and the fact that this needs besides all others.

    `slow` names the fact that only this check needs and that takes seconds; it is gathered when the check is chosen.
    """

    id: str
    about: str
    judge: Callable[..., Observed]
    need: Need[Any] | None = None
    slow: str | None = None

    def __call__(self, facts: Facts) -> list[Finding]:
        """Return what the check finds."""
        if self.need is None:
            observed = self.judge(facts)
        elif (needed := self.need.of(facts)) is None:
            observed = missing(facts, self.need.name)
        else:
            observed = self.judge(facts, needed)
        return [finding(facts, self.id, one) for one in ([observed] if isinstance(observed, Observation) else observed)]


@overload
def check(id_: str, about: str, *, slow: str | None = None) -> Callable[[Callable[[Facts], Observed]], Check]: ...
@overload
def check(
    id_: str, about: str, need: Need[T], *, slow: str | None = None
) -> Callable[[Callable[[Facts, T], Observed]], Check]: ...
def check(id_: str, about: str, need: Need[Any] | None = None, *, slow: str | None = None) -> Callable[[Any], Check]:
    """Make a check of the function below, which is given the facts and, where it has a need, what it needs of them."""
    return lambda judge: Check(id_, about, judge, need, slow)


def missing(facts: Facts, name: str) -> Observation:
    """Skip a check whose fact could not be gathered; the reason is the error that stopped it."""
    error = facts.failures.get(name)
    if error is not None:
        return skipped(f"could not be checked: {error.message}")
    if facts.target.provisioned is False:
        return skipped("no runtime is set up")
    return skipped("was not checked" if facts.target.starts else "the target's interpreter does not start")


def finding(facts: Facts, check_id: str, observed: Observation) -> Finding:
    """Return a finding: meaning and remedies come from the catalogue, as they fit what is looked at."""
    cause = catalogue().causes[observed.code]
    known = {name: word for name, word in observed.words.items() if word is not None}
    remedies = remedies_for(observed.code, circumstances_of(facts).with_(*observed.traits, **known))
    refusal = facts.planned.refusal
    if observed.told is not None:
        remedies = (Advice(cause.remedies[0].kind if cause.remedies else PERSON, observed.told),)
    elif cause.remedies and not remedies and refusal is not None:
        # What would help is refused there.
        remedies = (Advice(PERSON, "; ".join(filter(None, (refusal.message, refusal.hint)))),)
    where = observed.runs_on or what_embeddings_run_on(facts)
    status, seen = observed.status, observed.seen
    return Finding(check_id, observed.code, status, seen, cause.means, where, as_one(remedies), remedies)
