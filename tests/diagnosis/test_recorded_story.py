"""The recorded environments of `cases/`, put through the one verdict: what each of the six would say, side by side.

What is played: there is no environment, so nothing is read or started. The facts are those of the file; where it
records no plan, the rule plans for the recorded machine, and where a record is silent a target is healthy
(`support.recorded`). `status`, `setup` without changes, `plan --check`, `check` and `embed` are held by functions that
make their answers of a verdict, and doctor by its own checks. The commands themselves run in `test_one_story.py`.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from imprint.diagnosis.checks import CHECKS, run
from imprint.diagnosis.checks.device import proof
from imprint.diagnosis.facts import Facts
from imprint.diagnosis.facts import Proof as Recorded
from imprint.diagnosis.standing import seen_of, verdict_of
from imprint.errors import ImprintError
from imprint.operations.embed import blamed
from imprint.planning.model import Installed, Machine, Request
from imprint.planning.rule import decide as plan_for
from imprint.runtime.check.proof import Proof
from imprint.runtime.verdict import TargetVerdict, decide
from imprint.situation.inputs import load_builds
from imprint.situation.verdict import errors_of, notices_of_verdict
from imprint.values import replace as replace_value
from support.recorded import BASES, changed, facts_from_json

CASES = sorted((Path(__file__).parent / "cases").glob("*.json"))
ENDED = ImprintError("the worker ended early", code="worker-failed")
UNKNOWN = {
    "the configuration cannot be read": {"config": ImprintError("denied", code="state-unreadable")},
    "the target's record is newer": {"target": ImprintError("newer", code="state-newer")},
}


def planned(facts: Facts) -> Facts:
    """Return the facts with the plan that the rule makes, where none is recorded."""
    if facts.planned.plan is not None:
        return facts
    installed = Installed(facts.runtime.build, None) if facts.runtime.build is not None else None
    request = Request(device=facts.settings.device_asked or "cpu")
    plan = plan_for(request, facts.system.machine or Machine(), load_builds(digests=False), (), installed)
    return changed(facts, plan=plan)


def line_of(name: str, verdict: TargetVerdict, told: Mapping[str, str]) -> str:
    """Return one line for people who compare."""
    pending = 100 if verdict.pending else 0 if verdict.embeds else 1
    failed = blamed(verdict, ENDED).specific_code
    parts = [
        f"status {verdict.runs_on} exit {0 if verdict.embeds else 1}: {verdict.line}",
        f"setup {verdict.to_json()['runs_on']}",
        f"plan --check {pending}",
        f"check {' '.join(remark.code for remark in notices_of_verdict(verdict)) or 'ok'}",
        f"embed {'ok' if verdict.embeds else failed}",
        f"doctor {verdict.runs_on} {','.join(f'{code} ({status})' for code, status in told.items())}",
    ]
    return f"{name}: " + " | ".join(parts)


def contradictions(facts: Facts, verdict: TargetVerdict) -> list[str]:
    """Return what two of the six say that cannot both be so."""
    findings = run(CHECKS, facts)
    errors = [found for found in findings if found.status == "error"]
    problem, found = verdict.problem, []
    if not verdict.embeds and not errors:
        found.append("status exits 1, doctor exits 0")
    if {one.runs_on for one in findings} - {verdict.runs_on}:
        found.append(f"doctor's findings name {sorted({str(one.runs_on) for one in findings})}")
    if bool(errors_of(verdict)) == verdict.embeds:
        found.append("the exit code of status is not about whether embeddings run")
    if verdict.embeds != verdict.line.startswith(("embeddings run on", "embeddings ran on")):
        found.append(f"the line claims otherwise: {verdict.line}")
    codes = {problem.code} if problem is not None else set()
    if {remark.code for remark in notices_of_verdict(verdict)} != codes:
        found.append("check and plan do not say what status says")
    if problem is not None and blamed(verdict, ENDED).specific_code != problem.code:
        found.append("embed does not blame what status names")
    if problem is not None and not {one.code for one in findings if one.status in {"warning", "error"}}:
        found.append("doctor finds nothing wrong")
    return found


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_of_a_recorded_environment(path: Path) -> None:
    case: dict[str, Any] = json.loads(path.read_text("utf-8"))
    facts = planned(facts_from_json(case["facts"]))
    verdict = decide(seen_of(facts)) if facts.target.provisioned is not False else verdict_of(facts)
    assert verdict is not None
    told = {one.code: one.status for one in run(CHECKS, facts) if one.status in {"warning", "error"}}
    line = line_of(path.stem, verdict, told)
    print(line)  # noqa: T201 - shown with `-s`: what people compare
    assert "None" not in line
    assert contradictions(facts, verdict) == []


@pytest.mark.parametrize("failures", UNKNOWN.values(), ids=UNKNOWN)
@pytest.mark.parametrize("base", BASES)
def test_where_every_command_refuses_doctor_claims_nothing(base: str, failures: dict[str, ImprintError]) -> None:
    facts = changed(BASES[base], plan=None, failures=failures, device_asked=None)
    assert verdict_of(facts) is None
    assert {one.runs_on for one in run(CHECKS, facts)} == {None}


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("unknown", ["interpreter", "runtimes", "loaded", "machine", "nodes", "proof", "disk"])
def test_with_a_fact_unknown_they_agree_too(base: str, unknown: str) -> None:
    facts = changed(BASES[base], **{unknown: None})
    verdict = verdict_of(facts)
    assert verdict is not None
    assert contradictions(facts, verdict) == []


def test_what_doctor_tried_outweighs_what_was_recorded() -> None:
    """A check that held a moment ago and a runtime that does not load now: it does not run, for doctor too."""
    facts = BASES["managed"]
    seen = replace_value(seen_of(facts), version="1.31.1")
    broken = changed(facts, seen=seen, loaded=replace(facts.runtime.loaded, error="ImportError: x", has_session=False))  # type: ignore[type-var]
    verdict = verdict_of(broken)
    assert verdict is not None
    assert (verdict.runs_on, verdict.embeds) == ("none", False)


@pytest.mark.parametrize(("outcome", "status"), [("ok", "ok"), ("failed", "error")])
def test_a_check_that_failed_counts_only_until_one_passes(outcome: str, status: str) -> None:
    facts = BASES["managed"]
    seen = replace_value(seen_of(facts), proof=Proof(outcome, "import-failed" if outcome != "ok" else None))
    told = changed(facts, seen=seen, proof=Recorded("failed", "2026-11-30T10:00:00Z", "import-failed"))
    assert [one.status for one in proof(told)] == [status]
