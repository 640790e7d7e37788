from __future__ import annotations

import json
from pathlib import Path

import pytest

from imprint import touch
from imprint.paths import Home
from imprint.state import last_run
from imprint.state.findings import Findings
from imprint.state.last_run import LastRun

CUDA, CPU = "CUDAExecutionProvider", "CPUExecutionProvider"


def test_a_start_is_written_down_once_and_again_when_it_differs(tmp_path: Path) -> None:
    home = Home(tmp_path)
    assert last_run.read(home) is None
    last_run.note(home, LastRun("gpu", CPU, "g1", "m"))
    first = last_run.read(home)
    assert first is not None
    assert first.missed_the_gpu
    before = last_run.path_of(home).stat()
    last_run.note(home, LastRun("gpu", CPU, "g1", "m"))
    after = last_run.path_of(home).stat()
    assert (before.st_mtime_ns, before.st_ino) == (after.st_mtime_ns, after.st_ino)
    last_run.note(home, LastRun("gpu", CUDA, "g1", "m"))
    second = last_run.read(home)
    assert second is not None
    assert not second.missed_the_gpu
    last_run.forget(home)
    last_run.forget(home)
    assert last_run.read(home) is None


def test_the_cpu_by_choice_missed_nothing() -> None:
    assert not LastRun("cpu", CPU, "g1", "m").missed_the_gpu


def test_a_damaged_record_is_set_aside(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.data.mkdir()
    findings = Findings(writing_in=home)
    last_run.path_of(home).write_text(json.dumps({"schema": 1, "asked": "gpu", "provider": 7}))
    assert last_run.read(home, findings) is None
    assert len(findings) == 1
    assert not last_run.path_of(home).exists()


def test_a_newer_record_or_a_home_that_cannot_be_written_stops_no_embedding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(tmp_path)
    home.data.mkdir()
    last_run.path_of(home).write_text('{"schema": 99}')
    last_run.note(home, LastRun("gpu", CPU, "g1", "m"))
    assert last_run.path_of(home).read_text() == '{"schema": 99}'
    last_run.forget(home)

    def refuse(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(touch, "write_file", refuse)
    last_run.note(home, LastRun("gpu", CPU, "g1", "m"))
    assert last_run.read(home) is None
