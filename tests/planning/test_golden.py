"""Golden plans: one file per machine, each with what decides it; expectations were worked out by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from imprint.planning.builds import BuildTable
from imprint.planning.fingerprints import complete_verdict
from imprint.planning.model import Installed, Machine, Plan, Request
from imprint.planning.rule import decide
from imprint.planning.wire import machine_from_json, partial_verdicts_from_json, plan_from_json

FILES = sorted((Path(__file__).parent / "golden").glob("*.json"))
KEYS = {"why", "request", "machine", "verdicts", "installed", "expect"}
EXPECTS = {
    *("build", "code", "provisional", "version", "lock", "pending", "device_index", "refused", "notes"),
    *("hint", "hint_has", "hint_lacks", "reason_has"),
}


def case_of(path: Path) -> dict[str, Any]:
    case: dict[str, Any] = json.loads(path.read_text("utf-8"))
    assert set(case) <= KEYS, "a misspelt key would test nothing"
    assert set(case["expect"]) <= EXPECTS
    return case


def planned(case: dict[str, Any], table: BuildTable) -> tuple[Machine, Plan]:
    request, machine = Request(**case["request"]), machine_from_json(case["machine"])
    verdicts = [
        complete_verdict(verdict, given, machine, table, request)
        for verdict, given in partial_verdicts_from_json(case.get("verdicts", []))
    ]
    installed = Installed(**case["installed"]) if "installed" in case else None
    return machine, decide(request, machine, table, verdicts, installed)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_plan_is_the_expected_one(path: Path, table: BuildTable) -> None:
    case = case_of(path)
    _, plan = planned(case, table)
    expect = case["expect"]
    found = plan.to_json()
    for key in ("build", "code", "provisional", "version", "lock", "pending"):
        assert found[key] == expect.get(key, found[key]), key
    if "device_index" in expect:
        assert plan.device is not None
        assert plan.device.index == expect["device_index"]
    refused = {one.build: one.code for one in plan.refused}
    assert {build: refused.get(build) for build in expect.get("refused", {})} == expect.get("refused", {})
    if expect.get("refused") == {}:
        assert not refused
    if "notes" in expect:
        assert [note.code for note in plan.notes] == expect["notes"]
    assert_says(expect, plan)


def assert_says(expect: dict[str, Any], plan: Plan) -> None:
    if "hint" in expect:
        assert plan.hint == expect["hint"]
    hint = plan.hint or ""
    assert [text for text in expect.get("hint_has", []) if text not in hint] == [], hint
    assert [text for text in expect.get("hint_lacks", []) if text in hint] == [], hint
    assert [text for text in expect.get("reason_has", []) if text not in plan.reason] == [], plan.reason


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_plan_survives_its_json_form(path: Path, table: BuildTable) -> None:
    _, plan = planned(case_of(path), table)
    assert plan_from_json(json.loads(json.dumps(plan.to_json()))) == plan


def test_no_two_machines_are_the_same_case() -> None:
    asked = [json.dumps({**case_of(path), "why": "", "expect": ""}, sort_keys=True) for path in FILES]
    assert len(set(asked)) == len(FILES)


def test_every_case_says_why() -> None:
    assert all(case_of(path)["why"] for path in FILES)
