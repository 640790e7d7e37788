"""Asks an interpreter, this one or another, what it is; another one answers from an isolated child."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from imprint.errors import ImprintError
from imprint.hints import helps
from imprint.last_words import why_it_ended
from imprint.planning.model import Python
from imprint.probing.host import ChildResult, Host

DEADLINE_SECONDS = 20.0
"""A first start from a cold network disk takes seconds; an interpreter that needs more is not usable either."""

OLDEST = (3, 8)
"""The oldest interpreter that is described. Whether a build exists for it is for planning to say."""

CHILD = Path(__file__).with_name("interpreter_child.py")


def ask_interpreter(host: Host, python: Path | None, *, deadline: float = DEADLINE_SECONDS) -> Mapping[str, Any]:
    """Return what the interpreter `python` (None: the one running this) says about itself.

    Raises ImprintError, code `interpreter-gone` when nothing is there (a dangling link included) and
    `folder-denied`, `file-denied`, `noexec-disk` and `process-limit` when its surroundings keep it from starting, and
    `interpreter-unusable` when it does not start, does not answer in time, or is no Python of 3.8 or newer.
    """
    if python is None:
        return host.interpreter()
    path = str(python)
    if not host.exists(path):
        _refuse_blocked(path)
        what = "leads to an interpreter that is gone" if host.is_link(path) else "does not exist"
        raise ImprintError(
            f"`{path}` {what}",
            hint=helps("recreate-or-another"),
            code="interpreter-gone",
        )
    # -S as well as -I: nothing of the environment may run, and a broken .pth file there must not matter here.
    result = host.run([path, "-I", "-S", "-B", str(CHILD)], deadline=deadline)
    if result.not_started is not None:
        _refuse_blocked(path, result.not_started)
    return parse_answer(path, result, deadline)


def _refuse_blocked(path: str, said: str = "") -> None:
    """Raise ImprintError where the way to an interpreter, its disk or a limit of the system keeps it from starting."""
    from imprint.causes.errors import blocked_error, denied_file, outside_error

    number = re.match(r"\[Errno (\d+)\]", said)
    limit = outside_error(OSError(int(number[1]), said)) if number is not None else None
    if limit is not None:
        message = f"`{path}` could not be started: {limit.message}"
        raise ImprintError(message, hint=limit.hint, code=limit.specific_code)
    error = blocked_error(path) or denied_file(path, execute=True)
    if error is not None:
        raise error
    if Path(path).exists() and not Path(path).is_file():
        message = f"`{path}` is not a regular file"
        raise ImprintError(message, hint=helps("recreate-or-another"), code="interpreter-unusable")


def parse_answer(path: str, result: ChildResult, deadline: float) -> Mapping[str, Any]:
    """Return the answer of `interpreter_child.py` as a mapping, or raise ImprintError as `ask_interpreter` says."""
    hint = helps("name-a-python")
    if result.not_started is not None:
        problem = f"could not be started: {result.not_started}"
    elif result.timed_out:
        problem = f"did not answer within {deadline:g} s"
    else:
        try:
            answer = _answer_in(result.stdout)
            found = tuple(int(part) for part in str(answer["version"]).split(".")[:2])
        except (ValueError, TypeError, KeyError):
            why = why_it_ended(result.returncode, result.stderr.strip() or result.stdout)
            problem = f"did not answer as a Python interpreter does ({why})"
        else:
            if found >= OLDEST:
                return answer  # type: ignore[no-any-return]
            problem = f"is Python {answer['version']}; 3.8 is the oldest Imprint can look into"
            hint = helps("newer-python")
    raise ImprintError(f"`{path}` {problem}", hint=hint, code="interpreter-unusable")


def _answer_in(text: str) -> Any:  # noqa: ANN401 - JSON
    """Return the last line of JSON; what a wrapper or a startup file prints comes before it. Raises ValueError."""
    for line in reversed(text.splitlines()):
        if line.startswith("{"):
            return json.loads(line)
    raise ValueError("no line of JSON")


def parse_python(facts: Mapping[str, Any]) -> Python:
    """Return version and ABI: `cp312`, `cp313t`; another implementation's abi is its own name and version."""
    version = facts.get("version")
    if not isinstance(version, str):
        return Python()
    digits = "".join(version.split(".")[:2])
    name = facts.get("implementation")
    if name != "cpython":
        return Python(version, f"{name}{digits}" if name else None)
    return Python(version, f"cp{digits}{'t' if facts.get('free_threaded') else ''}")
