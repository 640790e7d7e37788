"""Records behave as frozen dataclasses do, towards `dataclasses` too."""

from __future__ import annotations

import copy
import dataclasses
import pickle

import pytest

from imprint.planning.model import Cpu, Device, Gpu, Machine
from imprint.values import Record, fields_of, replace


class Point(Record):
    """A record for these tests."""

    x: int
    y: int = 0


def test_positions_names_and_defaults() -> None:
    assert Point(1) == Point(x=1, y=0) == Point(1, 0)
    assert repr(Point(1, y=2)) == "Point(x=1, y=2)"
    assert fields_of(Point) == ("x", "y")


@pytest.mark.parametrize(
    ("args", "named", "said"),
    [
        ((), {}, "Point needs x"),
        ((1, 2, 3), {}, "too many"),
        ((1,), {"x": 1}, "given twice"),
        ((1,), {"z": 1}, "no field z"),
    ],
)
def test_what_a_constructor_refuses(args: tuple[int, ...], named: dict[str, int], said: str) -> None:
    with pytest.raises(TypeError, match=said):
        Point(*args, **named)


def test_equal_means_same_type_and_fields() -> None:
    class Other(Record):
        x: int
        y: int

    assert Point(1, 2) != Point(2, 2)
    assert Point(1, 2) != Other(1, 2)
    assert len({Point(1), Point(1, 0), Point(2)}) == 2


def test_nothing_is_assigned_or_deleted() -> None:
    point = Point(1)
    with pytest.raises(AttributeError, match="cannot assign to x"):
        point.x = 2  # type: ignore[misc]
    with pytest.raises(AttributeError, match="cannot delete x"):
        del point.x
    assert replace(point, y=5) == Point(1, 5)


def test_dataclasses_take_it_for_one_of_theirs() -> None:
    assert [field.name for field in dataclasses.fields(Gpu)] == list(fields_of(Gpu))
    assert dataclasses.asdict(Device(0, None, "one")) == {"index": 0, "uuid": None, "name": "one"}
    assert dataclasses.replace(Machine(), cpu=Cpu(name="x")).cpu == Cpu("x")
    assert dataclasses.asdict(Machine())["environment"] == {}


def test_copies_are_equal() -> None:
    gpu = Gpu(0, "GPU-a")
    assert copy.deepcopy(gpu) == pickle.loads(pickle.dumps(gpu)) == gpu  # noqa: S301 - our own bytes
