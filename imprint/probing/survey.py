"""Surveys a machine: everything a plan depends on, read through one Host, decided on elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from imprint import envvars
from imprint.planning.model import Machine
from imprint.probing.host import Host
from imprint.probing.interpreter import ask_interpreter, parse_python
from imprint.probing.nvidia import DEADLINES_SECONDS, survey_nvidia
from imprint.probing.processor import survey_cpu
from imprint.probing.system import survey_platform

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


def survey(
    host: Host,
    *,
    python: Path | None = None,
    hardware: bool = True,
    deadlines: tuple[float, ...] = DEADLINES_SECONDS,
) -> Machine:
    """Return the machine as the target's interpreter `python` (None: this one) finds it.

    With `hardware` false nothing about GPUs is read: no driver library, nothing of /proc/driver, no /sys/class/drm;
    the GPU fields stay unknown. `deadlines` are the seconds the NVIDIA probe gets, first and on its retry.
    Raises ImprintError only for an interpreter that cannot be asked; every other trouble is a fact in the answer.
    """
    facts = ask_interpreter(host, python)
    platform = survey_platform(host, facts)
    cpu = survey_cpu(host, platform.os)
    machine = Machine(
        platform=platform,
        python=parse_python(facts),
        cpu=cpu,
        environment=environment_of(host.environ),
    )
    if not hardware:
        return machine
    return Machine(
        platform=platform,
        python=machine.python,
        cpu=cpu,
        nvidia=survey_nvidia(host, platform, deadlines=deadlines),
        environment=machine.environment,
    )


def environment_of(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the part of an environment that planning reads."""
    return {name: environ[name] for name in ENVIRONMENT if name in environ}
