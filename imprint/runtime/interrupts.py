"""Turns SIGINT and SIGTERM into one error, so that an ended run cleans up after itself the same way for both."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

from imprint.errors import InterruptedByUserError
from imprint.hints import helps

FINISH = "finish-the-change"
"""The hint after any failure while somebody's own environment is being changed."""


@contextlib.contextmanager
def interruptible(what: str, *, hint: str = "as-before") -> Iterator[None]:
    """Run the body; SIGINT and SIGTERM during it end it with InterruptedByUserError, which gives the hint of that name.

    Inside, both arrive as KeyboardInterrupt, which no `except Exception` swallows. Outside the main thread, where
    no handler can be set, signals stay as they are.
    """
    handled = (signal.SIGINT, signal.SIGTERM) if threading.current_thread() is threading.main_thread() else ()
    before = {number: signal.signal(number, _interrupt) for number in handled}
    try:
        yield
    except KeyboardInterrupt:
        raise InterruptedByUserError(f"{what} was interrupted", hint=helps(hint)) from None
    finally:
        _State.pending = False
        for number, handler in before.items():
            # None: a handler that was not set from Python; it cannot be put back.
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)


@contextlib.contextmanager
def deferred() -> Iterator[None]:
    """Hold back an interrupt during the body, and let it out at the end.

    For the moments at which an exception would lose something, such as the handle of a child just started. Works
    inside `interruptible`; elsewhere it does nothing.
    """
    _State.depth += 1
    try:
        yield
    finally:
        _State.depth -= 1
    if _State.depth == 0 and _State.pending:
        _State.pending = False
        raise KeyboardInterrupt


class _State:
    """Handlers have no arguments of their own; they run in the main thread only."""

    depth = 0
    pending = False


def _interrupt(number: int, _frame: FrameType | None) -> None:
    if _State.depth:
        _State.pending = True
    else:
        raise KeyboardInterrupt(signal.Signals(number).name)
