"""What gate 2 refuses, field by field."""

from __future__ import annotations

import pytest

from imprint.planning.builds import Build
from imprint.planning.driver import Driver
from imprint.planning.gates import fit_of, wheel_for
from imprint.planning.model import Gpu, Libc, Machine, Nvidia, Platform, Python
from imprint.planning.reasons import Refused
from imprint.values import replace
from planning.conftest import TABLE
from planning.test_rule import LINUX

CPU, CUDA13 = TABLE.cpu, TABLE.cuda[0]
PYTHON = Python("3.12.4")


@pytest.mark.parametrize(
    ("build", "platform", "python", "expected"),
    [
        (CPU, Platform("freebsd", "x86_64"), PYTHON, ("os", "os-no-wheel", "freebsd", "")),
        (CUDA13, Platform("macos", "aarch64"), PYTHON, ("os", "os-no-gpu-build", "macOS", "")),
        (
            CPU,
            Platform("macos", "aarch64", os_version="12.7"),
            PYTHON,
            ("os", "os-no-wheel", "macOS 12.7 on aarch64", ""),
        ),
        (CPU, replace(LINUX, arch="riscv64"), PYTHON, ("arch", "arch-no-wheel", "Linux on riscv64", "")),
        (CPU, replace(LINUX, libc=Libc("musl", "1.2")), PYTHON, ("libc", "libc-musl", "", "")),
        (CPU, replace(LINUX, libc=Libc("bionic")), PYTHON, ("libc", "os-no-wheel", "Linux with bionic", "")),
        (CUDA13, replace(LINUX, libc=Libc("bionic")), PYTHON, ("libc", "os-no-gpu-build", "Linux with bionic", "")),
        (CPU, replace(LINUX, libc=Libc("glibc", "2.17")), PYTHON, ("libc", "libc-too-old", "glibc 2.17", "2.28")),
        (CPU, LINUX, Python("3.9.1"), ("python", "python-no-wheel", "Python 3.9.1", "")),
        (CUDA13, LINUX, Python("3.9.1"), ("python", "python-no-gpu-wheel", "Python 3.9.1", "")),
        (CPU, LINUX, Python("3.12.4", "cp312d"), ("abi", "python-abi-no-wheel", "Python 3.12.4 (cp312d)", "")),
    ],
)
def test_what_refuses_a_platform(
    build: Build, platform: Platform, python: Python, expected: tuple[str, str, str, str]
) -> None:
    assert wheel_for(build, Machine(platform=platform, python=python)) == Refused(build, *expected)


def old(*capabilities: str | None) -> Machine:
    gpus = tuple(Gpu(index, f"GPU-{index}", f"card {index}", one) for index, one in enumerate(capabilities))
    return Machine(platform=LINUX, python=PYTHON, nvidia=Nvidia("ok", "450.80.02", gpus=gpus))


@pytest.mark.parametrize(
    ("capabilities", "gpu_device", "named"),
    [
        (("3.7",), "auto", "card 0 (compute capability 3.7)"),
        (("3.7", "3.5"), "auto", "card 0 (compute capability 3.7) or card 1 (compute capability 3.5)"),
        # A newer driver would help these, or might.
        (("3.7", "8.6"), "auto", ""),
        (("12.1",), "auto", ""),
        ((None,), "auto", ""),
        (("3.7",), "GPU-elsewhere", ""),
        ((), "auto", ""),
    ],
)
def test_what_no_driver_would_help_is_named(capabilities: tuple[str | None, ...], gpu_device: str, named: str) -> None:
    seen = old(*capabilities)
    build = TABLE.find("cuda13-1.28")
    assert build is not None
    refused = fit_of(build, seen, gpu_device, Driver((450, 80, 2), (11, 0)))
    assert isinstance(refused, Refused)
    assert (refused.code, refused.uncovered) == ("driver-too-old", named)
