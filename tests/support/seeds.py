"""Which seeds a test composed of chance tries: its usual ones, or those that somebody wants to see again."""

from __future__ import annotations

import os


def seeds(count: int) -> list[int]:
    """Return the first `count` seeds, or what `TEST_SEED` says: one (`17`), or the first and the last (`3000-3299`)."""
    asked = os.environ.get("TEST_SEED")
    if asked is None:
        return list(range(count))
    first, _, last = asked.partition("-")
    return list(range(int(first), int(last or first) + 1))
