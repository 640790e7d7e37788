"""The benchmark of embedding runs as its first lines say: after a setup, with any Python, without uv on PATH."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from contracts.runner import ROOT, scrubbed

SYSTEMS = "/usr/local/bin:/usr/bin:/bin"


@pytest.mark.slow
def test_it_runs_after_a_setup(tmp_path: Path) -> None:
    environ = scrubbed(os.environ) | {"IMPRINT_HOME": str(tmp_path / "home"), "PATH": SYSTEMS}
    suits = "! command -v uv && python3 -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))'"
    if subprocess.run(["sh", "-c", suits], env=environ, check=False, capture_output=True).returncode:
        pytest.skip("needs a system's Python 3.11 and no uv beside it")
    subprocess.run([str(ROOT / "cmd" / "imprint"), "setup", "--yes"], env=environ, check=True, capture_output=True)
    command = ["python3", str(ROOT / "tests" / "bench" / "embed_throughput.py"), "--texts", "20"]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "x throughput" in done.stdout
