"""The driver's states for real, from a libcuda compiled from C: doctor names each and what embeddings then run on."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from imprint.context import Context
from imprint.operations.doctor import DoctorOptions, diagnose
from imprint.planning.fingerprints import fingerprint_of
from imprint.planning.model import Verdict
from imprint.probing.survey import survey
from imprint.situation import inputs as planning_inputs
from imprint.situation.targets import target_of
from imprint.state import verdicts
from support.fake_cuda import FakeDriver, WithoutHardware, compile_driver, device_line
from support.foreign import CUDA13, NVIDIA, Foreign
from support.played_check import home_with_model, played_check
from support.played_runtime import played_wheels

BASE = ("numpy==2.4.6", "protobuf==7.36.2", "packaging==26.4", "flatbuffers==25.12.19")
LIBRARIES = tuple(f"{name}=={NVIDIA[name][0]}" for name in CUDA13)
HEALTHY = ("version 13000", "nvml_driver 580.95.05", device_line())


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> FakeDriver:
    return compile_driver(tmp_path_factory.mktemp("driver") / "lib")


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> Foreign:
    """Give an environment with the whole GPU build."""
    wheels = played_wheels(tmp_path_factory.mktemp("wheels"))
    made = Foreign(tmp_path_factory.mktemp("place"), wheels)
    made.create(*BASE, "onnxruntime-gpu==1.31.1", *LIBRARIES)
    home_with_model(made.home)
    return made


def look(env: Foreign, driver: FakeDriver, *lines: str, **environ: str) -> Mapping[str, Any]:
    """Return what doctor says on a machine with this driver and a GPU asked for."""
    driver.play(*lines)
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("IMPRINT_", "UV_", "CUDA_"))}
    context = Context(env.home, {**inherited, **driver.environ(IMPRINT_DEVICE="gpu"), **environ})
    host = WithoutHardware(context.environ)
    return diagnose(context, DoctorOptions(venv=env.prefix), host=host, prove=played_check).data


def codes(seen: Mapping[str, Any]) -> set[str]:
    return {found["code"] for found in seen["findings"] if found["status"] in {"warning", "error"}}


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        (("init 803",), "driver-mismatch-reboot"),
        (("init 999", "nvml_init 18"), "driver-mismatch-reboot"),
        (("init 804",), "forward-compat-on-geforce"),
        (("init 999",), "uvm-unavailable"),
        (("do cuInit segv",), "driver-unreadable"),
        (("init 304",), "driver-unreadable"),
    ],
)
def test_a_sick_driver_is_named_and_embeddings_run_on_the_cpu(
    env: Foreign, driver: FakeDriver, lines: tuple[str, ...], code: str
) -> None:
    seen = look(env, driver, *lines)
    assert code in codes(seen)
    assert seen["runs_on"] == "cpu"
    found = next(found for found in seen["findings"] if found["code"] == code)
    assert found["fix"]


def test_a_gpu_that_waits_while_the_cpu_is_the_default(env: Foreign, driver: FakeDriver) -> None:
    """Doctor looks anyway, so it says which GPU, what to type, and what that would cost; a choice is left alone."""
    driver.play(*HEALTHY)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("IMPRINT_", "UV_", "CUDA_"))}
    for chosen, waits in (({}, True), ({"IMPRINT_DEVICE": "cpu"}, False)):
        context = Context(env.home, {**kept, **driver.environ(), **chosen})
        seen = diagnose(context, DoctorOptions(venv=env.prefix), host=WithoutHardware(context.environ)).data
        told = {found["code"]: found for found in seen["findings"]}
        assert ("gpu-waits" in told) is waits
        if waits:
            assert told["gpu-waits"]["status"] == "ok"
            assert "NVIDIA RTX A4000" in told["gpu-waits"]["seen"]
            assert "`imprint config set model.device auto`" in told["gpu-waits"]["fix"]


def test_hidden_devices(env: Foreign, driver: FakeDriver) -> None:
    seen = look(env, driver, "init 100", "honour 1", CUDA_VISIBLE_DEVICES="-1")
    assert "gpus-hidden" in codes(seen)
    seen = look(env, driver, "honour 1", *HEALTHY, CUDA_VISIBLE_DEVICES="7")
    assert "gpus-hidden" in codes(seen)


def test_a_driver_that_shows_no_gpu(env: Foreign, driver: FakeDriver) -> None:
    seen = look(env, driver, "init 100")
    assert codes(seen) & {"no-device", "container-no-gpu-runtime"}
    assert seen["runs_on"] == "cpu"


def test_an_old_driver(env: Foreign, driver: FakeDriver) -> None:
    seen = look(env, driver, "version 11040", "nvml_driver 470.82.01", device_line())
    assert "driver-too-old" in codes(seen)
    found = next(found for found in seen["findings"] if found["code"] == "driver-too-old")
    assert "driver" in found["fix"]


def test_a_gpu_that_works_counts_once_it_is_proved(env: Foreign, driver: FakeDriver) -> None:
    """Without a check on record the CPU is used, and doctor says which command changes that."""
    seen = look(env, driver, *HEALTHY)
    assert seen["runs_on"] == "cpu"
    assert codes(seen) == {"provider-not-requested"} or "not-proved" in codes(seen)
    prove(env, driver)
    seen = look(env, driver, *HEALTHY)
    assert codes(seen) == set()
    assert seen["runs_on"] == "gpu"
    assert "ok-gpu" in {found["code"] for found in seen["findings"]}


def test_a_newer_driver_makes_the_check_stale(env: Foreign, driver: FakeDriver) -> None:
    prove(env, driver)
    seen = look(env, driver, "version 13010", "nvml_driver 590.10.01", device_line())
    assert "check-stale" in codes(seen)
    assert seen["runs_on"] == "cpu"
    found = next(found for found in seen["findings"] if found["code"] == "check-stale")
    assert "driver" in found["seen"]


def prove(env: Foreign, driver: FakeDriver) -> None:
    """Record that the check passed here."""
    driver.play(*HEALTHY)
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("IMPRINT_", "UV_", "CUDA_"))}
    context = Context(env.home, {**inherited, **driver.environ(IMPRINT_DEVICE="gpu")})
    machine = survey(WithoutHardware(context.environ), python=Path(env.prefix / "bin" / "python"))
    inputs = planning_inputs.gather(context, target_of(context, env.prefix), machine=machine)
    here = fingerprint_of(inputs.plan, None, machine, inputs.builds)
    env.home.data.mkdir(parents=True, exist_ok=True)
    verdicts.record(env.home, Verdict(inputs.plan.build or "", "ok", None, "2026-11-29T10:00:00Z", here))
