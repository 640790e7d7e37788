"""Makes sure that one run at a time changes somebody's environment, whichever home it belongs to.

The lock lies on a file that every environment has, so nothing is left behind; the system frees it with its holder.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from imprint.errors import BusyError
from imprint.hints import helps
from imprint.runtime.foreign.environment import read_only

if sys.platform == "win32":  # pragma: no cover
    import msvcrt
else:
    import fcntl

WAIT_SECONDS = 90.0
"""How long another run is waited for: a change takes seconds once everything is downloaded."""


@contextlib.contextmanager
def hold(prefix: Path, wait_seconds: float = WAIT_SECONDS) -> Iterator[None]:
    """Hold the environment at `prefix` for the body. Raises BusyError, and ImprintError when it cannot be opened."""
    descriptor = _open(prefix / "pyvenv.cfg")
    try:
        deadline = time.monotonic() + wait_seconds
        while not _try_lock(descriptor):
            if time.monotonic() >= deadline:
                raise BusyError(
                    f"another Imprint process is changing `{prefix}`",
                    hint=helps("wait-then-again"),
                )
            time.sleep(0.05)
        yield
    finally:
        os.close(descriptor)


def _open(path: Path) -> int:
    for mode in (os.O_RDWR, os.O_RDONLY):
        # To lock it exclusively some network file systems want a file that may be written.
        with contextlib.suppress(PermissionError):
            return os.open(path, mode | getattr(os, "O_CLOEXEC", 0))
    raise read_only(path)


if sys.platform == "win32":  # pragma: no cover

    def _try_lock(descriptor: int) -> bool:
        try:
            # A byte far behind the end: there the lock keeps nobody from reading the file.
            os.lseek(descriptor, 1 << 30, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:

    def _try_lock(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
