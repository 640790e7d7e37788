"""data/causes.toml is well-formed, and the pages written from it are what they should be."""

import ast
import re
from pathlib import Path

import pytest

from architecture.tree import ROOT
from imprint import access
from imprint.causes.catalogue import KINDS, Cause, as_one, catalogue, general_remedies, remedies_for
from imprint.causes.circumstances import GENERAL, TRAITS, Circumstances, here
from imprint.errors import ImprintError
from imprint.runtime import verdict
from imprint_dev.pages import PAGES, REASON_CODES, TROUBLESHOOTING

CAUSES = catalogue().causes
TEXT = TROUBLESHOOTING.read_text("utf-8")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_is_written_from_the_catalogue(page: object) -> None:
    render = PAGES[page]  # type: ignore[index]
    assert render(catalogue()) == page.read_text("utf-8"), "run `python -m imprint_dev pages`"  # type: ignore[attr-defined]


@pytest.mark.parametrize("cause", CAUSES.values(), ids=CAUSES)
def test_an_entry_is_complete(cause: Cause) -> None:
    assert cause.section in {None, *catalogue().sections}
    assert cause.group in {None, *catalogue().groups}
    assert cause.section or cause.group
    assert (cause.notice is None) == (cause.section is None)
    assert (cause.seen is None) == (cause.group is None)
    for remedy in cause.remedies:
        assert remedy.kind in KINDS
        assert remedy.wanted <= GENERAL.keys()
        for trait in (one.removeprefix("not-") for one in remedy.when):
            assert trait in TRAITS or trait.replace("-", "_") in GENERAL


def test_every_section_and_every_trait_is_used() -> None:
    used = {
        trait.removeprefix("not-") for cause in CAUSES.values() for remedy in cause.remedies for trait in remedy.when
    }
    told_by_situations = {"linux", "macos", "debian", "fedora", "root", "wsl", "changeable"}
    assert TRAITS - used - told_by_situations == set()
    assert {cause.section for cause in CAUSES.values()} - {None} == set(catalogue().sections)
    assert {cause.group for cause in CAUSES.values()} - {None} == set(catalogue().groups)


@pytest.mark.parametrize("cause", CAUSES.values(), ids=CAUSES)
def test_a_remedy_is_never_printed_where_its_condition_fails(cause: Cause) -> None:
    """With every word known, each remedy is printed exactly in the situations that its traits describe."""
    for remedy in cause.remedies:
        wanted = {trait for trait in remedy.when if not trait.startswith("not-")}
        words = {name: text for name, text in GENERAL.items() if f"not-{name.replace('_', '-')}" not in remedy.when}
        fitting = Circumstances(frozenset(wanted), words)
        assert remedy.fits(fitting)
        for trait in remedy.when:
            name = trait.removeprefix("not-")
            other = (
                Circumstances(fitting.traits | {name}, words)
                if trait.startswith("not-")
                else Circumstances(
                    fitting.traits - {name}, {key: text for key, text in words.items() if key != name.replace("-", "_")}
                )
            )
            assert not remedy.fits(other), (remedy, trait)
        for word in remedy.wanted:
            less = Circumstances(fitting.traits, {key: text for key, text in words.items() if key != word})
            assert not remedy.fits(less), (remedy, word)


@pytest.mark.parametrize("cause", CAUSES.values(), ids=CAUSES)
def test_what_is_told_in_general_is_whole(cause: Cause) -> None:
    for system in ("linux", "windows", "macos"):
        told = as_one(general_remedies(cause, here({}, system=system)))
        assert (told is None) == (not cause.remedies)
        assert "{" not in (told or "")


A_PERSON_CHOOSES = {
    "config-invalid": "KEY and VALUE are in the message",
    "not-an-environment": "PATH is a new folder",
    "duplicate-runtimes": "PATH is a new folder",
    "msvc-runtime-old": "PATH is the variable",
}


