"""What every check shares: how a finding is made, and what embeddings run on. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from imprint.causes.catalogue import PERSON, Advice, as_one, catalogue, remedies_for
from imprint.diagnosis.circumstances import circumstances_of
from imprint.diagnosis.facts import Facts
from imprint.diagnosis.findings import SKIPPED, Finding
from imprint.diagnosis.standing import GPU_PROVIDERS, starts, verdict_of


def finding(  # noqa: PLR0913 - a finding has that many parts
    facts: Facts,
    check: str,
    code: str,
    status: str,
    seen: str,
    *,
    traits: Iterable[str] = (),
    words: Mapping[str, str | None] | None = None,
    told: str | None = None,
    runs_on: str | None = None,
) -> Finding:
    """Return a finding: meaning and remedies come from the catalogue, as they fit what is looked at.

    `traits` and `words` are what the check knows beyond the facts (a word that is None is not known); `told` is the
    remedy that an error brought along.
    """
    cause = catalogue().causes[code]
    known = {name: word for name, word in (words or {}).items() if word is not None}
    remedies = remedies_for(code, circumstances_of(facts).with_(*traits, **known))
    if told is not None:
        remedies = (Advice(cause.remedies[0].kind if cause.remedies else PERSON, told),)
    elif cause.remedies and not remedies and facts.refusal is not None:
        # What would help is refused there.
        remedies = (Advice(PERSON, "; ".join(filter(None, (facts.refusal.message, facts.refusal.hint)))),)
    where = runs_on or what_embeddings_run_on(facts)
    return Finding(check, code, status, seen, cause.means, where, as_one(remedies), remedies)


def skipped(facts: Facts, check: str, why: str) -> list[Finding]:
    """Return the finding of a check that cannot judge, with the reason."""
    return [finding(facts, check, "skipped", SKIPPED, why)]


def missing(facts: Facts, check: str, name: str) -> list[Finding]:
    """Skip a check whose fact could not be gathered; the reason is the error that stopped it."""
    error = facts.failures.get(name)
    if error is None and facts.provisioned is False:
        return skipped(facts, check, "no runtime is set up")
    if error is None and not starts(facts):
        return skipped(facts, check, "the target's interpreter does not start")
    return skipped(facts, check, f"could not be checked: {error.message}" if error else "was not checked")


def gpu_build(facts: Facts) -> bool:
    """Whether what is installed, or what loads, is a build for GPUs."""
    loaded, builds = facts.loaded, facts.runtimes.builds if facts.runtimes is not None else ()
    return (loaded is not None and bool(GPU_PROVIDERS & set(loaded.available))) or any(
        build.startswith("onnxruntime-gpu") for build in builds
    )


def gpu_wanted(facts: Facts) -> bool:
    """Whether somebody wants a GPU here: the configuration, or a GPU build in an environment nobody configured."""
    if facts.device_asked in {"gpu", "auto"}:
        return True
    chosen_cpu = facts.device_asked == "cpu" and facts.device_set
    return not chosen_cpu and facts.venv is not None and gpu_build(facts)


def what_embeddings_run_on(facts: Facts) -> str | None:
    """Return cpu, gpu or none, by the verdict that every command goes by; None where nobody can know."""
    verdict = verdict_of(facts)
    return None if verdict is None else verdict.runs_on
