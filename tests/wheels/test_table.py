"""`data/builds.json`: it is written in one form, and each field a wheel can tell is compared."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import pytest

from imprint_dev import table
from imprint_dev.claims import parse_claims
from imprint_dev.layout import BUILDS, LOCKS
from imprint_dev.lockfile import parse_lockfile
from imprint_dev.read_wheels import build_info, spot_of

TEXT = BUILDS.read_text(encoding="utf-8")
PLACES = list(table.places(json.loads(TEXT)))
READING = table.Reading("1.0", "13.0", "2.28", None, ["cp312"], ["8.6"], [], ["libcuda.so.1"], 1, 2)


def document() -> dict[str, object]:
    return {"builds": [{"name": "b", "releases": [{"version": "0", "platforms": [{"os": "linux", "arch": "arm"}]}]}]}


def test_the_table_is_in_the_form_that_is_written() -> None:
    assert table.render(json.loads(TEXT)) == TEXT


def test_what_was_filled_in_no_longer_differs() -> None:
    changed = document()
    (place,) = table.places(changed)
    assert len(table.differences(place, READING)) >= 9
    table.fill(place, READING, "lock")
    assert table.differences(place, READING) == []
    assert (place.build["toolkit"], place.release["version"]) == ("13.0", "1.0")
    (line,) = table.differences(place, replace(READING, native=["8.6", "9.0a"]))
    assert line == 'b 1.0 linux arm: native is ["8.6"], the wheels say ["8.6", "9.0a"]'


@pytest.mark.parametrize("place", PLACES, ids=str)
def test_each_place_is_pinned_and_claimed_by_its_lock(place: table.Place) -> None:
    lock = parse_claims((LOCKS / "platforms.toml").read_text(encoding="utf-8"))[place.lock]
    pins = {one.name: one.version for one in parse_lockfile((LOCKS / f"{lock.name}.txt").read_text(encoding="utf-8"))}
    distribution = "onnxruntime-gpu" if place.build["kind"] == "cuda" else "onnxruntime"
    assert pins[distribution] == place.release["version"]
    spot_of(lock, *place.system)
    pythons = {f"cp{spot.python.replace('.', '')}" for spot in lock.spots if spot.platform.startswith(place.system[0])}
    assert {abi.removesuffix("t") for abi in place.platform["abis"]} <= pythons


@pytest.mark.parametrize("place", PLACES, ids=str)
def test_each_place_has_every_field_and_its_sizes(place: table.Place) -> None:
    for field in asdict(READING):
        assert field in {**place.build, **place.release, **place.platform}
    assert place.platform["installed_bytes"] > place.platform["download_bytes"] > 10_000_000


@pytest.mark.parametrize("place", PLACES, ids=str)
def test_each_place_was_read_from_the_wheels_of_its_lock_as_it_is(place: table.Place) -> None:
    lock = (LOCKS / f"{place.lock}.txt").read_text(encoding="utf-8")
    assert place.platform["read"] == table.stamp(place, lock), "run `python -m imprint_dev read-wheels`"


def test_a_change_by_hand_to_table_or_lock_shows_in_the_stamp() -> None:
    changed = document()
    (place,) = table.places(changed)
    table.fill(place, READING, "lock")
    assert place.platform["read"] == table.stamp(place, "lock")
    assert place.platform["read"] != table.stamp(place, "another lock")
    place.platform["native"] = ["8.6", "9.0a"]
    assert place.platform["read"] != table.stamp(place, "lock")


def test_build_info_is_read_and_never_run() -> None:
    text = "package_name = 'onnxruntime-gpu'\n__version__ = '1.31.1'\ncuda_version = '13.0'\nraise SystemExit\n"
    assert build_info(text)["cuda_version"] == "13.0"


@pytest.mark.parametrize(
    ("one", "other", "latest"),
    [("2.27", "2.28", "2.28"), ("2.34", "2.28", "2.34"), (None, "14", "14"), (None, None, None)],
)
def test_the_later_floor_holds(one: str | None, other: str | None, latest: str | None) -> None:
    assert table.later(one, other) == latest