@pytest.mark.parametrize("cause", CAUSES.values(), ids=CAUSES)
def test_a_placeholder_is_left_only_where_a_person_chooses(cause: Cause) -> None:
    """Entries of the section `errors` are told by `--explain` and the page alone; what is printed has its words."""
    told = [re.sub(r"\{\w+\}", "", remedy.do) for remedy in cause.remedies if cause.section != "errors"]
    left = [text for text in told if re.search(r"(?<!\w)(PATH|FILE|DIR|FOLDER|URL|KEY|VALUE|PYTHON|DEVICE)\b", text)]
    assert bool(left) == (cause.code in A_PERSON_CHOOSES)


def test_every_code_of_an_error_or_a_warning_is_explained() -> None:
    """Whatever code a command prints, `doctor --explain` knows it."""
    printed = {code for path in (ROOT / "imprint").rglob("*.py") for code in codes_in(path)}
    kinds: list[type[ImprintError]] = [ImprintError, *every_kind(ImprintError)]
    printed |= {kind.code for kind in kinds}
    printed |= {*access.CODES.values(), verdict.ABSENT, verdict.BROKEN, verdict.DAMAGED, verdict.FAILED}
    printed |= {verdict.LACKING, verdict.STARTUP, verdict.TOO_NEW, verdict.UNTRIED}
    assert len(printed) > 70
    assert printed - CAUSES.keys() == set()


def every_kind(kind: type[ImprintError]) -> list[type[ImprintError]]:
    """Return the subclasses of an error, theirs included."""
    return [each for found in kind.__subclasses__() for each in (found, *every_kind(found))]


PLACES = {
    "Notice": 0,
    "error_of": 0,
    "Outside": 0,
    "Problem": 0,
    "Observation": 0,
    "Finding": 1,
    "Aside": 2,
    "finding": 2,
}
"""Where each call takes a code, as a place among its arguments."""


def codes_in(path: Path) -> set[str]:
    """Return the codes that a module gives to errors, remarks and findings."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Call):
            called = getattr(node.func, "id", getattr(node.func, "attr", ""))
            given = [keyword.value for keyword in node.keywords if keyword.arg == "code"]
            place = PLACES.get(called)
            given += node.args[place : place + 1] if place is not None else []
            found |= {one.value for one in given if isinstance(one, ast.Constant) and isinstance(one.value, str)}
    return found


def test_a_cause_outside_the_environment_is_never_answered_with_a_repair() -> None:
    told = [remedy.do for cause in CAUSES.values() if cause.section == "outside" for remedy in cause.remedies]
    assert told
    assert [do for do in told if "--repair" in do] == []


def test_without_a_planned_gpu_nothing_of_cuda_is_installed() -> None:
    on_cpu = Circumstances(TRAITS - {"gpu-planned", "kept"}, GENERAL)
    for code in ("runtime-libs-missing", "cuda-major-mismatch", "libs-present-not-loaded", "placeholder-package"):
        told = as_one(remedies_for(code, on_cpu)) or ""
        assert "installs the CPU build" in told
        assert GENERAL["bring"] not in told
        assert GENERAL["install"] not in told


def test_the_page_on_trouble_holds_every_code_and_its_links_lead_somewhere() -> None:
    headings = re.findall(r"^### (\S+)$", TEXT, re.MULTILINE)
    assert sorted(headings) == sorted(code for code, cause in CAUSES.items() if cause.notice)
    assert set(re.findall(r"\]\(#([\w-]+)\)", TEXT)) <= set(headings)
    elsewhere = re.findall(r"^### (\S+)$", REASON_CODES.read_text("utf-8"), re.MULTILINE)
    assert set(re.findall(r"\]\(reason-codes\.md#([\w-]+)\)", TEXT)) <= set(elsewhere)


def test_the_page_begins_with_the_question_that_most_people_have() -> None:
    screen = TEXT.splitlines()[:24]
    assert "## I have a GPU and it runs on the CPU" in screen
    assert "imprint config set model.device gpu" in screen
    assert "imprint setup" in screen


def test_every_symptom_leads_to_codes_that_exist() -> None:
    symptoms = catalogue().symptoms
    assert [code for symptom in symptoms for code in symptom.codes if code not in CAUSES] == []
    reached = {code for symptom in symptoms for code in symptom.codes}
    assert len(reached) > 50
