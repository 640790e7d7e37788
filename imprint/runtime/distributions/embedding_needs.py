"""What embedding needs in a target beside ONNX Runtime, whatever the build: its lock, its names, its size."""

from __future__ import annotations

from collections.abc import Iterable

BASE_LOCK = "base.txt"
"""The lock of these packages."""

BASE_DOWNLOAD, BASE_INSTALLED = 5 * 10**6, 14 * 10**6
"""Bytes of what the base lock pins, rounded up from the largest platform's wheels and their RECORDs (2026-11-29)."""

NEEDED = ("tokenizers", "orjson")
"""What embedding imports beside ONNX Runtime and NumPy."""


def lacking(names: Iterable[str]) -> tuple[str, ...]:
    """Return what embedding needs and is not among the installed distributions `names`."""
    there = set(names)
    return tuple(name for name in NEEDED if name not in there)
