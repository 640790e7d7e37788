"""Writes a number of bytes as people read it: the one way in which commands, plans and errors name sizes. Pure."""

from __future__ import annotations


def in_units(count: int | None) -> str:
    """Return a size in decimal units: `1.4 GB`, `133 MB`; `unknown` for None."""
    if count is None:
        return "unknown"
    for unit, size in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.1f} {unit}" if count < 10 * size else f"{count / size:.0f} {unit}"
    return f"{count} B"
