"""Hints: the smallest change after which the same rule would plan a GPU, found by running the rule again.

Nothing here is attached to a code: a change that would not help is never named, and then there is no hint.
"""

from __future__ import annotations

from collections.abc import Iterator

from imprint.planning import coverage, facts
from imprint.planning.builds import BuildTable
from imprint.planning.driver import Driver, uses_windows_driver
from imprint.planning.gates import CHECK, Fit, capability, preference
from imprint.planning.selection import Question, Selection, select
from imprint.planning.versions import Version, parse_version
from imprint.values import replace


def plan_hint(refused: Selection) -> str | None:
    """Return what would put a plan that chose no build on a GPU, or None when nothing that is known here would."""
    driver, other = driver_hint(refused), _device_hint(refused.question)
    # After a failed check another GPU is the nearer change; otherwise a driver is.
    return (other or driver) if refused.decisive[0].gate == CHECK else (driver or other)


def driver_hint(refused: Selection, build: str | None = None) -> str | None:
    """Return the lowest newer driver at which the rule would plan a GPU, with native code if any driver gives that.

    With `build`, the lowest at which it would plan that build.
    """
    question, fallback = refused.question, None
    for driver in _newer_drivers(refused):
        nvidia = replace(question.machine.nvidia, driver=driver, cuda=None)
        chosen = select(replace(question, machine=replace(question.machine, nvidia=nvidia))).chosen
        if chosen is None or build not in {None, chosen.build.name}:
            continue
        if chosen.how == coverage.NATIVE:
            return _newer(driver, chosen, question.builds)
        fallback = fallback or _newer(driver, chosen, question.builds)
    return fallback


def _newer_drivers(refused: Selection) -> Iterator[str]:
    present, builds = refused.driver, refused.question.builds
    system = "windows" if uses_windows_driver(refused.question.machine) else "linux"
    for text in builds.hint_drivers[system]:
        version = parse_version(text)
        if version is not None and isinstance(present, Driver) and _is_newer(version, present, builds):
            yield text


def _is_newer(version: Version, present: Driver, builds: BuildTable) -> bool:
    if present.version is not None:
        return version > present.version
    cuda = builds.cuda_of_driver(version)
    return cuda is not None and present.cuda is not None and cuda > present.cuda


def _newer(driver: str, chosen: Fit, builds: BuildTable) -> str:
    known = capability(chosen.gpu)
    last = f", up to R{builds.last_branch}" if known is not None and known < builds.last_below else ""
    gives = "native code" if chosen.how == coverage.NATIVE else "code the driver compiles first"
    return f"install NVIDIA driver {driver} or newer{last}: the {chosen.build.title} build then runs with {gives}"


def _device_hint(question: Question) -> str | None:
    choices = []
    for gpu in sorted(question.machine.nvidia.gpus or (), key=preference):
        name = str(gpu.index) if gpu.index is not None else gpu.uuid
        if name is None or name == question.request.gpu_device:
            continue
        if select(replace(question, request=replace(question.request, gpu_device=name))).chosen is not None:
            uuid = "" if gpu.uuid is None or name == gpu.uuid else f", {facts.on_one_line(gpu.uuid)}"
            choices.append(f"`--gpu-device {facts.on_one_line(name)}` ({facts.gpu_name(gpu)}{uuid})")
    return f"choose another GPU: {facts.listed(choices, 'or')}" if choices else None
