"""What holds of every plan, tried on many machines."""

from __future__ import annotations

import json
import re
from random import Random

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from imprint.planning import reasons
from imprint.planning.explain import explain
from imprint.planning.model import Gate, Gpu, Installed, Machine, Plan, Platform, Python, Request, Verdict
from imprint.planning.rule import decide
from imprint.planning.versions import parse_version
from imprint.planning.wire import machine_from_json, plan_from_json
from imprint.values import replace
from imprint.words import AskedDevice
from planning.conftest import DOCUMENT, PROFILE, TABLE
from planning.strategies import (
    DRIVERS,
    GARBAGE,
    gpu_machines,
    gpu_requests,
    installed_builds,
    machines,
    odd_machines,
    requests,
    situations,
)
from support import coverage_twin

Situation = tuple[Request, Machine, tuple[Verdict, ...], Installed | None]
CUDA_BUILDS = [build.name for build in TABLE.cuda]


def plan_of(situation: Situation) -> Plan:
    request, machine, verdicts, installed = situation
    return decide(request, machine, TABLE, verdicts, installed)


@PROFILE
@given(situations())
def test_every_machine_gets_the_same_plan_twice(situation: Situation) -> None:
    first = plan_of(situation)
    assert plan_of(situation) == first
    assert first.code in reasons.CODES
    assert first.reason
    assert "\n" not in first.reason
    assert {one.code for one in first.refused} <= set(reasons.CODES)
    assert {note.code for note in first.notes} <= set(reasons.NOTE_CODES)
    assert (first.build is None) == (first.version is None) == (first.lock is None)


@PROFILE
@given(odd_machines, requests, GARBAGE)
def test_nonsense_gets_a_plan_too(machine: Machine, request: Request, gpu_device: str) -> None:
    plan = decide(replace(request, gpu_device=gpu_device), machine, TABLE, (), None)
    assert plan.reason.isprintable()
    assert plan_from_json(json.loads(json.dumps(plan.to_json()))) == plan


@PROFILE
@given(situations(), st.randoms(use_true_random=False))
def test_the_order_of_the_gpus_does_not_matter(situation: Situation, random: Random) -> None:
    request, machine, verdicts, installed = situation
    gpus = list(machine.nvidia.gpus or ())
    random.shuffle(gpus)
    shuffled = replace(
        machine, nvidia=replace(machine.nvidia, gpus=None if machine.nvidia.gpus is None else tuple(gpus))
    )
    assert plan_of((request, shuffled, verdicts, installed)) == plan_of(situation)


@PROFILE
@given(situations(), st.randoms(use_true_random=False))
def test_the_order_of_the_verdicts_does_not_matter(situation: Situation, random: Random) -> None:
    request, machine, verdicts, installed = situation
    other = list(verdicts)
    random.shuffle(other)
    assert plan_of((request, machine, tuple(other), installed)) == plan_of(situation)


@PROFILE
@given(situations())
def test_gpu_and_auto_plan_alike(situation: Situation) -> None:
    request, machine, verdicts, installed = situation
    gpu = plan_of((replace(request, device="gpu"), machine, verdicts, installed))
    assert gpu == plan_of((replace(request, device="auto"), machine, verdicts, installed))


@PROFILE
@given(situations())
@example(
    (
        Request(device="cpu"),
        Machine(platform=Platform(os="linux", arch="x86_64", jetson=True), python=Python(version="3.11.9")),
        (),
        Installed("cuda13"),
    )
)
def test_the_cpu_ignores_all_that_is_said_about_gpus(situation: Situation) -> None:
    request, machine, verdicts, installed = situation
    asked = replace(request, device="cpu")
    bare = Machine(platform=replace(machine.platform, jetson=None), python=machine.python)
    plan = plan_of((asked, machine, verdicts, installed))
    assert plan == plan_of((replace(asked, gpu_device="auto"), bare, (), installed))
    assert plan.code == "device-cpu" or plan.build is None


