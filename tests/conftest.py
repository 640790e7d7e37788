"""What every test can rely on, wherever the suite was started."""

from __future__ import annotations

import signal


def pytest_configure() -> None:
    """Have Ctrl-C mean something: a shell starts background jobs with SIGINT ignored, and children inherit that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
