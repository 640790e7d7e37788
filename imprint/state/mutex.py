"""The mutex around every change: one advisory lock on `setup.lock`, freed by the system when its holder dies.

Who holds it is written beside it (`setup.lock.holder`) so that a waiter can say whom it waits for. That note is
only told, never believed: the lock alone decides.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from imprint import clock, ownership, touch
from imprint.errors import BusyError, ImprintError
from imprint.hints import helps
from imprint.paths import Home
from imprint.state import files
from imprint.state.files import raise_for_write
from imprint.values import Record

if sys.platform == "win32":  # pragma: no cover
    import msvcrt
else:
    import fcntl

DEFAULT_WAIT = 60.0
"""Seconds to wait for the mutex unless `--wait` says otherwise."""

_HELD = {errno.EAGAIN, errno.EACCES, errno.EDEADLK}


class Holder(Record):
    """The process that holds the mutex, as it described itself; `since` is ISO 8601 UTC."""

    pid: int
    since: str
    command: str
    host: str

    def describe(self) -> str:
        """Return "process 12 (imprint setup, since …)"."""
        where = "" if self.host == _host() else f" on {self.host}"
        return f"process {self.pid}{where} (`{self.command}`, since {self.since})"


@contextlib.contextmanager
def hold(
    home: Home,
    wait_seconds: float = DEFAULT_WAIT,
    *,
    command: str = "imprint",
    on_wait: Callable[[str], None] | None = None,
) -> Iterator[None]:
    """Hold the mutex of `home` for the body; the home is created when it is missing, and proven to be ours.

    What killed writers left beside state files is swept first. Waits at most `wait_seconds` (0: not at all) and calls
    `on_wait` once with a sentence before it waits.
    Raises BusyError naming the holder, NoSpaceError, or ImprintError when the home cannot be written, is another
    application's (`not-ours`), or may not be run by this user (`unsafe-home`).
    """
    descriptor = _open(home)
    try:
        _acquire(descriptor, home, wait_seconds, on_wait)
        note = _note_path(home)
        _write_note(home, command)
        files.sweep(home)
        try:
            yield
        finally:
            touch.forget_file(note, within=home.root)
            _unlock(descriptor)
    finally:
        os.close(descriptor)


def holder(home: Home) -> Holder | None:
    """Return who the note says holds the mutex; None when there is no note or its process is gone."""
    try:
        raw = json.loads(_note_path(home).read_bytes()[:4096])
        found = Holder(int(raw["pid"]), str(raw["since"]), str(raw["command"]), str(raw["host"]))
    except (OSError, ArithmeticError, ValueError, KeyError, TypeError):
        return None
    if found.host == _host() and not _alive(found.pid):
        return None
    return found


def _open(home: Home) -> int:
    try:
        ownership.claim(home)
        return touch.open_lock(home.mutex, within=home.root)
    except OSError as error:
        raise_for_write(home.mutex, error, home.root)


def _acquire(descriptor: int, home: Home, wait_seconds: float, on_wait: Callable[[str], None] | None) -> None:
    deadline = time.monotonic() + wait_seconds
    pause = 0.02
    told = False
    while not _try_lock(descriptor, home):
        left = deadline - time.monotonic()
        if left <= 0:
            raise BusyError(
                f"another Imprint process is changing `{home.root}`: {_who(home)}",
                hint=helps("wait-longer"),
            )
        if not told and on_wait is not None:
            on_wait(f"waiting up to {wait_seconds:.0f} s for {_who(home)}")
        told = True
        time.sleep(min(pause, left))
        pause = min(pause * 1.5, 0.25)


def _who(home: Home) -> str:
    found = holder(home)
    return found.describe() if found else "an unidentified process"


if sys.platform == "win32":  # pragma: no cover

    def _try_lock(descriptor: int, home: Home) -> bool:
        try:
            os.lseek(descriptor, 0, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError as error:
            if error.errno in _HELD:
                return False
            raise _cannot_lock(home, error) from error
        return True

    def _unlock(descriptor: int) -> None:
        os.lseek(descriptor, 0, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

    def _alive(pid: int) -> bool:
        # Opening another process needs ctypes; a note of a dead process only makes the message less precise.
        return pid > 0

else:

    def _try_lock(descriptor: int, home: Home) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in _HELD:
                return False
            raise _cannot_lock(home, error) from error
        return True

    def _unlock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)

    def _alive(pid: int) -> bool:
        if pid <= 0:
            return False
        try:
            os.kill(pid, 0)
        except (ProcessLookupError, OverflowError):
            return False
        except PermissionError:
            return True
        return True


def _cannot_lock(home: Home, error: OSError) -> ImprintError:
    return ImprintError(
        f"cannot lock `{home.mutex}`: {error.strerror or error}",
        hint=helps("lockable-home"),
        code="home-not-lockable",
    )


def _note_path(home: Home) -> Path:
    return home.mutex.with_name(home.mutex.name + ".holder")


def _write_note(home: Home, command: str) -> None:
    since = clock.now()
    text = json.dumps({"pid": os.getpid(), "since": since, "command": command, "host": _host()})
    # The note helps a waiter and nobody else: a full disk must not stop the holder.
    with contextlib.suppress(OSError):
        touch.write_file(_note_path(home), f"{text}\n".encode(), within=home.root, durable=False)


def _host() -> str:
    return os.uname().nodename if hasattr(os, "uname") else os.environ.get("COMPUTERNAME", "")
