"""What an operation returns: its payload, of which `data` is the JSON form, and the notices beside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from imprint.errors import ImprintError
from imprint.values import Record

P_co = TypeVar("P_co", bound=Record, covariant=True)


class Notice(Record):
    """A warning or an error that did not stop the operation from answering: stable code, sentence, optional hint."""

    code: str
    message: str
    hint: str | None = None

    @classmethod
    def of(cls, error: ImprintError) -> Notice:
        """Return the notice an error amounts to."""
        return cls(error.specific_code, error.message, error.hint)


class Empty(Record):
    """The payload of a command that was refused before it could answer."""


@dataclass(frozen=True, slots=True)
class Result(Generic[P_co]):
    """The answer of one use case. `payload` is a record, whose fields docs/json.md describes; `ok` is: no errors."""

    payload: P_co
    warnings: tuple[Notice, ...] = ()
    errors: tuple[Notice, ...] = ()

    @property
    def data(self) -> dict[str, Any]:
        """The JSON form of the payload, `data` of the envelope."""
        return self.payload.to_json()

    @property
    def ok(self) -> bool:
        """Whether the operation did what was asked."""
        return not self.errors
