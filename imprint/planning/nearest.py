"""For a machine without any build: the nearest machine that has one, as a hint."""

from __future__ import annotations

from collections.abc import Sequence

from imprint.planning.builds import Build, Wheel
from imprint.planning.facts import SYSTEMS, listed
from imprint.planning.gates import ABI, ARCH, LIBC, OS, PYTHON, platform_steps, wheel_for
from imprint.planning.model import Machine
from imprint.planning.versions import Pair, dotted, parse_python
from imprint.values import replace

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
