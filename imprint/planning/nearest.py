"""For a machine without any build: the nearest machine that has one, as a hint."""

from __future__ import annotations

from collections.abc import Sequence

from imprint.planning.builds import Build, Wheel
from imprint.planning.facts import SYSTEMS, listed
from imprint.planning.gates import ABI, ARCH, LIBC, OS, PYTHON, platform_steps
from imprint.planning.model import Machine
from imprint.planning.versions import Pair, dotted, parse_python


def nearest_supported(build: Build, machine: Machine) -> str:
    """Return what would have to be different on a machine that a build has no wheel for.

    Every change that is needed is named, each as small as the wheels allow.
    """
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
        return f"an interpreter for {listed(sorted({wheel.arch for wheel in wheels}), 'or')}"
    if gate == LIBC:
        return f"glibc {dotted(min(wheel.libc for wheel in wheels if wheel.libc is not None))} or newer"
    if gate == PYTHON:
        return _pythons(wheels, machine)
    python = parse_python(machine.python.version)
    return f"the standard interpreter of Python {dotted(python)}" if python else "a standard interpreter"


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
