"""A record that keeps embeddings from running is proved again before it is said; setup fails where they do not run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from imprint.operations.check import check
from imprint.operations.doctor import DoctorOptions, diagnose
from imprint.operations.plan import PlanOptions, plan
from imprint.operations.status import status
from imprint.planning.model import Device
from imprint.runtime.check.reads import Needs
from imprint.runtime.check.run import CPU, CheckResult
from imprint.words import FailureKind, Outcome
from support.place import Place
from support.twins import Twins, make_twins

SHORT, ENOUGH = Needs(8, 17), Needs(13, 26)


@pytest.fixture(scope="session")
def twins(tmp_path_factory: pytest.TempPathFactory) -> Twins:
    return make_twins(tmp_path_factory.mktemp("twins"))


@pytest.fixture
def place(tmp_path: Path, twins: Twins) -> Place:
    made = Place(tmp_path / "home", twins)
    made.context = replace(made.context, flags={"model.device": "cpu"})
    return made


class Answers:
    """A check with one answer, which counts how often it is asked."""

    def __init__(self, outcome: Outcome = "ok", detail: str | None = None, reads: Needs | None = ENOUGH) -> None:
        kind: FailureKind | None = None if outcome == "ok" else "import-failed"
        self.answer, self.asked = CheckResult(outcome, kind, CPU, None, detail, reads=reads), 0

    def __call__(self, _python: Path, _device: Device | None, _environ: Mapping[str, str]) -> CheckResult:
        """Answer."""
        self.asked += 1
        return self.answer


# --- a runtime that seems too old for the model ----------------------------------------------------------------------


@pytest.fixture
def limited(place: Place, monkeypatch: pytest.MonkeyPatch) -> Place:
    """Return a home whose recorded check says that the runtime is too old for the model."""
    monkeypatch.setattr("imprint.situation.verdict.needs_of", lambda _path: Needs(10, 21))
    place.setup()
    check(place.context, prove=Answers(reads=SHORT))
    return place


def test_a_recorded_limit_is_tried_again_before_it_is_said(limited: Place) -> None:
    good = Answers()
    assert status(limited.context, prove=good).ok
    assert plan(limited.context, PlanOptions(check=True), prove=good).warnings == ()
    found = diagnose(limited.context, DoctorOptions(("embedding:run", "runtime:embedding-device")), prove=good)
    assert "model-too-new" not in {finding["code"] for finding in found.data["findings"]}
    assert good.asked == 3
    told = status(limited.context, prove=Answers(reads=SHORT))
    assert told.errors[0].code == "model-too-new"


def test_setup_tries_a_recorded_limit_again_and_records_what_it_finds(limited: Place) -> None:
    limited.check = Answers()
    told = limited.setup()
    assert told.ok
    assert told.data["status"]["embeds"] is True
    never = Answers("failed")
    assert status(limited.context, prove=never).ok
    assert never.asked == 0


def test_a_check_fails_where_embeddings_do_not_run_after_it(limited: Place) -> None:
    told = check(limited.context, prove=Answers(reads=SHORT))
    assert (told.data["outcome"], [error.code for error in told.errors]) == ("ok", ["model-too-new"])
    lacking = Answers()
    lacking.answer = replace(lacking.answer, lacks=("orjson",))
    assert [error.code for error in check(limited.context, prove=lacking).errors] == ["packages-missing"]
    assert check(limited.context, prove=Answers()).ok


def test_setup_fails_where_embeddings_do_not_run_after_it(limited: Place) -> None:
    limited.check = Answers(reads=SHORT)
    told = limited.setup()
    assert told.data["status"]["embeds"] is False
    assert [error.code for error in told.errors] == ["model-too-new"]


# --- a check that failed for something outside, or that is past -------------------------------------------------------

JUNK = "libstdc++.so.6: version `GLIBCXX_3.4.30' not found"


def failed_under(place: Place, **environ: str) -> None:
    """Record a check that failed where these variables were set."""
    context = replace(place.context, environ={**place.context.environ, **environ})
    check(context, prove=Answers("failed", JUNK))


def replaced(place: Place) -> bool:
    """Whether setup, whose check passes now, puts another runtime in place of the one that is there."""
    before = place.prefix
    assert place.setup().ok
    return place.prefix != before


def test_setup_tries_again_what_failed_in_other_surroundings(place: Place) -> None:
    place.setup()
    failed_under(place, LD_LIBRARY_PATH="/junk")
    assert not replaced(place)
    assert len(place.checks) == 2


def test_setup_tries_again_what_failed_for_a_cause_outside(place: Place) -> None:
    place.setup()
    failed_under(place)
    assert not replaced(place)


def test_setup_builds_nothing_anew_for_a_cause_outside(place: Place) -> None:
    place.setup()
    failed_under(place, LD_LIBRARY_PATH="/junk")
    before, place.check = place.prefix, Answers("failed", JUNK)
    told = place.setup()
    assert (place.prefix, told.errors[0].code) == (before, "check-failed")
    assert "repair" not in (told.errors[0].hint or "")


def test_what_failed_and_works_again_is_not_built_anew(place: Place) -> None:
    """As after a driver was repaired, of which no file of the target tells."""
    place.setup()
    check(place.context, prove=Answers("failed", "undefined symbol"))
    assert not replaced(place)


def test_what_still_fails_by_itself_is_built_anew(place: Place) -> None:
    place.setup()
    bad, before = Answers("failed", "undefined symbol"), place.prefix
    check(place.context, prove=bad)
    good = place.check
    place.check = lambda python, device, environ: (bad if python.is_relative_to(before) else good)(
        python, device, environ
    )
    assert replaced(place)
