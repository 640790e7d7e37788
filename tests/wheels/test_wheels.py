"""Choosing wheels: which one a machine takes, which ABIs there are, how old a system may be."""

from __future__ import annotations

import pytest
from packaging.utils import parse_wheel_filename

from imprint_dev.claims import TargetPlatform
from imprint_dev.wheels import Wheel, WheelError, abis_on, choose, floor_on, platform_tags

LINUX = TargetPlatform("linux-x86_64", "x86_64-manylinux_2_28", None, "3.12")
ARM = TargetPlatform("linux-aarch64-2.34", "aarch64-manylinux_2_34", None, "3.12")
WINDOWS = TargetPlatform("windows-x86_64", "x86_64-pc-windows-msvc", None, "3.12")
MAC = TargetPlatform("macos-aarch64", "aarch64-apple-darwin", "14.0", "3.12")


def wheel(filename: str, size: int = 1) -> Wheel:
    return Wheel(filename.split("-", maxsplit=1)[0], filename, size, parse_wheel_filename(filename)[3])


NAMES = [
    "a-1-cp311-cp311-manylinux_2_28_x86_64.whl",
    "a-1-cp312-cp312-manylinux_2_27_x86_64.manylinux_2_28_x86_64.whl",
    "a-1-cp313-cp313t-manylinux_2_28_x86_64.whl",
    "a-1-cp312-cp312-manylinux_2_34_aarch64.whl",
    "a-1-cp312-cp312-win_amd64.whl",
    "a-1-cp312-cp312-macosx_14_0_arm64.whl",
    "b-1-cp38-abi3-manylinux2014_x86_64.whl",
    "b-1-py3-none-any.whl",
]
WHEELS = [wheel(name) for name in NAMES]


@pytest.mark.parametrize(
    ("spot", "a", "b"),
    [(LINUX, NAMES[1], NAMES[6]), (ARM, NAMES[3], NAMES[7]), (WINDOWS, NAMES[4], NAMES[7]), (MAC, NAMES[5], NAMES[7])],
    ids=str,
)
def test_each_machine_takes_its_best_wheel(spot: TargetPlatform, a: str, b: str) -> None:
    chosen = choose(WHEELS, spot)
    assert {name: one.filename for name, one in chosen.items()} == {"a": a, "b": b}


def test_a_machine_without_a_wheel_is_an_error_that_names_the_distribution() -> None:
    old = TargetPlatform("linux-aarch64", "aarch64-manylinux_2_28", None, "3.12")
    with pytest.raises(WheelError, match=r"linux-aarch64, Python 3\.12: a"):
        choose(WHEELS, old)


def test_abis_are_those_of_the_platform_and_of_the_pythons_claimed() -> None:
    assert abis_on(WHEELS, LINUX, ["3.11", "3.12", "3.13"]) == ("cp311", "cp312", "cp313t")
    assert abis_on(WHEELS, LINUX, ["3.12"]) == ("cp312",)
    assert abis_on(WHEELS, WINDOWS, ["3.11", "3.12"]) == ("cp312",)


@pytest.mark.parametrize(
    ("name", "floor"), [(NAMES[1], "2.27"), (NAMES[3], "2.34"), (NAMES[4], None), (NAMES[5], "14")]
)
def test_a_wheel_tells_the_oldest_system_that_takes_it(name: str, floor: str | None) -> None:
    assert floor_on(wheel(name)) == floor


def test_a_machine_accepts_older_systems_wheels_too() -> None:
    tags = platform_tags(LINUX)
    assert tags[0] == "manylinux_2_28_x86_64"
    assert {"manylinux2014_x86_64", "manylinux_2_17_x86_64", "manylinux1_x86_64"} <= set(tags)
    assert "manylinux_2_34_x86_64" not in tags


def test_a_machine_of_unknown_tags_is_an_error() -> None:
    with pytest.raises(WheelError, match="riscv"):
        platform_tags(TargetPlatform("x", "riscv64-unknown-linux", None, "3.12"))
