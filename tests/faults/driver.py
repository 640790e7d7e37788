"""One setup in a process of its own, for tests that kill it. Not a test.

Call: `driver.py HOME TWINS DEVICE`, and what happens to it on the way: `--point NAME` (of `checkpoint.NAMES`, or
`start`), `--delay SECONDS` after it, `--signal NAME` to itself or, with `--group`, to its process group. Each point is
added to `--log` with the time. Prints the error's class and code, or what embeddings run on.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
import time
from pathlib import Path

from imprint.errors import ImprintError
from imprint.runtime import checkpoint
from imprint.runtime.managed import generations
from support.place import Place
from support.twins import Twins


def main() -> None:
    """Run one setup as told."""
    parser = argparse.ArgumentParser()
    for name in ("home", "twins", "device"):
        parser.add_argument(name)
    parser.add_argument("--point", default="")
    parser.add_argument("--delay", type=float, default=0.0)
    parser.add_argument("--signal", default="SIGKILL")
    parser.add_argument("--group", action="store_true")
    parser.add_argument("--log", default=os.devnull)
    parser.add_argument("--wait", type=float, default=0.0)
    parser.add_argument("--keep", type=int, default=generations.KEEP_BELOW)
    asked = parser.parse_args()
    generations.KEEP_BELOW = asked.keep
    descriptor = os.open(asked.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def strike() -> None:
        time.sleep(asked.delay)
        number = signal.Signals[asked.signal]
        if asked.group:
            os.killpg(0, number)
        else:
            os.kill(os.getpid(), number)

    def at(reached: str) -> None:
        os.write(descriptor, f"{reached} {time.monotonic()}\n".encode())
        if reached != asked.point:
            return
        if asked.delay:
            threading.Thread(target=strike, daemon=True).start()
        else:
            strike()

    checkpoint.listener = at
    at("start")
    try:
        result = Place(Path(asked.home), Twins(Path(asked.twins))).setup(asked.device, wait_seconds=asked.wait)
    except ImprintError as error:
        print(type(error).__name__, error.specific_code, error.message)  # noqa: T201 - read by the test
        sys.exit(1)
    print(result.data["status"]["runs_on"])  # noqa: T201 - read by the test


main()
