"""The errors Imprint raises: each class has a stable code, each instance a message and, where one helps, a hint.

The library raises these and nothing else on purpose. Only the edges (the command line, HTTP) turn a code
into an exit code or a status; docs/exit-codes.md holds that table.
"""

from __future__ import annotations

from typing import ClassVar


class ImprintError(Exception):
    """Something went wrong that a person can act on.

    `message` says what was seen, in one sentence without a final full stop; `hint` names the next command or
    change, or is None when there is none. `code` is stable and lower-case with hyphens.
    """

    code: ClassVar[str] = "failed"

    def __init__(self, message: str, *, hint: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.specific_code = code or self.code
        """The code to show: the class's, unless this instance is a narrower case of it."""


class UsageError(ImprintError):
    """The call is malformed: an unknown option, an input that is not UTF-8, a file that is no machine document."""

    code = "usage"


class InvalidValueError(UsageError):
    """A configuration key or value that does not exist or is not valid; the message lists what is."""

    code = "invalid-value"


class StateError(ImprintError):
    """A state file cannot be read and could not be set aside."""

    code = "state-unreadable"


class StateNewerError(StateError):
    """A state file was written by a newer Imprint. It is left untouched."""

    code = "state-newer"


class NotOursError(ImprintError):
    """Something would be removed, moved or overwritten that does not belong to what the caller works in."""

    code = "not-ours"


class BusyError(ImprintError):
    """Another Imprint holds the mutex."""

    code = "busy"


class NetworkError(ImprintError):
    """A download failed, or something is needed that only the network has."""

    code = "network"


class IntegrityError(ImprintError):
    """Bytes differ from what a lock, a manifest or a RECORD says."""

    code = "integrity"


class NoSpaceError(ImprintError):
    """The disk is too full; the message says needed, free and where."""

    code = "no-space"


class InterruptedByUserError(ImprintError):
    """A signal ended it; what was current still is, or the same command finishes what it began. `hangup`: SIGHUP."""

    code = "interrupted"
