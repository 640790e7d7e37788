"""Reads `data/causes.toml`: every cause that Imprint can name, what it means, and the remedies that fit."""

from __future__ import annotations

import functools
import string
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from imprint import resources
from imprint.causes.circumstances import GENERAL, SYSTEMS, Circumstances
from imprint.causes.places import place_of
from imprint.values import Record
from imprint.words import RemedyKind

COMMAND: Final = "command"
FILE: Final = "file"
PERSON: Final = "person"
KINDS = (COMMAND, FILE, PERSON)
"""A command of ours; a change to files in the home or the environment; something that a person does."""


class Remedy(Record):
    """One thing that helps: its kind, the traits that must hold, and what to do, with `{words}` to be filled in."""

    kind: RemedyKind
    when: tuple[str, ...]
    do: str

    @property
    def wanted(self) -> frozenset[str]:
        """The words without which it cannot be written."""
        return frozenset(name for _, name, _, _ in string.Formatter().parse(self.do) if name)

    def fits(self, circumstances: Circumstances) -> bool:
        """Whether it can work there."""
        return self.wanted <= circumstances.words.keys() and all(circumstances.holds(trait) for trait in self.when)


class Advice(Record):
    """A remedy as it is told where somebody is: its kind, and what to do."""

    kind: RemedyKind
    do: str


class Cause(Record):
    """One cause: what a person notices, what a plan saw, what it means, and its remedies in order.

    `like` is the code whose remedies these are, where they are another's.
    """

    code: str
    means: str
    remedies: tuple[Remedy, ...]
    section: str | None = None
    group: str | None = None
    notice: str | None = None
    seen: str | None = None
    like: str | None = None


class Symptom(Record):
    """Something to be noticed, the codes it may come from (the likeliest first), and a first thing to do."""

    notice: str
    codes: tuple[str, ...]
    advice: str


class Catalogue(Record):
    """All causes by code, in the order of the pages, whose headings are `sections` and `groups`.

    `system_packages` says, by library, which package of which system holds it; `headers`, by module of the standard
    library, what a Python was built without.
    """

    causes: Mapping[str, Cause]
    sections: Mapping[str, str]
    groups: Mapping[str, str]
    system_packages: Mapping[str, Mapping[str, str]]
    headers: Mapping[str, str]
    symptoms: tuple[Symptom, ...]


@functools.cache
def catalogue() -> Catalogue:
    """Return the catalogue that ships with this Imprint."""
    return parse_catalogue(tomllib.loads(resources.data_path("causes.toml").read_text("utf-8")))


def parse_catalogue(document: Mapping[str, Any]) -> Catalogue:
    """Return the catalogue of a document; raises KeyError or TypeError for one that is not well-formed."""
    entries = document["causes"]
    causes = {code: _cause(code, entry, entries) for code, entry in entries.items()}
    symptoms = tuple(
        Symptom(one["notice"], tuple(one["codes"].split()), one["advice"]) for one in document.get("symptoms", ())
    )
    packages, headers = document.get("system_packages", {}), document.get("headers", {})
    return Catalogue(causes, document["sections"], document["groups"], packages, headers, symptoms)


def _cause(code: str, entry: Mapping[str, Any], entries: Mapping[str, Any]) -> Cause:
    told = {key: value for key, value in entry.items() if key != "remedies"}
    remedies = entries[entry["like"]]["remedies"] if "like" in entry else entry.get("remedies", ())
    return Cause(
        code=code,
        remedies=tuple(Remedy(one["kind"], tuple(one.get("when", "").split()), one["do"]) for one in remedies),
        **told,
    )


def remedies_for(code: str, circumstances: Circumstances) -> tuple[Advice, ...]:
    """Return the remedies of a cause that can work in some circumstances, in order, with their words filled in."""
    return tuple(
        Advice(remedy.kind, remedy.do.format(**circumstances.words))
        for remedy in catalogue().causes[code].remedies
        if remedy.fits(circumstances)
    )


def general_remedies(cause: Cause, here: Circumstances | None = None) -> tuple[Advice, ...]:
    """Return the remedies of a cause as they are told where nothing was looked at, each with where it belongs.

    With `here` those for other systems are left out, and what is known of this one is filled in.
    """
    known = {} if here is None else {name: here.words[name] for name in ("sudo", "user") if name in here.words}
    words = {**GENERAL, **known}
    here_at_all = [one for one in cause.remedies if here is None or all(here.holds(trait) for trait in _system(one))]
    told = []
    for one in here_at_all:
        # A remedy for want of a word stands for the one with that word, and here there is a word for everything.
        if any(
            f"not-{word.replace('_', '-')}" in one.when for other in here_at_all for word in other.wanted - {"hint"}
        ):
            continue
        shown = [trait for trait in one.when if here is None or trait not in _system(one)]
        told.append(Advice(one.kind, place_of(shown) + one.do.format(**words)))
    return tuple(told)


def _system(remedy: Remedy) -> list[str]:
    return [trait for trait in remedy.when if trait.removeprefix("not-") in SYSTEMS]


def as_one(remedies: Sequence[Advice]) -> str | None:
    """Return remedies as one sentence fragment, the first of them first; None without any."""
    return ", or ".join(dict.fromkeys(remedy.do for remedy in remedies)) or None
