"""Turns SIGINT, SIGTERM and SIGHUP into one error, so that an ended run cleans up after itself the same way for all."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

from imprint.errors import InterruptedByUserError
from imprint.hints import helps

HANGUP = "SIGHUP"

FINISH = "finish-the-change"
"""The hint after any failure while somebody's own environment is being changed."""


@contextlib.contextmanager
def interruptible(what: str, *, hint: str = "as-before") -> Iterator[None]:
    """Run the body; SIGINT, SIGTERM and SIGHUP during it end it with InterruptedByUserError and the hint of that name.

    Inside, they arrive as KeyboardInterrupt, which no `except Exception` swallows. What this process ignored before, as
    under `nohup`, it still ignores. Outside the main thread, where no handler can be set, signals stay as they are.
    """
    before = {number: signal.signal(number, _interrupt) for number in _handled()}
    _State.hint = hint
    try:
        yield
    except KeyboardInterrupt as error:
        if error.args == (HANGUP,):
            message = f"the terminal was closed, so {what} was interrupted"
            raise InterruptedByUserError(message, hint=helps(_State.hint), code="hangup") from None
        raise InterruptedByUserError(f"{what} was interrupted", hint=helps(_State.hint)) from None
    finally:
        _State.pending = ""
        for number, handler in before.items():
            # None: a handler that was not set from Python; it cannot be put back.
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)


def leaves(hint: str) -> None:
    """Have an interrupt from here on give another hint: what it leaves is no longer what was there before."""
    _State.hint = hint


def _handled() -> list[signal.Signals]:
    if threading.current_thread() is not threading.main_thread():
        return []
    # Windows has no SIGHUP.
    ending = [signal.Signals[name] for name in ("SIGINT", "SIGTERM", HANGUP) if name in signal.Signals.__members__]
    return [number for number in ending if signal.getsignal(number) is not signal.SIG_IGN]


@contextlib.contextmanager
def held_back() -> Iterator[None]:
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
        name, _State.pending = _State.pending, ""
        raise KeyboardInterrupt(name)


class _State:
    """Handlers have no arguments of their own; they run in the main thread only."""

    depth = 0
    pending = ""
    hint = ""


def _interrupt(number: int, _frame: FrameType | None) -> None:
    name = signal.Signals(number).name
    if name == HANGUP:
        # A terminal and its shell both say so; the second must not disturb the cleaning up after the first.
        signal.signal(number, signal.SIG_IGN)
    if _State.depth:
        _State.pending = name
    else:
        raise KeyboardInterrupt(name)
