"""One setup in a process of its own, for tests that kill it. Not a test.

Call: `driver.py HOME TWINS DEVICE ACTION`, where ACTION is `run`, or NAME=SIGNAL to send itself SIGNAL at a point of
`imprint.runtime.checkpoint`. Prints the error's class and code, or what embeddings run on.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from imprint.errors import ImprintError
from imprint.runtime import checkpoint
from support.place import Place
from support.twins import Twins


def main() -> None:
    """Run one setup as told."""
    home, twins, device, action, *rest = sys.argv[1:]
    point, _, name = action.partition("=")

    def at(reached: str) -> None:
        if reached == point:
            os.kill(os.getpid(), signal.Signals[name])

    checkpoint.listener = at
    wait = float(rest[0]) if rest else 0.0
    try:
        result = Place(Path(home), Twins(Path(twins))).setup(device, wait_seconds=wait)
    except ImprintError as error:
        print(type(error).__name__, error.specific_code, error.message)  # noqa: T201 - read by the test
        sys.exit(1)
    print(result.data["status"]["runs_on"])  # noqa: T201 - read by the test


main()
