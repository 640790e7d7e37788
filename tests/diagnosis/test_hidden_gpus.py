"""What hides every GPU is told by one predicate: the survey, the plan and doctor never differ about it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from imprint.diagnosis.checks.machine import driver
from imprint.planning.builds import parse_builds
from imprint.planning.driver import hides_every_gpu
from imprint.planning.model import Machine, Nvidia, Platform, Python, Request
from imprint.planning.rule import decide
from support.recorded import BASES, changed

TABLE = parse_builds(json.loads((Path(__file__).parents[2] / "data" / "builds.json").read_text("utf-8")), {}, "")


@pytest.mark.parametrize(
    "value", ["", " ", "-1", " -1", "-1 ", "\t-1", "NoDevFiles", " NoDevFiles", "0", "-1,0", "none"]
)
def test_plan_and_doctor_say_the_same(value: str) -> None:
    machine = Machine(
        platform=Platform("linux", "x86_64"),
        python=Python("3.12.4"),
        nvidia=Nvidia(status="no-device", gpus=()),
        environment={"CUDA_VISIBLE_DEVICES": value},
    )
    plan = decide(Request("auto"), machine, TABLE, (), None)
    (finding,) = driver(changed(BASES["managed-gpu"], machine=machine))
    hidden = hides_every_gpu(value)
    assert (plan.code == "visible-devices-empty") is hidden
    assert (finding.code == "gpus-hidden") is hidden
