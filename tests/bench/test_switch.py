"""The bounds of a real switch, with the complete counts only: downloads 2.4 GB."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.environ.get("TEST_COUNTS") != "full", reason="for --full")]


@pytest.mark.timeout(900)
def test_a_real_switch_keeps_its_bounds(tmp_path: Path) -> None:
    argv = [sys.executable, str(Path(__file__).with_name("switch.py")), str(tmp_path)]
    ended = subprocess.run(argv, capture_output=True, text=True, check=False)
    print(ended.stdout)  # noqa: T201 - the figures of docs/reliability.md
    assert ended.returncode == 0, ended.stdout + ended.stderr
    figures, _ = json.JSONDecoder().raw_decode(ended.stdout)
    assert figures["nothing to do"]["done_at"] == []