@PROFILE
@given(situations(gpu_machines), st.sampled_from(DRIVERS))
def test_a_newer_driver_never_loses_anything(situation: Situation, driver: str) -> None:
    request, machine, _, installed = situation
    known = parse_version(machine.nvidia.driver)
    assume(known is not None)
    assume(known is not None and known < (parse_version(driver) or ()))
    machine = replace(machine, nvidia=replace(machine.nvidia, cuda=None))
    newer = replace(machine, nvidia=replace(machine.nvidia, driver=driver))
    before, after = plan_of((request, machine, (), installed)), plan_of((request, newer, (), installed))
    rank = {"gpu-jit": 1, "gpu-native": 2}
    assert rank.get(after.code, 0) >= rank.get(before.code, 0)
    lost = {one.build for one in after.refused} - {one.build for one in before.refused}
    # A build planned or untried before can only come to be listed because a better one is planned after it.
    assert not lost or after.device is not None


@PROFILE
@given(gpu_machines, gpu_requests, installed_builds)
def test_an_explicit_wish_is_honoured_or_refused(machine: Machine, request: Request, there: Installed | None) -> None:
    assume(request.gpu_device != "auto")
    plan = decide(request, machine, TABLE, (), there)
    if plan.device is None:
        assert plan.code not in reasons.GPU_CODES
        return
    wanted = request.gpu_device
    assert wanted in {str(plan.device.index), plan.device.uuid} or wanted.lower() == (plan.device.uuid or "").lower()


@PROFILE
@given(gpu_machines, gpu_requests)
def test_a_planned_gpu_has_code_and_driver(machine: Machine, request: Request) -> None:
    plan = decide(request, machine, TABLE, (), None)
    if plan.device is None or plan.build is None:
        return
    document = machine.to_json()
    gpu = next(gpu for gpu in document["nvidia"]["gpus"] if gpu["index"] == plan.device.index)
    assert (
        coverage_twin.how(DOCUMENT, plan.build, document, gpu) == {"gpu-native": "native", "gpu-jit": "ptx"}[plan.code]
    )


@PROFILE
@given(gpu_machines | machines)
def test_every_admissible_pair_is_planned(machine: Machine) -> None:
    document = machine.to_json()
    for gpu in document["nvidia"]["gpus"] or ():
        ways = {name: coverage_twin.how(DOCUMENT, name, document, gpu) for name in CUDA_BUILDS}
        plan = decide(Request("gpu", str(gpu["index"])), machine, TABLE, (), None)
        native = [name for name in CUDA_BUILDS if ways[name] == "native"]
        best = [*native, *(name for name in CUDA_BUILDS if ways[name] == "ptx")]
        if plan.build is not None:
            planned = plan.build if plan.device is not None else None
            assert planned == (best[0] if best else None)


@PROFILE
@given(gpu_machines)
def test_auto_finds_a_gpu_where_one_can_be_planned(machine: Machine) -> None:
    gpus = machine.nvidia.gpus or ()
    alone = [decide(Request("gpu", str(gpu.index)), machine, TABLE, (), None) for gpu in gpus]
    auto = decide(Request("auto"), machine, TABLE, (), None)
    assert (auto.device is not None) == any(plan.device is not None for plan in alone)
    if any(plan.code == "gpu-native" for plan in alone):
        assert auto.code == "gpu-native"


@PROFILE
@given(situations(gpu_machines))
def test_a_hint_names_a_change_that_helps(situation: Situation) -> None:
    request, machine, verdicts, installed = situation
    plan = plan_of(situation)
    if plan.hint is None or plan.build is None:
        return
    driver = re.search(r"driver ([0-9.]+) or newer", plan.hint)
    if driver is not None:
        changed = replace(machine, nvidia=replace(machine.nvidia, driver=driver[1], cuda=None))
        assert plan_of((request, changed, verdicts, installed)).device is not None
        return
    for choice in re.findall(r"--gpu-device (\S+?)`", plan.hint):
        asked = replace(request, gpu_device=choice)
        assert plan_of((asked, machine, verdicts, installed)).device is not None


