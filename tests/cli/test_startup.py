"""Start-up stays cheap: what an ordinary command must not import, counted rather than timed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HEAVY = ("pydantic", "rich", "numpy", "tomlkit", "filelock", "packaging", "asyncio", "importlib.metadata", "ssl")
PROBE = (
    "import sys; sys.path[:0] = sys.argv[1].split('|'); sys.argv[1:2] = []; from imprint_cli.app import main; main(); "
    f"found = [name for name in {HEAVY!r} if name in sys.modules]; sys.exit(' '.join(found) or 0)"
)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["--version"],
        ["plan", "--json"],
        ["plan", "--device", "gpu", "--explain"],
        ["status"],
        ["config", "list"],
        ["config", "get", "model.device"],
        ["machine", "--json"],
        ["doctor", "--list"],
        ["embed", "--output", "out.jsonl", "--help"],
        ["embed", "--output", "out.jsonl", "a text"],
        ["model", "list"],
        ["nonsense"],
    ],
    ids=" ".join,
)
def test_nothing_heavy_is_imported(arguments: list[str], tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-c", PROBE, f"{ROOT}|{ROOT / 'cmd'}", *arguments],
        env={"IMPRINT_HOME": str(tmp_path), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"imported: {done.stderr}"
