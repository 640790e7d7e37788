"""Turns what ended a command into a notice and an exit code, by the table on the classes of errors.

docs/exit-codes.md describes the table, and a test compares the two.
"""

import errno
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from imprint.errors import EXIT_CODES, ImprintError, InterruptedByUserError
from imprint.hints import helps
from imprint.results import Notice

OK = 0
FAILED = 1
USAGE = 2
BUG = 70
PENDING = 100
HANGUP = 129
INTERRUPTED = 130

MEANINGS: Mapping[int, str] = MappingProxyType(
    {
        OK: "done",
        FAILED: "failed",
        USAGE: "usage or invalid value",
        3: "state unreadable or newer",
        4: "another Imprint process is changing this home or environment",
        5: "network or index",
        6: "integrity",
        7: "no space",
        BUG: "a bug in Imprint",
        75: "restart me (server to launcher only)",
        PENDING: "change pending",
        HANGUP: "terminal closed",
        INTERRUPTED: "interrupted",
    },
)
"""Every exit code of the program and what it says."""


def exit_code_of_notices(errors: Iterable[Notice]) -> int:
    """Return the exit code of an answer's errors: that of the first, 0 when there are none."""
    for notice in errors:
        return EXIT_CODES.get(notice.code, FAILED)
    return OK


def explain(error: BaseException, arguments: Sequence[str]) -> tuple[Notice, int]:
    """Return what to tell about an exception that ended a command, and the exit code.

    Anything unexpected is a bug and leaves a log. Raises the error itself where it says that nobody reads any more.
    """
    if isinstance(error, BrokenPipeError):
        raise error
    if isinstance(error, ImprintError):
        return Notice.of(error), error.exit_status
    if isinstance(error, KeyboardInterrupt) or type(error).__name__ == "Abort":
        return Notice.of(InterruptedByUserError("interrupted")), INTERRUPTED
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        where = error.filename or "standard output"
        return Notice("no-space", f"no space left: {where}", helps("free-space")), 7
    if isinstance(error, OSError) and error.errno == errno.EBADF and error.filename is None:
        return Notice("output-not-writable", "standard output is closed"), FAILED
    refused = _refused_by_the_system(error)
    if refused is not None:
        return Notice.of(refused), refused.exit_status
    from imprint_cli.crash import record_crash

    return record_crash(error, arguments), BUG


def _refused_by_the_system(error: BaseException) -> ImprintError | None:
    """Return what an error says about the system that Imprint runs on, None when it says nothing."""
    from imprint import access
    from imprint.causes.errors import outside_error

    if isinstance(error, MemoryError):
        error = OSError(errno.ENOMEM, "out of memory")
    return outside_error(error) or (access.error_of(error, _home()) if isinstance(error, OSError) else None)


def _home() -> Path | None:
    from imprint.paths import find_home

    try:
        return find_home(os.environ).root
    except ImprintError:
        return None
