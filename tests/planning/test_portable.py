"""The build for GPUs of every vendor, with a table that has one: `gpu` takes it, `auto` only when it was measured."""

from __future__ import annotations

import pytest

from imprint.planning.builds import PORTABLE, Build, BuildTable, Wheel
from imprint.planning.explain import explain
from imprint.planning.fingerprints import fingerprint_of
from imprint.planning.model import (
    Gpu,
    Installed,
    Libc,
    Machine,
    Nvidia,
    OtherGpu,
    Plan,
    Platform,
    Python,
    Request,
    Verdict,
)
from imprint.planning.rule import decide
from imprint.values import replace
from imprint.words import AskedDevice
from planning.conftest import TABLE

WHEEL = Wheel("0.4.0", "webgpu.txt", None, "linux", "x86_64", (2, 28), None, ("cp312",), (), (), (), 7, 20)
WEBGPU = Build("webgpu", "WebGPU", PORTABLE, None, {}, (WHEEL,))
WITH_WEBGPU: BuildTable = replace(TABLE, builds=(*TABLE.builds, WEBGPU))
RADEON = OtherGpu("amd", "Radeon RX 7600", "discrete", "vulkan", 8176)
MACHINE = Machine(
    platform=Platform("linux", "x86_64", Libc("glibc", "2.35")),
    python=Python("3.12.4"),
    nvidia=Nvidia(status="none"),
    other_gpus=(RADEON,),
)
PORTABLE_CODES = ("gpu-portable",)
GPU = Request("gpu")


def plan(request: Request = GPU, machine: Machine = MACHINE, installed: Installed | None = None) -> Plan:
    return decide(request, machine, WITH_WEBGPU, (), installed)


def test_gpu_takes_the_portable_build() -> None:
    found = plan()
    assert (found.build, found.version, found.lock, found.code) == ("webgpu", "0.4.0", "webgpu.txt", PORTABLE_CODES[0])
    assert found.device is not None
    assert (found.device.index, found.device.name) == (None, "Radeon RX 7600")
    assert found.reason == "Radeon RX 7600 runs the WebGPU build through vulkan"
    assert found.hint is None
    assert [one.code for one in found.refused] == ["vendor-not-nvidia"] * 3 + ["python-no-gpu-wheel"]


@pytest.mark.parametrize(("measured", "build"), [(None, "cpu"), (False, "cpu"), (True, "webgpu")])
def test_auto_takes_it_only_when_it_was_measured_to_be_faster(measured: bool | None, build: str) -> None:
    assert plan(Request("auto", portable_is_faster=measured)).build == build


@pytest.mark.parametrize(
    "request_",
    [Request("gpu", portable_gpu=False), Request("gpu", gpu_device="0"), Request("cpu")],
    ids=["switched-off", "an-nvidia-gpu-by-name", "cpu"],
)
def test_nothing_replaces_what_was_asked_for(request_: Request) -> None:
    assert plan(request_).build == "cpu"


@pytest.mark.parametrize(
    ("gpu", "build"),
    [
        (replace(RADEON, api="d3d12"), "webgpu"),
        (replace(RADEON, api="metal"), "webgpu"),
        (replace(RADEON, api="opengl"), "cpu"),
        (replace(RADEON, api=None), "cpu"),
        (replace(RADEON, kind="software"), "cpu"),
        (replace(RADEON, kind=None), "webgpu"),
    ],
)
def test_hardware_with_a_portable_interface_counts(gpu: OtherGpu, build: str) -> None:
    assert plan(machine=replace(MACHINE, other_gpus=(gpu,))).build == build


def test_a_portable_gpu_needs_no_hint_about_drivers() -> None:
    old = Nvidia("ok", "470.1", gpus=(Gpu(0, "GPU-a", "RTX 3060", "8.6"),))
    found = plan(machine=replace(MACHINE, nvidia=old))
    assert (found.code, found.hint) == ("gpu-portable", None)
    assert found.refused[0].hint is not None


def test_unknown_other_gpus_are_none() -> None:
    assert plan(machine=replace(MACHINE, other_gpus=None)).build == "cpu"


def test_a_platform_without_its_wheel_stays_on_the_cpu() -> None:
    assert plan(machine=replace(MACHINE, python=Python("3.13.0"))).build == "cpu"


def test_the_larger_discrete_gpu_is_taken() -> None:
    small = replace(RADEON, name="small", memory_mib=2048)
    unknown = replace(RADEON, name="of unknown size", memory_mib=None)
    shared = OtherGpu("intel", "shared", "integrated", "vulkan", 65536)
    found = plan(machine=replace(MACHINE, other_gpus=(shared, unknown, small, RADEON)))
    assert found.device is not None
    assert found.device.name == RADEON.name


def test_never_while_provisional() -> None:
    for status in ("timeout", "driver-mismatch"):
        found = plan(machine=replace(MACHINE, nvidia=Nvidia(status=status)))
        assert (found.build, found.provisional) == ("cpu", True)
    kept = plan(installed=Installed("cuda12", "1.26.0"))
    assert (kept.build, kept.provisional) == ("cuda12", True)


def test_an_installed_portable_build_makes_nothing_provisional() -> None:
    found = plan(installed=Installed("webgpu", "0.4.0"))
    assert (found.build, found.provisional, found.pending) == ("webgpu", False, False)


def test_cuda_comes_first_and_its_failed_check_ends_on_the_cpu() -> None:
    gpu = Gpu(0, "GPU-a", "RTX 3060", "8.6")
    machine = replace(MACHINE, nvidia=Nvidia(status="ok", driver="580.65.06", cuda="13.0", gpus=(gpu,)))
    assert plan(machine=machine).build == "cuda13"
    failed = Verdict("cuda13", "failed", "crashed", None, fingerprint_of("cuda13", gpu, machine, WITH_WEBGPU))
    assert decide(GPU, machine, WITH_WEBGPU, (failed,), None).build == "cpu"


def test_it_is_explained_like_the_others() -> None:
    asked: tuple[tuple[AskedDevice, str], ...] = (("gpu", "pass"), ("cpu", "refused"))
    for device, outcome in asked:
        gates = [one for one in explain(Request(device), MACHINE, WITH_WEBGPU, ()) if one.build == "webgpu"]
        assert gates[0].outcome == outcome
    elsewhere = replace(MACHINE, python=Python("3.13.0"))
    gates = list(explain(GPU, elsewhere, WITH_WEBGPU, ()))
    assert [gate.gate for gate in gates if (gate.build, gate.outcome) == ("webgpu", "refused")] == ["python"]
