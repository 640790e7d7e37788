"""The errors Imprint raises: each class has a stable code, each instance a message and, where one helps, a hint.

The library raises these and nothing else on purpose. Each class also says with which status a program ends for it, the
one table of exit codes there is (`EXIT_CODES`, described in docs/exit-codes.md); only the edges end programs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar


class ImprintError(Exception):
    """Something went wrong that a person can act on.

    `message` says what was seen, in one sentence without a final full stop; `hint` names the next command or
    change, or is None when there is none. `code` is stable and lower-case with hyphens.
    """

    code: ClassVar[str] = "failed"
    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, hint: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.specific_code = code or self.code
        """The code to show: the class's, unless this instance is a narrower case of it."""

    @property
    def exit_status(self) -> int:
        """The exit code of a program that this error ends: by its narrow code, else by its class."""
        return EXIT_CODES.get(self.specific_code, self.exit_code)


class UsageError(ImprintError):
    """The call is malformed: an unknown option, an input that is not UTF-8, a file that is no machine document."""

    code = "usage"
    exit_code = 2


class InvalidValueError(UsageError):
    """A configuration key or value that does not exist or is not valid; the message lists what is."""

    code = "invalid-value"


class StateError(ImprintError):
    """A state file cannot be read and could not be set aside."""

    code = "state-unreadable"
    exit_code = 3


class StateNewerError(StateError):
    """A state file was written by a newer Imprint. It is left untouched."""

    code = "state-newer"


class NotOursError(ImprintError):
    """Something would be removed, moved or overwritten that does not belong to what the caller works in."""

    code = "not-ours"


class BusyError(ImprintError):
    """Another Imprint holds the mutex."""

    code = "busy"
    exit_code = 4


class NetworkError(ImprintError):
    """A download failed, or something is needed that only the network has."""

    code = "network"
    exit_code = 5


class IntegrityError(ImprintError):
    """Bytes differ from what a lock, a manifest or a RECORD says."""

    code = "integrity"
    exit_code = 6


class NoSpaceError(ImprintError):
    """The disk is too full; the message says needed, free and where."""

    code = "no-space"
    exit_code = 7


class InterruptedByUserError(ImprintError):
    """A signal ended it; what was current still is, or the same command finishes what it began. `hangup`: SIGHUP."""

    code = "interrupted"
    exit_code = 130


def _classes(kind: type[ImprintError]) -> Iterator[type[ImprintError]]:
    yield kind
    for narrower in kind.__subclasses__():
        yield from _classes(narrower)


EXIT_CODES: Mapping[str, int] = {
    **{kind.code: kind.exit_code for kind in _classes(ImprintError)},
    "bug": 70,
    "hangup": 129,
}
"""Exit code by code: of each class, of a bug, and of a closed terminal; any other code is a plain failure (1)."""
