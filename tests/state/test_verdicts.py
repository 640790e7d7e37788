from __future__ import annotations

from pathlib import Path

import pytest

from imprint.errors import StateNewerError
from imprint.paths import Home
from imprint.planning.model import Fingerprint, Verdict
from imprint.state import verdicts
from imprint.state.findings import Findings


def _verdict(result: str, driver: str = "580.95.05", **more: str) -> Verdict:
    fingerprint = Fingerprint(build="cuda13", gpu_uuid="GPU-1", driver=driver, check="c")
    return Verdict("cuda13", result, more.get("kind"), "2026-11-29T10:00:00Z", fingerprint)


def test_a_verdict_replaces_only_the_one_of_the_same_surroundings(tmp_path: Path) -> None:
    home = Home(tmp_path)
    assert verdicts.load(home) == ()
    failed, other, ok = _verdict("failed", kind="crashed"), _verdict("ok", driver="590.1"), _verdict("ok")
    for verdict in (failed, other, ok):
        verdicts.record(home, verdict)
    assert verdicts.load(home) == (other, ok)


def test_the_file_does_not_grow_without_bound(tmp_path: Path) -> None:
    home = Home(tmp_path)
    for number in range(verdicts.KEPT + 5):
        verdicts.record(home, _verdict("ok", driver=f"600.{number}"))
    kept = verdicts.load(home)
    assert len(kept) == verdicts.KEPT
    assert kept[-1].fingerprint.driver == f"600.{verdicts.KEPT + 4}"


@pytest.mark.parametrize("content", ["x", '{"schema": 1}', '{"schema": 1, "verdicts": [{"build": 1}]}', "[]"])
def test_garbage_is_set_aside_and_the_next_verdict_is_recorded(tmp_path: Path, content: str) -> None:
    home = Home(tmp_path)
    home.data.mkdir()
    home.verdicts.write_text(content)
    findings = Findings(writing_in=home)
    verdicts.record(home, _verdict("ok"), findings)
    (finding,) = findings
    assert finding.moved_to is not None
    assert finding.moved_to.read_text() == content
    assert verdicts.load(home) == (_verdict("ok"),)


def test_a_newer_file_is_not_overwritten(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.data.mkdir()
    home.verdicts.write_text('{"schema": 9}')
    with pytest.raises(StateNewerError):
        verdicts.record(home, _verdict("ok"))
    assert home.verdicts.read_text() == '{"schema": 9}'
