"""Hints: the smallest change after which the same rule would plan a GPU, or anything, found by running it again.

Nothing here is attached to a code: a change that would not help is never named, and then there is no hint.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from imprint.planning import facts
from imprint.planning.builds import NATIVE, Build, BuildTable, Wheel
from imprint.planning.driver import Driver, uses_windows_driver
from imprint.planning.facts import SYSTEMS, listed
from imprint.planning.gates import (
    ABI,
    ARCH,
    CHECK,
    LIBC,
    OS,
    PYTHON,
    Fit,
    capability,
    platform_steps,
    preference,
    wheel_for,
)
from imprint.planning.model import Machine
from imprint.planning.selection import Question, Selection, select
from imprint.planning.versions import Pair, Version, dotted, parse_python, parse_version
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
        if chosen.how == NATIVE:
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
    gives = "native code" if chosen.how == NATIVE else "code the driver compiles first"
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


# --- for a machine without any build: the nearest that has one -------------------------------------------------------

_NARROW = {
    **dict.fromkeys(("x86", "i386", "i486", "i586", "i686"), "x86_64"),
    **dict.fromkeys(("armv7l", "armv7", "armv8l"), "aarch64"),
}
"""32-bit architectures whose processors, for most of them, also run this 64-bit one."""


def nearest_supported(build: Build, machine: Machine) -> str:
    """Return what would have to be different on a machine that a build has no wheel for.

    Every change that is needed is named, each as small as the wheels allow.
    """
    if _is_translated(machine):
        native = replace(machine, platform=replace(machine.platform, arch="aarch64"))
        if isinstance(wheel_for(build, native), Wheel):
            return "the nearest supported choice is a native (arm64) Python: this one runs under Rosetta"
    wheels: Sequence[Wheel] = build.wheels
    wrong: list[str] = []
    for step in platform_steps(build, machine):
        # Of another Python the standard ABI is meant, and another system brings its own C library.
        if (step.gate == ABI and PYTHON in wrong) or (step.gate == LIBC and OS in wrong):
            continue
        left = [wheel for wheel in wheels if step.passes(wheel)]
        if not left:
            wrong.append(step.gate)
        wheels = left or wheels
    phrases = [_phrase(gate, wheels, machine) for gate in dict.fromkeys(wrong)]
    return f"the nearest supported choice is {listed(phrases)}"


def _nearest(wheels: Sequence[Wheel], machine: Machine) -> Pair | None:
    version = parse_python(machine.python.version)
    if version is None:
        return None
    known = {python for wheel in wheels for python in wheel.pythons}
    return min(known, key=lambda python: (abs(python[0] - version[0]), abs(python[1] - version[1]), python))


def _phrase(gate: str, wheels: Sequence[Wheel], machine: Machine) -> str:
    if gate == OS:
        return _systems(wheels)
    if gate == ARCH:
        return _archs(wheels, machine)
    if gate == LIBC:
        return f"glibc {dotted(min(wheel.libc for wheel in wheels if wheel.libc is not None))} or newer"
    if gate == PYTHON:
        return _pythons(wheels, machine)
    python = parse_python(machine.python.version)
    return f"the standard interpreter of Python {dotted(python)}" if python else "a standard interpreter"


def _is_translated(machine: Machine) -> bool:
    """Whether an Intel interpreter runs on Apple silicon: only there the processor's name begins so."""
    platform = machine.platform
    return platform.os == "macos" and platform.arch == "x86_64" and "Apple" in (machine.cpu.name or "")


def _archs(wheels: Sequence[Wheel], machine: Machine) -> str:
    known, arch = {wheel.arch for wheel in wheels}, machine.platform.arch
    wide = _NARROW.get(arch or "")
    if wide in known:
        # On Windows a 32-bit Python is a mistake at the download; elsewhere the whole system is narrow.
        return f"a 64-bit ({wide}) {'Python' if machine.platform.os == 'windows' else 'system and Python'}"
    names = listed(sorted(known), "or")
    return f"an interpreter for {names}" if arch is None else f"an {names} machine"


def _systems(wheels: Sequence[Wheel]) -> str:
    names = dict.fromkeys(wheel.os for wheel in wheels)
    if len(names) > 1:
        return listed([SYSTEMS.get(name, name) for name in names], "or")
    floors = [wheel.os_version for wheel in wheels if wheel.os_version is not None]
    system = SYSTEMS.get(wheels[0].os, wheels[0].os)
    return f"{system} {dotted(min(floors))} or newer" if floors else system


def _pythons(wheels: Sequence[Wheel], machine: Machine) -> str:
    nearest = _nearest(wheels, machine)
    if nearest is not None:
        return f"Python {dotted(nearest)}"
    known = sorted({python for wheel in wheels for python in wheel.pythons})
    return f"Python {dotted(known[0])} to {dotted(known[-1])}"
