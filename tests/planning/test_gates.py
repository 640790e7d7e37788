"""What gate 2 refuses, field by field."""

from __future__ import annotations

import pytest

from imprint.planning.builds import Build
from imprint.planning.gates import wheel_for
from imprint.planning.model import Libc, Machine, Platform, Python
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
