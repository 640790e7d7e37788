"""Finds `locks/` and `data/`: the one place that knows whether Imprint runs from a wheel or from a checkout."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def _folder(name: str) -> Path:
    packaged = _PACKAGE / f"_{name}"
    # A wheel carries the folder inside the package; a checkout and an editable install have it beside the package.
    return packaged if packaged.is_dir() else _PACKAGE.parent / name


def lock_path(name: str) -> Path:
    """Return the path of a hashed requirement file, for example `lock_path("cpu.txt")`."""
    return _folder("locks") / name


def data_path(name: str) -> Path:
    """Return the path of a reviewed data file, for example `data_path("builds.json")`."""
    return _folder("data") / name
