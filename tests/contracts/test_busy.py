"""Two at once: who comes second waits, or is told at once who holds the mutex."""

import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path

from contracts.runner import _LAUNCH, ROOT, run_cli, scrubbed
from imprint.paths import Home
from imprint.state import mutex


def test_setup_is_refused_while_another_holds_the_mutex(tmp_path: Path) -> None:
    """Exit 4, with the holder named, in text and in JSON."""
    home = tmp_path / "home"
    with mutex.hold(Home(home), 0, command="imprint setup"):
        ran = run_cli(home, ["setup", "--offline", "--yes", "--wait", "0", "--json"])
        assert ran.code == 4
        error = ran.lines()[-1]["errors"][0]
        assert error["code"] == "busy"
        assert str(os.getpid()) in error["message"]
        assert run_cli(home, ["bootstrap", "--offline", "--wait", "0"]).code == 4


def test_reading_does_not_wait(tmp_path: Path) -> None:
    """Status, plan and the configuration answer while a setup runs."""
    home = tmp_path / "home"
    with mutex.hold(Home(home), 0):
        assert run_cli(home, ["status"]).code == 1  # it answers: nothing is installed
        assert run_cli(home, ["plan"]).code == 0
        assert run_cli(home, ["config", "set", "server.port", "9000"]).code == 0


def test_a_terminal_gets_colour_and_a_pipe_does_not(tmp_path: Path) -> None:
    """An error is coloured on a terminal only, and never with NO_COLOR."""
    command = [sys.executable, "-P", "-c", _LAUNCH, f"{ROOT}|{ROOT / 'cmd'}", "config", "get", "nonsense"]
    seen = {}
    for no_colour in ("", "1"):
        environ = scrubbed(os.environ) | {"IMPRINT_HOME": str(tmp_path), "TERM": "xterm", "NO_COLOR": no_colour}
        leader, follower = pty.openpty()
        with subprocess.Popen(command, env=environ, stdout=follower, stderr=follower, stdin=follower) as process:
            process.wait(timeout=30)
        seen[no_colour] = _drain(leader)
        os.close(follower)
        os.close(leader)
    assert "\x1b[" in seen[""]
    assert "\x1b" not in seen["1"]
    assert "error:" in seen["1"]


def _drain(leader: int) -> str:
    parts = []
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline and select.select([leader], [], [], 0.2)[0]:
        parts.append(os.read(leader, 65536))
    return b"".join(parts).decode()
