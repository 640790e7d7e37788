"""The bounds of what counts as a version."""

from __future__ import annotations

import pytest

from imprint.planning.versions import parse_pair, parse_python, parse_version, python_of_abi

LONG = "9" * 9
PARTS = ".".join("12345678")


def test_the_largest_versions_are_read() -> None:
    assert parse_version(PARTS) == (1, 2, 3, 4, 5, 6, 7, 8)
    assert parse_version(LONG) == (int(LONG),)
    assert parse_pair(f"{LONG}.{LONG}") == parse_python(f"{LONG}.{LONG}") == (int(LONG), int(LONG))
    assert python_of_abi("cp3123t") == (3, 123)


@pytest.mark.parametrize("text", ["", ".", "1.", f"{PARTS}.9", f"{LONG}9", f"1.{LONG}9", "\u0661.\u0662", "1.2a"])
def test_what_is_no_version(text: str) -> None:
    assert parse_version(text) is None
    assert parse_pair(text) is None


@pytest.mark.parametrize("text", ["", "3", f"{LONG}9.1", f"3.{LONG}9", "\u0663.\u0661", "3x1"])
def test_what_is_no_python(text: str) -> None:
    assert parse_python(text) is None
    assert python_of_abi(text) is None


@pytest.mark.parametrize("abi", ["cp31234", "cp3", "cp313d", "cp\u066312", "pp312"])
def test_what_is_no_abi_of_cpython(abi: str) -> None:
    assert python_of_abi(abi) is None
