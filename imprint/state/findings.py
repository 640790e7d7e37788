"""What one run met that was wrong with state files, and whether it may set damaged ones aside.

Reading changes nothing. Only a command that writes, and only while it holds the mutex, reads with findings that set
aside; every other reader is told the same about the same file, and leaves it where it is.
"""

from __future__ import annotations

import os
from pathlib import Path

from imprint import access, clock, touch
from imprint.errors import ImprintError, StateError
from imprint.hints import helps
from imprint.paths import Home
from imprint.values import Record


class Finding(Record):
    """A file or folder that could not be used as state: a stable code, a sentence, and what a person can do.

    `moved_to` is where it is now, None when it was left in its place.
    """

    path: Path
    code: str
    message: str
    hint: str | None
    moved_to: Path | None = None


class Findings(list[Finding]):
    """The findings of one run, each path once. `writing_in`: the home whose mutex the caller holds, to write in it."""

    def __init__(self, *, writing_in: Home | None = None) -> None:
        super().__init__()
        self.home = writing_in

    def add(self, finding: Finding) -> None:
        """Add a finding; what is said last of a path holds."""
        self[:] = [other for other in self if other.path != finding.path]
        self.append(finding)

    def update(self, others: Findings) -> None:
        """Add what another reading met."""
        for finding in others:
            self.add(finding)

    def damaged(self, path: Path, why: str, *, seen: os.stat_result | None = None) -> None:
        """Add that `path` is damaged, and set it aside where this run may; `why` continues "`PATH` …".

        With `seen` nothing happens when another process has replaced the file since. Raises StateError when the file
        should be set aside and cannot be.
        """
        if self.home is None:
            hint = helps("setup-sets-aside")
            self.add(Finding(path, "state-damaged", f"`{path}` {why}; nothing was changed", hint))
            return
        moved = set_aside(path, why, self.home, seen)
        if moved is not None:
            message = f"`{path}` {why} and was set aside as `{moved.name}`"
            hint = helps("setup-restores")
            self.add(Finding(path, "state-set-aside", message, hint, moved))

    def explain(self, error: ImprintError) -> ImprintError:
        """Return an error about something that is missing with the first reason for that, if one was met."""
        if not self:
            return error
        first = self[0]
        return type(error)(f"{error.message}: {first.message}", hint=first.hint or error.hint, code=error.specific_code)

    def unread(self, path: Path, error: ImprintError) -> None:
        """Add that `path` could not be read, which this run can do without."""
        self.add(Finding(path, error.specific_code, error.message, error.hint))


class _Unheard(Findings):
    """What a reading tells that nobody asked to hear."""

    def add(self, finding: Finding) -> None:
        """Add nothing."""


UNHEARD = _Unheard()
"""For a reader whose caller says nothing of damage: the file counts as none, and stays where it is."""


def set_aside(path: Path, why: str, home: Home, seen: os.stat_result | None = None) -> Path | None:
    """Rename `path` to `NAME.corrupt-<time>` and return the new path; None when the file has gone or was replaced.

    Raises StateError when it cannot be renamed, NotOursError when it does not lie in the home.
    """
    stamp = clock.stamp()
    moved = path.with_name(f"{path.name}.corrupt-{stamp}")
    count = 1
    while os.path.lexists(moved):
        count += 1
        moved = path.with_name(f"{path.name}.corrupt-{stamp}-{count}")
    try:
        if seen is not None and not os.path.samestat(seen, path.lstat()):
            return None
        touch.move(path, moved, within=home.root)
    except FileNotFoundError:
        return None
    except OSError as error:
        refused, hint = access.explain(error, path, home.root, writing=True)
        raise StateError(f"`{path}` {why}, and it cannot be set aside: {refused}", hint=hint) from error
    return moved
