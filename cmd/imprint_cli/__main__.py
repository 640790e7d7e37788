"""Where the process starts: `imprint`, `python -m imprint_cli`, and the launchers of a bare checkout.

Ctrl-C is held back while the program is being imported, and after its answer: it would end in a traceback there.
"""

import signal
import sys
from types import FrameType


def main() -> int:
    """Run the command line of this process and return its exit code."""
    held: list[int] = []

    def hold(number: int, _frame: FrameType | None) -> None:
        held.append(number)

    def release() -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if held:
            raise KeyboardInterrupt

    # A process in the background of a script ignores SIGINT from the start, and goes on doing so.
    heeds = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if heeds:
        signal.signal(signal.SIGINT, hold)
    from imprint_cli.app import main as run
    from imprint_cli.exits import INTERRUPTED

    try:
        return run(ready=release if heeds else None)
    except KeyboardInterrupt:
        return INTERRUPTED
    finally:
        if heeds:
            signal.signal(signal.SIGINT, signal.SIG_IGN)


if __name__ == "__main__":
    sys.exit(main())
