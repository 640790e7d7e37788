"""Runs a child process under a deadline with bounded output, and ends its whole group when the time is over."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import IO, Any

from imprint.probing.host import ChildResult

REAP_SECONDS = 2.0
"""How long to wait for a killed child: one that hangs inside the kernel driver may not end at all."""


def run_child(
    argv: Sequence[str], *, deadline: float, environ: Mapping[str, str], limit: int, memory: int | None = None
) -> ChildResult:
    """Run `argv` for at most `deadline` seconds; see Host.run for the contract.

    `memory` bounds the bytes that it may hold, where the system can (Linux); nothing that loads CUDA works with that.
    """
    options: dict[str, Any] = (
        {"creationflags": getattr(subprocess, "CREATE_NO_WINDOW", 0)}
        if sys.platform == "win32"
        else {"start_new_session": True}
    )
    try:
        process = subprocess.Popen(
            list(argv),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(environ),
            **options,
        )
    except (OSError, ValueError) as problem:
        return ChildResult(None, not_started=str(problem))
    if memory is not None:
        _bound(process.pid, memory)
    readers = [_Reader(stream, limit) for stream in (process.stdout, process.stderr) if stream is not None]
    timed_out = False
    try:
        process.wait(timeout=deadline)
    except subprocess.TimeoutExpired:
        timed_out = True
    finally:
        # Also after a normal end: a grandchild may hold the pipes, and an interrupt must leave nothing behind.
        _end(process)
    texts = [reader.finish(REAP_SECONDS) for reader in readers]
    return ChildResult(
        process.returncode,
        stdout=texts[0],
        stderr=texts[1],
        timed_out=timed_out,
        truncated=any(reader.truncated for reader in readers),
    )


def _bound(pid: int, memory: int) -> None:
    """Let a process that has just begun hold no more; from outside, since between fork and exec no thread is safe."""
    if sys.platform == "linux":
        import resource

        with contextlib.suppress(OSError, ValueError):
            resource.prlimit(pid, resource.RLIMIT_DATA, (memory, memory))


class _Reader:
    """Drains one stream on a thread of its own, so that a full pipe never stops the child."""

    def __init__(self, stream: IO[bytes], limit: int) -> None:
        self.truncated = False
        self._stream = stream
        self._limit = limit
        self._kept = bytearray()
        self._thread = threading.Thread(target=self._drain, daemon=True)
        self._thread.start()

    def _drain(self) -> None:
        with contextlib.suppress(OSError, ValueError), self._stream:
            while part := os.read(self._stream.fileno(), 65536):
                room = self._limit - len(self._kept)
                self._kept += part[: max(room, 0)]
                self.truncated = self.truncated or len(part) > room

    def finish(self, seconds: float) -> str:
        self._thread.join(seconds)
        return bytes(self._kept).decode("utf-8", "replace")


def _end(process: subprocess.Popen[bytes]) -> None:
    if sys.platform == "win32":
        if process.poll() is None:
            process.kill()
    else:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    try:
        process.wait(timeout=REAP_SECONDS)
    except subprocess.TimeoutExpired:
        # Stuck in the kernel. Popen would warn and poll for ever; the process is init's to reap.
        process.returncode = -int(getattr(signal, "SIGKILL", 9))
