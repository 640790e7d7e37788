"""Gate 2 and what is said about it: platforms, C libraries, interpreters, and the nearest that is supported."""

from __future__ import annotations

import pytest

from imprint.planning.model import Cpu, Gpu, Libc, Machine, Nvidia, Platform, Python, Request
from imprint.planning.rule import decide
from imprint.values import replace
from planning.conftest import TABLE
from planning.test_rule import AMPERE, AUTO, LINUX, machine


@pytest.mark.parametrize(
    ("platform", "python", "hint"),
    [
        (Platform("freebsd", "x86_64", Libc("musl")), Python("3.12.4"), "Linux, Windows or macOS"),
        (
            Platform(None, None),
            Python(None),
            "Linux, Windows or macOS, an interpreter for aarch64 or x86_64 and Python 3.10 to 3.14",
        ),
        (Platform("windows", "x86"), Python("3.12.4"), "a 64-bit (x86_64) Python"),
        (Platform("windows", "i686"), Python("3.12.4"), "a 64-bit (x86_64) Python"),
        (Platform("linux", "i686"), Python("3.12.4"), "a 64-bit (x86_64) system and Python"),
        (Platform("linux", "armv7l"), Python("3.12.4"), "a 64-bit (aarch64) system and Python"),
        (Platform("linux", "ppc64le"), Python("3.12.4"), "an aarch64 or x86_64 machine"),
        (
            Platform("linux", "riscv64", Libc("musl")),
            Python("3.15.0", "cp315t"),
            "an aarch64 or x86_64 machine, glibc 2.28 or newer and Python 3.14",
        ),
        (Platform("macos", "x86_64", os_version="12.7"), Python("3.12.4"), "macOS 13 or newer"),
        (Platform("macos", "aarch64", os_version="13.6"), Python("3.9.1"), "macOS 14 or newer and Python 3.10"),
        (Platform("linux", "x86_64", Libc("glibc", "2.17")), Python("3.12.4"), "glibc 2.28 or newer"),
        (Platform("linux", "aarch64", Libc("bionic")), Python("3.12.4"), "glibc 2.28 or newer"),
        (Platform("macos", "x86_64"), Python(None), "Python 3.10 to 3.13"),
        (Platform("macos", "x86_64"), Python("3.14.0", "cp314t"), "Python 3.13"),
        (Platform("windows", "x86_64"), Python("3.13.2", "cp313d"), "the standard interpreter of Python 3.13"),
        (Platform("windows", "aarch64"), Python("3.10.1"), "Python 3.11"),
    ],
)
def test_the_nearest_supported_choice_names_every_change_that_is_needed(
    platform: Platform, python: Python, hint: str
) -> None:
    plan = decide(Request("cpu"), Machine(platform=platform, python=python), TABLE, (), None)
    assert plan.hint == f"the nearest supported choice is {hint}"


@pytest.mark.parametrize(
    ("name", "version", "hint"),
    [
        ("VirtualApple @ 2.50GHz", "3.14.0", "a native (arm64) Python: this one runs under Rosetta"),
        ("Apple M2", "3.15.0", "Python 3.13"),
        ("Intel(R) Core(TM) i7-1068NG7", "3.14.0", "Python 3.13"),
    ],
)
def test_an_intel_python_on_apple_silicon_is_told_apart(name: str, version: str, hint: str) -> None:
    mac = Machine(platform=Platform("macos", "x86_64", os_version="15.1"), python=Python(version), cpu=Cpu(name))
    plan = decide(Request("cpu"), mac, TABLE, (), None)
    assert plan.hint == f"the nearest supported choice is {hint}"


@pytest.mark.parametrize(
    "platform",
    [
        replace(LINUX, libc=Libc(None, "2.17")),
        replace(LINUX, libc=Libc("glibc", None)),
        replace(LINUX, libc=Libc("glibc", "of a vendor")),
        replace(LINUX, os_version="3.10"),
        Platform("windows", "x86_64", Libc("glibc", "2.17"), os_version="6.1"),
        Platform("windows", "x86_64", Libc("musl", "1.2")),
        Platform("windows", "x86_64", Libc("ucrt", "10")),
    ],
)
def test_what_is_unknown_or_beside_the_point_counts_as_sufficient(platform: Platform) -> None:
    assert decide(AUTO, replace(machine(AMPERE), platform=platform), TABLE, (), None).build == "cuda13"


@pytest.mark.parametrize("version", ["14", "14.0", None])
def test_exactly_macos_14_is_enough(version: str | None) -> None:
    apple = Machine(platform=Platform("macos", "aarch64", os_version=version), python=Python("3.12.4"))
    assert decide(AUTO, apple, TABLE, (), None).build == "cpu"


def test_platform_reasons_name_what_was_seen_and_needed() -> None:
    arm = replace(machine(Gpu(0, "GPU-l", "L4", "8.9")), platform=Platform("linux", "aarch64", Libc("glibc", "2.31")))
    plan = decide(AUTO, arm, TABLE, (), None)
    assert plan.reason == "glibc 2.31 is older than the CUDA 13 build needs (2.34)"
    assert plan.refused[1].reason == "there is no CUDA 13 (1.28) build for Linux on aarch64"
    jetson = replace(arm, platform=replace(arm.platform, jetson=True), nvidia=Nvidia(None))
    assert decide(AUTO, jetson, TABLE, (), None).reason.startswith("the GPU here is a Jetson GPU")
    free = replace(machine(AMPERE), platform=Platform("windows", "x86_64"), python=Python("3.13.2", "cp313t"))
    plan = decide(AUTO, free, TABLE, (), None)
    assert plan.code == "python-abi-no-wheel"
    assert plan.refused[0].code == "python-no-gpu-wheel"
    assert plan.refused[0].reason == "the CUDA 13 build has no wheel for Python 3.13.2 (cp313t, free-threaded)"
