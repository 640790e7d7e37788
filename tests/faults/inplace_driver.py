"""One change of somebody's environment in a process of its own, for tests that kill it. Not a test.

Call: `inplace_driver.py ROOT WHEELS PYTHON BUILD LOG POINT DELAY WHOM`. Each point of `imprint.runtime.checkpoint` is
added to LOG with the time. DELAY seconds after POINT (`start` or one of `inplace.POINTS`) WHOM is killed: `group`,
installers included, or `alone`, which leaves an installer running; `nobody` lets the run end.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path

from imprint.runtime import checkpoint
from support.foreign import Foreign, Wheels


def main() -> None:
    """Run one change as told."""
    root, wheels, python, build, log, point, delay, whom = sys.argv[1:]
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def kill() -> None:
        time.sleep(float(delay))
        if whom == "group":
            os.killpg(0, signal.SIGKILL)
        elif whom == "alone":
            os.kill(os.getpid(), signal.SIGKILL)

    def at(reached: str) -> None:
        os.write(descriptor, f"{reached} {time.monotonic()}\n".encode())
        if reached != point:
            return
        if float(delay):
            threading.Thread(target=kill, daemon=True).start()
        else:
            kill()

    checkpoint.listener = at
    foreign = Foreign(Path(root), Wheels(Path(wheels)), python)
    at("start")
    foreign.setup(build)


main()
