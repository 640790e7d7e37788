"""Reads the version strings of drivers, CUDA, Python, libraries and compute capabilities into comparable tuples.

Nothing here raises: text that is no version is None, which every rule treats as unknown.
"""

from __future__ import annotations

import re

Version = tuple[int, ...]
"""A dotted version as numbers, most significant first: `570.133.07` is (570, 133, 7)."""

Pair = tuple[int, int]
"""Major and minor: of CUDA, of Python, of a compute capability."""

# Digits are ASCII and bounded: int() refuses text of thousands of digits, and other scripts' digits are no version.
_DOTTED = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9}){0,7}")
_PAIR = re.compile(r"([0-9]{1,9})\.([0-9]{1,9})")
_PYTHON = re.compile(r"([0-9]{1,9})\.([0-9]{1,9})(?![0-9])")
_ABI = re.compile(r"cp([0-9])([0-9]{1,3})(t?)")


def parse_version(text: str | None) -> Version | None:
    """Return a dotted version such as `580.65.06`, `2.35` or `580`; anything else is None."""
    if text is None or not _DOTTED.fullmatch(text):
        return None
    return tuple(int(part) for part in text.split("."))


def parse_pair(text: str | None) -> Pair | None:
    """Return exactly `MAJOR.MINOR`, as CUDA versions and compute capabilities are written; anything else is None."""
    match = _PAIR.fullmatch(text) if text is not None else None
    return (int(match[1]), int(match[2])) if match else None


def parse_cuda(text: str | None) -> Pair | None:
    """Return the major and minor of a CUDA version; a bare major counts as its minor 0, further parts are ignored."""
    version = parse_version(text)
    if version is None:
        return None
    return (version[0], version[1] if len(version) > 1 else 0)


def parse_python(text: str | None) -> Pair | None:
    """Return the minor version of an interpreter, also of a pre-release: `3.15.0a1` is (3, 15)."""
    match = _PYTHON.match(text) if text is not None else None
    return (int(match[1]), int(match[2])) if match else None


def python_of_abi(abi: str) -> Pair | None:
    """Return the Python version that a CPython ABI tag belongs to: `cp313t` is (3, 13)."""
    match = _ABI.fullmatch(abi)
    return (int(match[1]), int(match[2])) if match else None


def standard_abi(python: Pair) -> str:
    """Return the ABI tag of a version's standard interpreter: (3, 12) is `cp312`."""
    return f"cp{python[0]}{python[1]}"


def dotted(version: Version) -> str:
    """Write a version the way people do: (12, 8) is `12.8`."""
    return ".".join(str(part) for part in version)
