"""What a shell offers when somebody presses the tab key."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from contracts.runner import scrubbed

ROOT = Path(__file__).resolve().parents[2]
LAUNCH = "import sys; sys.path[:0] = sys.argv.pop(1).split('|'); from imprint_cli.app import main; sys.exit(main())"


def offered(line: str) -> list[str]:
    """Return what bash would offer for the last word of a line."""
    words = line.split(" ")
    asked = {"_IMPRINT_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    command = [sys.executable, "-P", "-c", LAUNCH, f"{ROOT}|{ROOT / 'cmd'}"]
    done = subprocess.run(command, env=scrubbed(os.environ) | asked, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("imprint s", ["setup", "status"]),
        ("imprint model r", ["remove"]),
        ("imprint setup --device ", ["cpu", "gpu", "auto"]),
        ("imprint plan --device g", ["gpu"]),
        ("imprint setup --gpu-device ", ["auto"]),
        ("imprint embed --format ", ["jsonl", "npy", "text"]),
        ("imprint embed --input-format j", ["jsonl"]),
        ("imprint embed --model ", ["all-minilm-l6-v2"]),
        ("imprint model remove a", ["all-minilm-l6-v2"]),
        ("imprint config get server.", ["server.host", "server.port", "server.token"]),
        ("imprint doctor config:", ["config:file"]),
    ],
)
def test_words_and_values_are_offered(line: str, words: list[str]) -> None:
    assert set(words) <= set(offered(line))
    start = line.rpartition(" ")[2]
    assert all(word.startswith(start) for word in offered(line))


def test_before_there_is_a_tool_environment_nothing_is_built_for_it(tmp_path: Path) -> None:
    environ = {**os.environ, "IMPRINT_HOME": str(tmp_path / "home"), "_IMPRINT_COMPLETE": "complete_bash"}
    done = subprocess.run([str(ROOT / "cmd" / "imprint")], env=environ, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not (tmp_path / "home").exists()
