"""A plan that chose no GPU says what helps, from the catalogue, and only what would."""

import json
from pathlib import Path
from typing import Any

import pytest

from imprint.causes.catalogue import catalogue
from imprint.planning.model import Plan, Request
from imprint.planning.wire import machine_from_json
from imprint.situation.inputs import HELPLESS, advised, load_builds
from planning.test_golden import case_of, planned

GOLDEN = Path(__file__).resolve().parents[1] / "planning" / "golden"
BUILDS = load_builds(digests=False)


def plan_of(name: str, **environ: str) -> Plan:
    case = case_of(GOLDEN / f"{name}.json")
    machine, plan = planned(case, BUILDS)
    return advised(plan, Request(**case["request"]), machine, BUILDS, environ=environ)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("driver-mismatch-nothing-installed", "restart the machine"),
        ("driver-missing", "install NVIDIA's driver"),
        ("wsl-linux-driver", "inside WSL"),
        ("container-without-gpu", "--gpus all"),
        ("visible-empty-string", "CUDA_VISIBLE_DEVICES"),
        ("visible-invalid", "CUDA_VISIBLE_DEVICES"),
        ("no-device", "nvidia-smi -L"),
        ("uvm-unavailable", "modprobe"),
        ("compat-unsupported", "compat"),
        ("timeout", "nvidia-smi"),
        ("jetson-orin", "JetPack"),
    ],
)
def test_a_reason_comes_with_what_helps(name: str, words: str) -> None:
    plan = plan_of(name)
    assert words in (plan.hint or ""), (plan.code, plan.hint)


@pytest.mark.parametrize("name", ["gt730", "radeon-linux", "mac-arm", "cpu-ignores-gpu-device", "egpu-unplugged"])
def test_where_nothing_helps_nothing_is_advised(name: str) -> None:
    assert plan_of(name).hint is None


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.json")), ids=lambda path: path.stem)
def test_a_computed_hint_stays_and_a_planned_gpu_needs_none(path: Path) -> None:
    case = case_of(path)
    _, plain = planned(case, BUILDS)
    plan = plan_of(path.stem)
    assert plain.hint in {None, plan.hint}
    if plan.device is not None or plan.code == "device-cpu":
        assert plan.hint == plain.hint
    elif plan.hint != plain.hint:
        assert plan.code in catalogue().causes


def test_another_python_is_advised_only_where_it_would_bring_a_gpu() -> None:
    case: dict[str, Any] = json.loads((GOLDEN / "py310-aarch64.json").read_text("utf-8"))
    machine = machine_from_json(case["machine"])
    plan = plan_of("py310-aarch64")
    assert plan.code == "python-no-gpu-wheel"
    old = machine_from_json(
        {**case["machine"], "nvidia": {**case["machine"]["nvidia"], "driver": "470.1", "cuda": "11.4"}}
    )
    hopeless = planned(
        {
            **case,
            "machine": {**case["machine"], "nvidia": {**case["machine"]["nvidia"], "driver": "470.1", "cuda": "11.4"}},
        },
        BUILDS,
    )[1]
    assert "3.11 to 3.14" in (advised(plan, Request("auto"), machine, BUILDS, environ={}).hint or "")
    assert advised(hopeless, Request("auto"), old, BUILDS, environ={}).hint is None


def test_where_the_catalogue_is_not_read_it_would_say_nothing() -> None:
    """`device-cpu` has advice for whoever asks what the code means; a plan that was asked for the CPU needs none."""
    assert [code for code in HELPLESS if catalogue().causes[code].remedies] == ["device-cpu"]


def test_a_command_is_quoted_for_the_shell() -> None:
    assert "unset CUDA_VISIBLE_DEVICES" in (plan_of("visible-empty-string").hint or "")
    case = case_of(GOLDEN / "visible-empty-string.json")
    windows = {**case["machine"], "platform": {**case["machine"]["platform"], "os": "windows", "libc": None}}
    machine, plan = planned({**case, "machine": windows}, BUILDS)
    powershell = advised(plan, Request("auto"), machine, BUILDS, environ={}).hint or ""
    prompt = advised(plan, Request("auto"), machine, BUILDS, environ={"PROMPT": "$P$G"}).hint or ""
    assert "Remove-Item Env:CUDA_VISIBLE_DEVICES" in powershell
    assert "set CUDA_VISIBLE_DEVICES=" in prompt
