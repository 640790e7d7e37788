"""Plain values: frozen records of named fields that cost next to nothing to define.

A subclass of `Record` has what `@dataclass(frozen=True)` would give it, and type checkers treat it so. It exists
because the plumbing entry point has to start in a few tens of milliseconds: importing `dataclasses`, and the code
that compiles for each class, took longer than all the rest. `dataclasses.replace`, `asdict` and `fields` work on
values; `replace` here does without them.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, ClassVar, Final, Literal, NoReturn, TypeVar, dataclass_transform, get_type_hints

Value = str | int | bool
"""What a setting can be: a word, a number, yes or no."""


SCHEMA: Final = 1
"""The form of documents and files that is written, and the newest that is read."""


class Absent(Enum):
    """The type of `ABSENT`, which a field holds whose key the JSON form then lacks; false, so that `if` passes it."""

    ABSENT = "absent"

    def __bool__(self) -> Literal[False]:
        return False


ABSENT: Final = Absent.ABSENT


class _Described:
    """Describes a class of values to `dataclasses` when that asks, and not before."""

    def __get__(self, _instance: object, owner: type[Record]) -> dict[str, Any]:
        from dataclasses import field, make_dataclass
        from functools import partial

        # A factory because `dataclasses` refuses defaults that it takes for mutable.
        fields = [
            (name, Any, field(default_factory=partial(owner.__dict__.get, name)) if name in owner.__dict__ else field())
            for name in fields_of(owner)
        ]
        described: Any = make_dataclass(owner.__name__, fields)
        owner.__dataclass_fields__ = described.__dataclass_fields__
        return owner.__dataclass_fields__


@dataclass_transform(frozen_default=True)
class Record:
    """A frozen record: its annotated names are its fields, in order; equal when type and all fields are.

    Defaults are shared between instances, so they must be immutable. A subclass of a subclass inherits no fields.
    """

    __dataclass_fields__: ClassVar[dict[str, Any]] = _Described()  # type: ignore[assignment] # a descriptor

    _names: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        cls._names = tuple(cls.__annotations__)

    def __init__(self, *args: object, **named: object) -> None:
        cls = type(self)
        names = fields_of(cls)
        given = dict(zip(names, args, strict=False))
        if len(args) > len(names) or not named.keys().isdisjoint(given):
            raise TypeError(f"{cls.__name__}: a field is given twice, or there are too many")
        given |= named
        # In the order of the fields, so that equal values also look the same.
        complete = {name: given.pop(name) if name in given else _default(cls, name) for name in names}
        if given:
            raise TypeError(f"{cls.__name__} has no field {', '.join(given)}")
        self.__dict__.update(complete)

    def to_json(self) -> dict[str, Any]:
        """Return its JSON form: each field under its name, without the `_` that sets a name apart from a keyword."""
        return {name.rstrip("_"): as_json(item) for name, item in self.__dict__.items() if item is not ABSENT}

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={item!r}" for name, item in self.__dict__.items())
        return f"{type(self).__name__}({shown})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash(tuple(self.__dict__.values()))

    def __setattr__(self, name: str, item: object) -> NoReturn:
        raise AttributeError(f"cannot assign to {name}: {type(self).__name__} is a value")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"cannot delete {name}: {type(self).__name__} is a value")


class Document(Record):
    """A record that stands alone, as a document or a file, and says which form it has."""

    def to_json(self) -> dict[str, Any]:
        """Return the document."""
        return {"schema": SCHEMA, **super().to_json()}


T = TypeVar("T", bound=Record)


def fields_of(cls: type[Record]) -> tuple[str, ...]:
    """Return the names of the fields, in their order."""
    return cls._names


def types_of(cls: type[Record]) -> dict[str, Any]:
    """Return the type of each field, as it is annotated."""
    found = get_type_hints(cls)
    return {name: found[name] for name in fields_of(cls)}


def as_json(value: object) -> Any:  # noqa: ANN401 - JSON
    """Return the JSON form of a value: a record is an object, a sequence is a list."""
    if isinstance(value, Record):
        return value.to_json()
    if isinstance(value, tuple | list):
        return [as_json(item) for item in value]
    if isinstance(value, Mapping):
        return {key: as_json(item) for key, item in value.items()}
    return value


def replace(old: T, **changes: Any) -> T:  # noqa: ANN401 - the fields have types of their own
    """Return a value with some fields changed."""
    return type(old)(**{**old.__dict__, **changes})


def _default(cls: type[Record], name: str) -> object:
    try:
        return cls.__dict__[name]
    except KeyError:
        raise TypeError(f"{cls.__name__} needs {name}") from None
