"""What an operation returns: the `data` of the JSON envelope and the notices beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from imprint.errors import ImprintError


@dataclass(frozen=True, slots=True)
class Notice:
    """A warning or an error that did not stop the operation from answering: stable code, sentence, optional hint."""

    code: str
    message: str
    hint: str | None = None

    @classmethod
    def of(cls, error: ImprintError) -> Notice:
        """Return the notice an error amounts to."""
        return cls(error.specific_code, error.message, error.hint)


@dataclass(frozen=True, slots=True)
class Result:
    """The answer of one use case. `data` is JSON-shaped and final as docs/json.md describes; `ok` is: no errors."""

    data: Mapping[str, Any]
    warnings: tuple[Notice, ...] = ()
    errors: tuple[Notice, ...] = field(default=())

    @property
    def ok(self) -> bool:
        """Whether the operation did what was asked."""
        return not self.errors
