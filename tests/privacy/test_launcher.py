"""What the launcher says before there is any Python of ours is as safe for a terminal as the rest."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from imprint_launch.failure import Failure, classify, report
from leaves.test_printable import acts

ROOT = Path(__file__).parents[2]
EVIL = "e\x1b[31m\x1b]0;title\x07\x7f"


def test_the_script_shows_a_path_without_its_escapes(tmp_path: Path) -> None:
    """It refuses a PATH without the system's programs, and shows it."""
    (tmp_path / EVIL).mkdir()
    tools = tmp_path / EVIL
    for name in ("dirname", "id", "uname", "readlink"):
        (tools / name).symlink_to(f"/usr/bin/{name}")
    ended = subprocess.run(
        ["/bin/sh", ROOT / "cmd" / "imprint", "status"],
        env={"PATH": str(tools), "IMPRINT_HOME": str(tmp_path / "home")},
        capture_output=True,
        check=False,
    )
    said = ended.stderr.decode()
    assert ended.returncode == 1
    assert "PATH is `" in said
    assert acts(said, allowed="\n") == set()


def test_the_launchers_own_words_are_printable(capsys: pytest.CaptureFixture[str]) -> None:
    report(Failure("failed", f"no {EVIL}", f"try {EVIL}"), ["status"])
    report(classify(f"error: {EVIL}", 0, Path("/x"), command="uv", returncode=2), ["status"])
    said = capsys.readouterr().err
    assert "\\x1b[31m" in said
    assert acts(said, allowed="\n") == set()
