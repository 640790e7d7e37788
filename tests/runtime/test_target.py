"""A generation is a folder that we made; what a link leads to is somebody else's."""

from __future__ import annotations

from pathlib import Path

from imprint.paths import Home
from imprint.runtime import target
from imprint.runtime.target import Manifest, Pointer
from imprint.state import files
from imprint.state.findings import Findings

MANIFEST = Manifest("ID", "cpu", "1.31.1", {}, "3.11.7", "/python", None, "2026-12-01T00:00:00Z", {})


def test_a_generation_that_is_a_link_is_none_and_is_said(tmp_path: Path) -> None:
    home, elsewhere = Home(tmp_path / "home"), tmp_path / "elsewhere"
    files.write_json(elsewhere / "manifest.json", target.manifest_to_json(MANIFEST), within=elsewhere)
    home.runtimes.mkdir(parents=True)
    target.write_pointer(home, Pointer("ID", "2026-12-01T00:00:00Z"))
    (home.runtimes / "ID").symlink_to(elsewhere)
    findings = Findings()
    assert target.current_target(home, findings) is None
    assert [finding.path for finding in findings] == [home.runtimes / "ID"]
    (home.runtimes / "ID").unlink()
    elsewhere.rename(home.runtimes / "ID")
    assert target.current_target(home) is not None
