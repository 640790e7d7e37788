"""The table of builds with known locks, and how many machines the properties are tried on.

`TEST_COUNTS=fast` (the default), `tenth` or `full` chooses the number of examples of every property here.
"""

from __future__ import annotations

import json
import os

import pytest
from hypothesis import HealthCheck, settings

from architecture.tree import ROOT
from imprint.planning.builds import BuildTable, parse_builds

COUNTS = {"fast": 60, "tenth": 300, "full": 3000}

for _name, _count in COUNTS.items():
    settings.register_profile(
        f"planning-{_name}",
        max_examples=_count,
        deadline=None,
        database=None,
        derandomize=_name != "full",
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )
PROFILE = settings.get_profile(f"planning-{os.environ.get('TEST_COUNTS', 'fast')}")

CHECK = "check-1"
LOCKS = ("cpu.txt", "cpu-1.23.txt", "cuda13.txt", "cuda13-1.28.txt", "cuda12.txt", "cuda12-py310.txt")
DOCUMENT = json.loads((ROOT / "data" / "builds.json").read_text("utf-8"))
TABLE = parse_builds(DOCUMENT, {name: f"digest of {name}" for name in LOCKS}, CHECK)


@pytest.fixture(scope="session")
def table() -> BuildTable:
    """Return the shipped table, with a digest for every lock."""
    return TABLE
