"""Turns error codes into exit codes: the one table. docs/exit-codes.md describes it and a test compares the two."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from imprint.errors import ImprintError
from imprint.operations.result import Remark

OK = 0
FAILED = 1
USAGE = 2
BUG = 70
PENDING = 100
INTERRUPTED = 130

CODES: Mapping[str, int] = MappingProxyType(
    {
        "failed": FAILED,
        "usage": USAGE,
        "invalid-value": USAGE,
        "state-unreadable": 3,
        "state-newer": 3,
        "busy": 4,
        "network": 5,
        "integrity": 6,
        "no-space": 7,
        "bug": BUG,
        "interrupted": INTERRUPTED,
    },
)
"""Exit code of each class of error; a code that is not here is a plain failure (1)."""

MEANINGS: Mapping[int, str] = MappingProxyType(
    {
        OK: "done",
        FAILED: "failed",
        USAGE: "usage or invalid value",
        3: "state unreadable or newer",
        4: "another imprint holds the mutex",
        5: "network or index",
        6: "integrity",
        7: "no space",
        BUG: "a bug in Imprint",
        75: "restart me (server to launcher only)",
        PENDING: "change pending",
        INTERRUPTED: "interrupted",
    },
)
"""Every exit code of the program and what it says."""


def exit_code_of(error: ImprintError) -> int:
    """Return the exit code of an error: that of its narrow code if the table has it, else that of its class."""
    return CODES.get(error.specific_code, CODES.get(error.code, FAILED))


def exit_code_of_remarks(errors: Iterable[Remark]) -> int:
    """Return the exit code of an answer's errors: that of the first, 0 when there are none."""
    for remark in errors:
        return CODES.get(remark.code, FAILED)
    return OK
