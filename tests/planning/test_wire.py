"""Documents are read strictly, each refusal names its place, and what was written reads back equal."""

from __future__ import annotations

import pytest

from imprint.errors import UsageError
from imprint.planning.model import Fingerprint, Installed, Machine, Verdict, Verdicts
from imprint.planning.wire import (
    machine_from_json,
    partial_verdicts_from_json,
    plan_from_json,
    verdict_from_json,
    verdicts_from_json,
)

PLAN = {"code": "device-cpu", "reason": "model.device is cpu"}


def test_a_missing_field_is_unknown() -> None:
    assert machine_from_json({}) == machine_from_json({"schema": 1, "nvidia": None, "cpu": None}) == Machine()


def test_a_null_and_an_empty_list_differ() -> None:
    assert machine_from_json({"other_gpus": None}).other_gpus is None
    assert machine_from_json({"other_gpus": []}).other_gpus == ()


def test_the_envelope_is_taken_off() -> None:
    bare = Machine().to_json()
    envelope = {"schema": 1, "command": "machine", "ok": True, "data": bare, "warnings": [], "errors": []}
    assert machine_from_json(envelope) == Machine()


def test_a_null_variable_is_not_set() -> None:
    read = machine_from_json({"environment": {"CUDA_VISIBLE_DEVICES": None, "ANY_OTHER": ""}})
    assert read.environment == {"ANY_OTHER": ""}


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ([], "the document: expected an object, found a list"),
        (None, "the document: expected an object, found null"),
        ({"schema": 2}, "schema: this version of Imprint reads schema 1, found 2"),
        ({"schema": "1"}, "schema: expected a whole number, found a string"),
        ({"colour": 1}, "colour: unknown key"),
        ({"platform": {"colour": None}}, "platform.colour: unknown key"),
        ({"platform": "linux"}, "platform: expected an object, found a string"),
        ({"platform": {"wsl": 1}}, "platform.wsl: expected true or false, found a number"),
        ({"platform": {"libc": {"version": 2.35}}}, "platform.libc.version: expected a string, found a number"),
        ({"nvidia": {"status": "fine"}}, "nvidia.status: expected one of ok, none"),
        ({"nvidia": {"gpus": {}}}, "nvidia.gpus: expected a list, found an object"),
        ({"nvidia": {"gpus": [{}, {"index": True}]}}, "nvidia.gpus[1].index: expected a whole number, found true or"),
        ({"nvidia": {"gpus": [{"index": -1}]}}, "nvidia.gpus[0].index: expected a number that is not negative"),
        ({"nvidia": {"gpus": [None]}}, "nvidia.gpus[0]: expected an object, found null"),
        ({"cpu": {"flags": ["avx2", 3]}}, "cpu.flags[1]: expected a string, found a number"),
        ({"other_gpus": [{"kind": "external"}]}, "other_gpus[0].kind: expected one of discrete, integrated, software"),
        ({"environment": []}, "environment: expected an object, found a list"),
        ({"environment": {"A": 1}}, "environment.A: expected a string, found a number"),
        ({"command": "machine", "data": {"python": 3}}, "data.python: expected an object, found a number"),
    ],
)
def test_a_machine_is_refused_with_the_place(document: object, said: str) -> None:
    with pytest.raises(UsageError) as refused:
        machine_from_json(document)
    assert refused.value.message.startswith(said)


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"reason": "because"}, "code: missing"),
        ({**PLAN, "refused": [{"build": "cuda13"}]}, "refused[0].code: missing"),
        ({**PLAN, "device": 0}, "device: expected an object, found a number"),
        ({**PLAN, "gates": []}, "gates: unknown key"),
    ],
)
def test_a_plan_is_refused_with_the_place(document: object, said: str) -> None:
    with pytest.raises(UsageError) as refused:
        plan_from_json(document)
    assert refused.value.message.startswith(said)


def test_a_plan_needs_no_more_than_its_code_and_reason() -> None:
    plan = plan_from_json({**PLAN, "schema": 1, "installed": {"build": "cpu"}})
    assert (plan.build, plan.installed, plan.refused) == (None, Installed("cpu"), ())


def test_verdicts_survive_their_json_form() -> None:
    verdicts = (Verdict("cuda13", "ok"), Verdict("cuda12", "failed", "crashed", "now", Fingerprint(driver="580")))
    assert verdicts_from_json(Verdicts(verdicts).to_json()) == verdicts


def test_a_bare_list_of_verdicts_is_read_too() -> None:
    assert verdicts_from_json([{"build": "cuda13", "result": "ok"}]) == (Verdict("cuda13", "ok"),)


def test_what_a_fingerprint_names_is_told_apart_from_what_is_null() -> None:
    entry = {"build": "cuda13", "result": "failed", "fingerprint": {"driver": None, "python": "3.12.4"}}
    ((verdict, given),) = partial_verdicts_from_json([entry])
    assert verdict.fingerprint == Fingerprint(python="3.12.4")
    assert given == {"driver", "python"}
    ((_, given),) = partial_verdicts_from_json({"verdicts": [{"build": "cuda13", "result": "ok"}]})
    assert given == set()


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({}, "verdicts: missing"),
        ({"schema": 9, "verdicts": []}, "schema: this version of Imprint reads schema 1, found 9"),
        ({"verdicts": {}}, "verdicts: expected a list, found an object"),
        ({"verdicts": [{"build": "cuda13"}]}, "verdicts[0].result: missing"),
        ([{"build": "a", "result": "ok", "fingerprint": {"gpu": "x"}}], "[0].fingerprint.gpu: unknown key"),
        ("text", "the document: expected a list, found a string"),
    ],
)
def test_verdicts_are_refused_with_the_place(document: object, said: str) -> None:
    with pytest.raises(UsageError) as refused:
        verdicts_from_json(document)
    assert refused.value.message.startswith(said)


def test_one_verdict_may_stand_anywhere() -> None:
    with pytest.raises(UsageError, match=r"^here\.build: missing"):
        verdict_from_json({"result": "ok"}, "here")
