"""Surveys a machine: everything a plan depends on, read through one Host, decided on elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from imprint import envvars
from imprint.planning.model import Cpu, Machine
from imprint.probing.host import Host
from imprint.probing.interpreter import ask_interpreter, parse_python
from imprint.probing.system import survey_platform
from imprint.values import replace

ENVIRONMENT = (
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "CUDA_DISABLE_PTX_JIT",
    "CUDA_FORCE_PTX_JIT",
    "NVIDIA_VISIBLE_DEVICES",
    "NVIDIA_DRIVER_CAPABILITIES",
    envvars.ALLOW_SOFTWARE_GPU,
)
"""The variables that change which GPUs a process here sees, or whether a build can run on them."""


DEADLINES_SECONDS = (10.0, 30.0)
"""The NVIDIA probe's time, and that of the one retry after it was used up: a first start of the driver can be slow."""


def survey(
    host: Host,
    *,
    python: Path | None = None,
    hardware: bool = True,
    processor: bool = True,
    deadlines: tuple[float, ...] = DEADLINES_SECONDS,
) -> Machine:
    """Return the machine as the target's interpreter `python` (None: this one) finds it.

    With `hardware` false nothing about GPUs is read: no driver library, nothing of /proc/driver, no /sys/class/drm;
    the GPU fields stay unknown. With `processor` false `cpu` stays unknown; no plan depends on it. `deadlines` are the
    seconds the NVIDIA probe gets, first and on its retry. Raises ImprintError only for an interpreter that
    cannot be asked; every other trouble is a fact in the answer.
    """
    facts = ask_interpreter(host, python)
    platform = survey_platform(host, facts)
    machine = Machine(
        platform=platform,
        python=parse_python(facts),
        cpu=_processor(host, platform.os) if processor else Cpu(),
        environment=environment_of(host.environ),
    )
    return _with_hardware(host, machine, deadlines) if hardware else machine


def _processor(host: Host, os: str | None) -> Cpu:
    from imprint.probing.processor import survey_cpu

    return survey_cpu(host, os)


def _with_hardware(host: Host, machine: Machine, deadlines: tuple[float, ...]) -> Machine:
    # A survey for the CPU alone need not load what asks for GPUs.
    from imprint.probing.nvidia import is_jetson, survey_nvidia
    from imprint.probing.other_gpus import survey_other_gpus, survey_rocm, survey_vulkan

    platform = machine.platform
    nvidia = survey_nvidia(host, platform, deadlines=deadlines)
    if platform.os == "linux":
        vulkan = survey_vulkan(host, platform.arch)
        return replace(
            machine,
            platform=replace(platform, jetson=is_jetson(host, platform, nvidia)),
            nvidia=nvidia,
            other_gpus=survey_other_gpus(host, vulkan),
            vulkan=vulkan,
            rocm=survey_rocm(host),
        )
    if platform.os not in ("windows", "macos"):
        return replace(machine, nvidia=nvidia)
    from imprint.probing.foreign_systems import survey_macos, survey_windows

    ask = survey_windows if platform.os == "windows" else survey_macos
    seen = ask(host, machine.cpu)
    if nvidia.status == "none" and seen.nvidia_gpus:
        notice = f"{seen.nvidia_gpus} NVIDIA GPU(s) on the PCI bus, but no nvcuda.dll"
        nvidia = replace(nvidia, status="driver-missing", error=notice)
    return replace(
        machine,
        platform=replace(platform, jetson=False),
        nvidia=nvidia,
        cpu=seen.cpu,
        other_gpus=seen.other_gpus,
    )


def environment_of(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the part of an environment that planning reads."""
    return {name: environ[name] for name in ENVIRONMENT if name in environ}
