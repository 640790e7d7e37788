"""States from the field and of our own, as recorded facts: doctor names each, says what embeddings run on, and mends.

Each file in cases/ is one state. `d…` are reports of people who do this job, in our own words; `s…` are our own.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from imprint.diagnosis.checks import CHECKS, run
from imprint.diagnosis.standing import what_embeddings_run_on
from support.recorded import facts_from_json

CASES = sorted((Path(__file__).parent / "cases").glob("*.json"))


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_the_state_is_named(path: Path) -> None:
    case: dict[str, Any] = json.loads(path.read_text("utf-8"))
    expected = case["expect"]
    facts = facts_from_json(case["facts"])
    findings = run(CHECKS, facts)
    named = [finding for finding in findings if finding.code == expected["finding"]]
    assert named, [finding for finding in findings if finding.status in {"warning", "error"}]
    assert (named[0].runs_on, what_embeddings_run_on(facts)) == (expected["runs_on"], expected["runs_on"])
    if "status" in expected:
        assert named[0].status == expected["status"]
    for words in expected["fix"]:
        assert words in (named[0].fix or "")


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_little_else_is_told(path: Path) -> None:
    """One cause makes a handful of findings at most, and none of a check that crashed."""
    findings = run(CHECKS, facts_from_json(json.loads(path.read_text("utf-8"))["facts"]))
    assert "check-crashed" not in {finding.code for finding in findings}
    assert len([finding for finding in findings if finding.status in {"warning", "error"}]) <= 4
