"""The nearest supported choice for builds with other wheels than today's."""

from __future__ import annotations

import pytest

from imprint.planning.builds import Wheel
from imprint.planning.hints import nearest_supported
from imprint.planning.model import Machine, Platform, Python
from imprint.values import replace
from planning.conftest import TABLE

WHEEL = replace(TABLE.cpu.wheels[0], os="plan9", libc=None, os_version=None)
ELSEWHERE = Machine(platform=Platform("freebsd", WHEEL.arch), python=Python("3.12.4"))


@pytest.mark.parametrize(
    ("wheels", "said"),
    [
        ((WHEEL,), "plan9"),
        ((replace(WHEEL, os="linux"),), "Linux"),
        ((replace(WHEEL, os_version=(4, 1)), replace(WHEEL, os_version=(4,))), "plan9 4 or newer"),
        ((WHEEL, replace(WHEEL, os="linux")), "plan9 or Linux"),
    ],
)
def test_systems_are_named_as_the_wheels_have_them(wheels: tuple[Wheel, ...], said: str) -> None:
    build = replace(TABLE.cpu, wheels=wheels)
    assert nearest_supported(build, ELSEWHERE) == f"the nearest supported choice is {said}"


def test_the_nearest_python_is_of_the_same_major_version() -> None:
    build = replace(TABLE.cpu, wheels=(replace(WHEEL, os="freebsd", abis=("cp27", "cp312")),))
    found = nearest_supported(build, replace(ELSEWHERE, python=Python("3.1.5")))
    assert found == "the nearest supported choice is Python 3.12"
