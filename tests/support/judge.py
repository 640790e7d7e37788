"""Judges how a run over somebody's environment ended: exactly what was planned, or a refusal and nothing changed."""

from __future__ import annotations

import signal
import traceback
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from imprint.errors import ImprintError
from imprint.results import Result
from support.handmade import Handmade, expected
from support.sandbox import Entry, differences

SECONDS = 30
"""No run takes that long unless it hangs."""

OURS = ("onnxruntime", "nvidia", "numpy", "packaging", "flatbuffers", "protobuf", "tokenizers", "~")
"""How the names begin of what a run may bring, replace or remove in a folder of packages."""


class HangError(BaseException):
    """A run did not end; not an Exception, so that nothing takes it for one of its own."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a run ended: `done`, the code of a refusal, `bug` or `hang`; what it said, and what is wrong with that."""

    how: str
    said: str = ""
    problem: str | None = None
    result: Result[Any] | None = None

    @property
    def warnings(self) -> list[str]:
        """What the run warned of, a sentence each."""
        return [warning.message for warning in self.result.warnings] if self.result is not None else []


def run(made: Handmade, operation: str) -> Ending:
    """Run `cpu`, `cuda13`, `cuda12` (a setup for it), the same with ` repair`, or `prune`."""
    build, _, repair = operation.partition(" ")
    made.events.clear()
    try:
        with deadline():
            result: Result[Any] = made.prune() if build == "prune" else made.setup(build, repair=bool(repair))
    except ImprintError as error:
        problem = None if error.hint and error.message else f"there is no hint: {error.message}"
        return Ending(error.specific_code, error.message, problem)
    except HangError:
        return Ending("hang", "", f"it did not finish within {SECONDS} s")
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        ours = [frame for frame in frames if "/imprint/" in frame.filename][-2:]
        where = " < ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in reversed(ours))
        told = f"exit 70: {type(error).__name__}: {str(error)[:200]} ({where})"
        return Ending("bug", told, told)
    if not result.ok:
        return Ending(result.errors[0].code, result.errors[0].message)
    return Ending("done", "", None, result)


def judge(
    made: Handmade, operation: str, guarded: Mapping[str, Entry], canaries: Mapping[str, Entry]
) -> tuple[Ending, list[str]]:
    """Run an operation twice; return how it ended first and all that is wrong with it.

    `guarded` is the part of the environment that is its owner's, as it has to be afterwards, `canaries` what lies
    round it.
    """
    before = made.environment()
    loads_before = made.loads() if operation == "prune" else ""
    ended = run(made, operation)
    after = made.environment()
    problems = [ended.problem] if ended.problem is not None else []
    problems += few(f"canary {line}" for line in differences(canaries, made.canaries()))
    if ended.how != "done":
        changed = few(line for line in differences(before, after) if not line.startswith("gone: .imprint-"))
        problems += [f"refused ({ended.how}: {ended.said[:300]}), yet {line}" for line in changed]
        again = run(made, operation) if ended.how not in {"hang", "bug"} else ended
        if again.how != ended.how:
            problems.append(f"refused ({ended.how}: {ended.said[:200]}) and then {again.how}: {again.said[:200]}")
        return ended, problems
    kept = {path: after[path] for path in guarded if path in after}
    problems += few(f"the owner's {line}" for line in differences(guarded, kept))
    problems += few(f"{line}, not ours" for line in differences(before, after) if not may_change(made, line))
    problems += few(f"{path} shares its content: {entry}" for path, entry in linked(before, after))
    planned = operation.partition(" ")[0]
    loads = made.loads()
    if loads != (expected(planned) if planned != "prune" else loads_before):
        problems.append(f"it loads {loads}")
    again = run(made, planned)
    if again.how != "done":
        problems.append(f"done, and then {again.how}: {again.said[:200]}")
    elif again.result is not None and again.result.data["changes"]:
        problems.append(f"the second run says it changed {again.result.data['changes']}")
    problems += few(f"the second run changed {line}" for line in differences(after, made.environment()))
    return ended, problems


def few(problems: Iterable[str], count: int = 3) -> list[str]:
    """Return the first of many problems of one kind."""
    found = list(problems)
    return found[:count] + ([f"… and {len(found) - count} more such"] if len(found) > count else [])


def may_change(made: Handmade, line: str) -> bool:
    """Whether a line of `differences` is about something that a run may change: builds and what belongs to them."""
    inside = made.packages.relative_to(made.prefix).as_posix() + "/"
    path = line.split(": ")[1]
    if not path.startswith(inside):
        return path.startswith(".imprint-") and line.startswith("gone: ")
    top = path.removeprefix(inside).partition("/")[0]
    return top.lower().startswith(OURS) or top.lower().endswith((".dist-info", ".dist-info.bak"))


def linked(before: Mapping[str, Entry], after: Mapping[str, Entry]) -> list[tuple[str, Entry]]:
    """Return the files that have more names than before: somebody else's content would change with them."""
    old = {path: entry.names for path, entry in before.items()}
    return [(path, entry) for path, entry in after.items() if entry.kind == "-" and entry.names > old.get(path, 1)]


@contextmanager
def deadline() -> Iterator[None]:
    """Raise HangError in the body after `SECONDS`."""

    def ring(_number: int, _frame: FrameType | None) -> None:
        raise HangError

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
