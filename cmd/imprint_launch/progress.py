"""Says on stderr what the first start is doing: a line for each step, and on a terminal the seconds so far."""

from __future__ import annotations

import time
from typing import TextIO


class Progress:
    """Tells steps to `stream`, nothing when `quiet`."""

    def __init__(self, stream: TextIO, *, quiet: bool = False) -> None:
        self._stream = stream
        self._quiet = quiet
        self._live = not quiet and stream.isatty()
        self._started = time.monotonic()
        self._step = ""

    def say(self, step: str) -> None:
        """Begin a step."""
        self.close()
        self._step = step
        if not self._quiet:
            print(f"imprint: {step} …", end="" if self._live else "\n", file=self._stream, flush=True)

    def tick(self) -> None:
        """Show that the step goes on."""
        if self._live and self._step:
            seconds = time.monotonic() - self._started
            print(f"\rimprint: {self._step} … {seconds:.0f} s", end="", file=self._stream, flush=True)

    def close(self) -> None:
        """End the line that is being redrawn."""
        if self._live and self._step:
            print(file=self._stream, flush=True)
        self._step = ""
