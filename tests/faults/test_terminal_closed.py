"""A terminal that is closed while setup downloads: it cleans up, ends what it started, and exits as it says."""

from __future__ import annotations

import os
import pty
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from contracts.runner import ROOT, scrubbed

pytestmark = pytest.mark.faults

START = "import sys; sys.path[:0] = sys.argv.pop(1).split('|'); from imprint_cli.__main__ import main; sys.exit(main())"
"""With the terminal as the one that rules this process, as a shell's child has it."""
RULED = f"import fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); {START}"


def processes_of(session: int) -> list[str]:
    """Return the command lines of a session's processes."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            if int(fields[3]) == session and fields[0] != "Z":
                found.append((folder / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue
    return found


def until(what: str, session: int) -> None:
    deadline = time.monotonic() + 30
    while not any(what in line for line in processes_of(session)):
        assert time.monotonic() < deadline, processes_of(session)
        time.sleep(0.05)


def until_none(session: int) -> None:
    deadline = time.monotonic() + 5
    while processes_of(session):
        assert time.monotonic() < deadline, processes_of(session)
        time.sleep(0.05)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("under_nohup", [False, True])
def test_a_closed_terminal_ends_setup_as_ctrl_c_does(tmp_path: Path, under_nohup: bool) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        index = f"http://127.0.0.1:{silent.getsockname()[1]}/simple"
        mine, theirs = pty.openpty()
        start = f"import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN); {RULED}" if under_nohup else RULED
        paths = f"{ROOT}|{ROOT / 'cmd'}"
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", start, paths, "setup", "--yes", "--index-url", index],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=scrubbed(os.environ) | {"IMPRINT_HOME": str(tmp_path / "home"), "TERM": "xterm"},
            start_new_session=True,
        )
        os.close(theirs)
        try:
            until("pip install", process.pid)
            os.close(mine)
            if under_nohup:
                time.sleep(1)
                assert process.poll() is None
            else:
                assert process.wait(timeout=30) == 129
                # A process that was killed needs a moment to go, and nobody here may wait for another's child.
                until_none(process.pid)
                assert list((tmp_path / "home" / "models").iterdir()) == []
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait(timeout=30)
