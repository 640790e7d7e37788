"""The table against the wheels themselves: gigabytes, one build and platform after the other, nothing kept."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from imprint_dev import table
from imprint_dev.layout import BUILDS
from imprint_dev.read_wheels import by_system, examine
from imprint_dev.uv import find_uv

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

SYSTEMS = by_system(table.places(json.loads(BUILDS.read_text(encoding="utf-8"))))


@pytest.mark.parametrize("places", [group for _, group in SYSTEMS], ids=["-".join(system) for system, _ in SYSTEMS])
def test_the_table_is_what_the_wheels_say_and_locks_supply_what_they_link(
    places: list[table.Place], tmp_path: Path
) -> None:
    """Where NVIDIA's cuobjdump can read a library, it has to list the same code.

    With a tenth of the counts it reads one build for each platform; the stamps in the table vouch for the others.
    """
    wrong = []
    for place in places[:1] if os.environ.get("TEST_COUNTS") == "tenth" else places:
        examined = examine(find_uv(), place, tmp_path, cross_check=True)
        wrong += table.differences(place, examined.reading)
        wrong += [f"{place}: {name} is linked and not in the lock" for name in examined.not_supplied]
    shutil.rmtree(tmp_path)
    assert wrong == []
