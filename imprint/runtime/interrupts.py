"""Turns SIGINT and SIGTERM into one error, so that an ended run cleans up after itself the same way for both."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

from imprint.errors import InterruptedByUserError


@contextlib.contextmanager
def interruptible(what: str) -> Iterator[None]:
    """Run the body; SIGINT and SIGTERM during it end it with InterruptedByUserError.

    Inside, both arrive as KeyboardInterrupt, which no `except Exception` swallows. Outside the main thread, where
    no handler can be set, signals stay as they are.
    """
    handled = (signal.SIGINT, signal.SIGTERM) if threading.current_thread() is threading.main_thread() else ()
    before = {number: signal.signal(number, _interrupt) for number in handled}
    try:
        yield
    except KeyboardInterrupt:
        raise InterruptedByUserError(
            f"{what} was interrupted", hint="what was current before still is; run the same command again"
        ) from None
    finally:
        for number, handler in before.items():
            # None: a handler that was not set from Python; it cannot be put back.
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)


def _interrupt(number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt(signal.Signals(number).name)