@PROFILE
@given(situations(gpu_machines))
def test_no_hint_means_that_no_driver_helps(situation: Situation) -> None:
    request, machine, verdicts, installed = situation
    plan = plan_of(situation)
    known = parse_version(machine.nvidia.driver)
    assume(plan.device is None and plan.hint is None and plan.code != "device-cpu" and known is not None)
    system = "windows" if machine.platform.os == "windows" or machine.platform.wsl else "linux"
    for driver in TABLE.hint_drivers[system]:
        if (parse_version(driver) or ()) > (known or ()):
            changed = replace(machine, nvidia=replace(machine.nvidia, driver=driver, cuda=None))
            assert plan_of((request, changed, verdicts, installed)).device is None


@PROFILE
@given(situations())
def test_refusals_are_listed_completely(situation: Situation) -> None:
    plan = plan_of(situation)
    listed = [one.build for one in plan.refused]
    assert len(listed) == len(set(listed))
    assert plan.build not in listed
    if plan.build not in CUDA_BUILDS:
        assert listed == CUDA_BUILDS
    elif plan.device is not None:
        before = CUDA_BUILDS[: CUDA_BUILDS.index(plan.build)]
        assert [name for name in listed if name in before] == before


@PROFILE
@given(situations())
def test_a_provisional_plan_takes_nothing_away(situation: Situation) -> None:
    plan = plan_of(situation)
    if plan.provisional:
        assert plan.device is None
        assert plan.code not in {"driver-too-old", "check-failed", *reasons.GPU_CODES}
    if plan.provisional and plan.build in CUDA_BUILDS:
        assert plan.installed is not None
        assert plan.installed.build == plan.build
        assert not plan.pending


@PROFILE
@given(situations())
def test_nothing_moves_unless_something_is_pending(situation: Situation) -> None:
    plan = plan_of(situation)
    if not plan.pending:
        assert (plan.download_bytes, plan.installed_bytes, plan.free_bytes_after_prune) == (0, 0, 0)


@PROFILE
@given(machines)
def test_a_machine_survives_its_json_form(machine: Machine) -> None:
    assert machine_from_json(json.loads(json.dumps(machine.to_json()))) == machine


@PROFILE
@given(situations())
def test_a_plan_survives_its_json_form(situation: Situation) -> None:
    plan = plan_of(situation)
    assert plan_from_json(json.loads(json.dumps(plan.to_json()))) == plan


@PROFILE
@given(situations())
def test_the_explanation_agrees_with_the_plan(situation: Situation) -> None:
    request, machine, verdicts, _ = situation
    plan = plan_of((request, machine, verdicts, None))
    explained = {build.name: list[Gate]() for build in TABLE.builds}
    for gate in explain(request, machine, TABLE, verdicts):
        explained[gate.build].append(gate)
    assert all(explained.values())
    passed = [name for name, gates in explained.items() if all(gate.outcome == "pass" for gate in gates)]
    if plan.device is not None:
        assert passed == [plan.build, "cpu"]
    for refusal in plan.refused:
        gates = explained[refusal.build]
        codes = [gate.code for gate in gates if gate.outcome == "refused"]
        assert codes == [refusal.code] or refusal.code == "not-reached"


def test_a_gpu_alone_is_what_auto_takes() -> None:
    machine = Machine(nvidia=replace(Machine().nvidia, gpus=(Gpu(),)))
    assert decide(Request("auto"), machine, TABLE, (), None).build is None


@pytest.mark.parametrize("device", ["gpu", "auto"])
def test_the_empty_machine_gets_an_answer(device: AskedDevice) -> None:
    plan = decide(Request(device), Machine(), TABLE, (), None)
    assert (plan.build, plan.code) == (None, "os-no-wheel")
