"""Shows progress on stderr: one line that is redrawn on a terminal, one line per finished step elsewhere."""

import sys
import time
from collections.abc import Callable
from typing import TextIO

from imprint.printable import printable_line
from imprint.runtime.events import Event
from imprint.sizes import in_units as size
from imprint_cli.human import animates, draw, duration, say

HEARTBEAT_SECONDS = 10.0
"""Without a terminal, a long step says this often that it is still at work."""

REDRAW_SECONDS = 0.1
"""On a terminal the line is redrawn at most this often."""

_BYTE_STEPS = frozenset({"download", "prune", "model"})
"""Steps that count bytes; others count items."""


class Progress:
    """Takes events and writes lines to a stream; `clock` gives seconds. `warned` holds the warnings that were told."""

    def __init__(self, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream or sys.stderr
        self._redraws = animates(self._stream)
        self._clock = clock
        self._last = clock()
        self._drawn = False
        self._began: dict[str, float] = {}
        self.warned: set[str] = set()

    def __call__(self, event: Event) -> None:
        """Show one event."""
        if event.event == "start":
            self._began[event.step] = self._clock()
        if event.event == "warning":
            self.warned.add(event.message)
            self._line(event.message, "warning")
        elif event.event in {"done", "info"}:
            self._line(f"{event.step}: {event.message}")
        elif self._redraws:
            self._redraw(event)
        elif self._clock() - self._last >= HEARTBEAT_SECONDS:
            self._line(f"{event.step}: {event.message}{self._amount(event)}")

    def close(self) -> None:
        """Remove a line that is still being redrawn."""
        if self._drawn:
            draw("", self._stream)
            self._drawn = False

    def _line(self, text: str, label: str | None = None) -> None:
        self.close()
        say(printable_line(text), self._stream, label=label)
        self._last = self._clock()

    def _redraw(self, event: Event) -> None:
        if self._drawn and event.event == "progress" and self._clock() - self._last < REDRAW_SECONDS:
            return
        import shutil

        # A line that wraps cannot be redrawn in place.
        width = max(20, shutil.get_terminal_size().columns - 1)
        draw(printable_line(f"{event.step}: {event.message}{self._amount(event)}")[:width], self._stream)
        self._drawn = True
        self._last = self._clock()

    def _amount(self, event: Event) -> str:
        """Return how far a step is; of a step that counts items also how fast it is, and how long it will take."""
        if event.done is None:
            return ""
        count = size if event.step in _BYTE_STEPS else str
        parts = [count(event.done) if event.total is None else f"{count(event.done)} of {count(event.total)}"]
        taken = self._clock() - self._began.get(event.step, self._clock())
        if event.step not in _BYTE_STEPS and event.done and taken > 0:
            rate = event.done / taken
            parts.append(f"{rate:.0f}/s" if rate >= 10 else f"{rate:.1f}/s")
            if event.total is not None:
                parts.append(f"{duration((event.total - event.done) / rate)} left")
        return f" ({', '.join(parts)})"
