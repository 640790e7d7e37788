"""What a command hands back to `main`: an operation's result and how a person reads it. Commands print nothing."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from imprint.results import Result


@dataclass(frozen=True, slots=True)
class Answer:
    """The end of one command.

    `text` renders `result.data` for a person (no final newline; empty prints nothing); None prints the data itself as
    JSON without the envelope (`imprint machine`). `exit_code` None: computed from the result's errors. `lines` names
    the keys of the data whose texts are of several lines; every other is shown as one. `hint` is said to a person where
    all went well.
    """

    result: Result
    text: Callable[[Mapping[str, Any]], str] | None
    exit_code: int | None = None
    lines: frozenset[str] = frozenset({"report"})
    hint: str | None = None
