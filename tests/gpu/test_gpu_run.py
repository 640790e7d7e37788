"""The real GPU run, for a machine that has one: `pytest -m gpu tests/gpu` with GPU_RUN_WHEELS naming the wheels."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]
WHEELS = os.environ.get("GPU_RUN_WHEELS")


@pytest.mark.skipif(WHEELS is None, reason="GPU_RUN_WHEELS names no folder of wheels, see README.md")
def test_everything_is_as_it_should_be_on_a_real_gpu(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    script = Path(__file__).with_name("run.py")
    argv: list[str | Path] = [
        sys.executable,
        script,
        "--wheels",
        str(WHEELS),
        "--work",
        tmp_path / "work",
        "--report",
        report,
    ]
    ended = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert json.loads(report.read_text("utf-8"))["wrong"] == []
