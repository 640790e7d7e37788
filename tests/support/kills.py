"""Ends what a test started in a process group of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import time


def end_group(process: subprocess.Popen[bytes], seconds: float) -> float | None:
    """Wait, then kill the whole group; returns how long it took by itself, None when it was killed."""
    began = time.monotonic()
    try:
        process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return None
    return time.monotonic() - began
