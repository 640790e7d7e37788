"""What a command hands back to `main`: an operation's result and how a person reads it. Commands print nothing."""

from collections.abc import Callable
from typing import Any, TypeVar

from imprint.results import Result
from imprint.values import Record

P = TypeVar("P", bound=Record)


class Answer:
    """The end of one command.

    `text` renders the payload for a person (no final newline; empty prints nothing); None prints it as JSON without
    the envelope (`imprint machine`). `exit_code` None: computed from the result's errors. `hint` is said to a person
    where all went well.
    """

    def __init__(
        self, result: Result[P], text: Callable[[P], str] | None, exit_code: int | None = None, hint: str | None = None
    ) -> None:
        self.result: Result[Any] = result
        self.text: Callable[[Any], str] | None = text
        self.exit_code = exit_code
        self.hint = hint
