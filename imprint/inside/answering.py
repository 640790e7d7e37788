"""How a program in here answers: facts, told again as a whole before each step, where no library can write.

A process that ends early has said by then how far it came and what it knew.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any, NoReturn


class Answer:
    """The facts of one run. `at` names the step that is about to begin, None once all is said (`complete`)."""

    def __init__(self, **facts: Any) -> None:  # noqa: ANN401 - JSON
        """Begin an answer; from now on whatever libraries print to stdout goes to stderr."""
        self.facts = facts
        self._stdout = os.dup(1)
        os.dup2(2, 1)
        sys.stdout = sys.stderr

    def tell(self, at: str | None = None, **facts: Any) -> None:  # noqa: ANN401 - JSON; Python 3.9
        """Add facts and write all of them: to the file that the last argument names, else to what stdout was."""
        self.facts.update(facts)
        line = ("\n" + json.dumps({**self.facts, "at": at, "complete": at is None}) + "\n").encode("ascii")
        try:
            with Path(sys.argv[2]).open("ab") as file:
                file.write(line)
        except (IndexError, OSError):
            os.write(self._stdout, line)

    def end(self, **facts: Any) -> NoReturn:  # noqa: ANN401 - JSON
        """Tell the rest and leave: some providers crash in their destructors, and that is not what was asked."""
        self.tell(None, **facts)
        sys.stderr.flush()
        os._exit(0)


def of_error(problem: BaseException, limit: int = 4000) -> str:
    """Return an exception as text; where it is long, the reason stands last."""
    return f"{type(problem).__name__}: {problem}"[-limit:]
