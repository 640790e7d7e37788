"""The table against the wheels themselves: gigabytes, one build and platform after the other, nothing kept."""

from __future__ import annotations

import json

import pytest

from imprint_dev import table
from imprint_dev.layout import BUILDS
from imprint_dev.read_wheels import examine
from imprint_dev.uv import find_uv

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

PLACES = list(table.places(json.loads(BUILDS.read_text(encoding="utf-8"))))


@pytest.mark.parametrize("place", PLACES, ids=str)
def test_the_table_is_what_the_wheels_say_and_the_lock_supplies_what_they_link(place: table.Place) -> None:
    """Where NVIDIA's cuobjdump can read the library, it has to list the same code."""
    examined = examine(find_uv(), place, cross_check=True)
    assert table.differences(place, examined.reading) == []
    assert examined.not_supplied == ()
