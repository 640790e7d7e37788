"""Whose a home is, and whether what lies in it may be run."""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from imprint import ownership
from imprint.errors import ImprintError
from imprint.ownership import claim, foreign_entries, require_ours, require_safe
from imprint.paths import Home

MANIFEST = {"schema": 1, "id": "x", "build": "cpu", "locks": []}
VERDICTS = {"schema": 1, "verdicts": []}
RECEIPT = {"schema": 1, "identity": "x", "prefix": "/v"}


def fill(root: Path, there: dict[str, object]) -> Home:
    for name, content in there.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return Home(root)


OURS: dict[str, dict[str, object]] = {
    "empty": {},
    "lost and found": {"lost+found": ""},
    "prepared": {"config.toml": "[model]\n", "secrets.toml": ""},
    "marked": {".imprint-home": "", "their.txt": ""},
    "with a runtime": {"runtimes/x/manifest.json": MANIFEST, "notes.txt": ""},
    "with verdicts": {"data/gpu_state.json": VERDICTS, "notes.txt": ""},
    "with an environment of somebody's": {"data/inplace/v-1/receipt.json": RECEIPT, "models/m/model.onnx": ""},
    "newer": {"data/current.json": {"schema": 99}},
    "damaged": {"data/current.json": "{", "setup.lock": ""},
    "set aside before": {"data/current.json.corrupt-20260101T000000Z": "{"},
    "with a tool environment": {f"tool/env-{'0' * 64}/pyvenv.cfg": ""},
}
THEIRS: dict[str, tuple[dict[str, object], str]] = {
    "a file": ({"notes.txt": ""}, "notes.txt"),
    "a state file of theirs": ({"data/current.json": {"mine": 1}}, "data/current.json"),
    "data of theirs": ({"data/other.db": ""}, "data/other.db"),
    "runtimes of theirs": ({"runtimes/node/bin/node": ""}, "runtimes/node"),
    "tools of theirs": ({"tool/env-x/pyvenv.cfg": ""}, "tool/env-x"),
    "models of theirs": ({"models/big/model.onnx": ""}, "models/big"),
    "a hidden file": ({".git/config": ""}, ".git"),
}


@pytest.mark.parametrize("there", OURS.values(), ids=OURS)
def test_a_home_is_ours_by_its_mark_by_being_empty_or_by_what_only_imprint_writes(
    tmp_path: Path, there: dict[str, object]
) -> None:
    home = fill(tmp_path, there)
    assert foreign_entries(home) == ()
    claim(home)
    assert home.marker.is_file()
    assert stat.S_IMODE(home.marker.stat().st_mode) == 0o666 & ~_umask()


@pytest.mark.parametrize(("there", "named"), THEIRS.values(), ids=THEIRS)
def test_another_applications_folder_is_refused_and_one_of_its_entries_named(
    tmp_path: Path, there: dict[str, object], named: str
) -> None:
    home = fill(tmp_path, there)
    assert named in foreign_entries(home)
    with pytest.raises(ImprintError, match="is not one of Imprint's folders") as caught:
        claim(home)
    assert (caught.value.specific_code, f"`{named}`" in caught.value.message) == ("not-ours", True)
    assert not home.marker.exists()


@pytest.mark.parametrize("place", ["/", "~", "a folder without any of ours", "a folder like a home"])
def test_only_what_looks_like_a_home_is_offered_to_be_marked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """What carries the mark is swept: no system's folder and no user's own shall ever get it on our advice."""
    fill(tmp_path, {"notes.txt": "", **({"data/x": ""} if "without" in place else {"runtimes/x/y": ""})})
    if place == "~":
        monkeypatch.setenv("HOME", str(tmp_path))
    error = ownership.foreign(Home(Path("/") if place == "/" else tmp_path))
    assert error is not None
    assert ("touch" in str(error.hint)) == ("like" in place)


def test_a_link_is_not_taken_for_the_mark_or_for_a_record(tmp_path: Path) -> None:
    home = fill(tmp_path / "theirs", {"notes.txt": ""})
    other = fill(tmp_path / "ours", {".imprint-home": "", "data/gpu_state.json": VERDICTS})
    home.marker.symlink_to(other.marker)
    home.data.mkdir()
    home.verdicts.symlink_to(other.verdicts)
    with pytest.raises(ImprintError):
        require_ours(home)


def test_a_home_that_is_not_there_is_made_and_marked(tmp_path: Path) -> None:
    home = Home(tmp_path / "a" / "b")
    assert foreign_entries(home) == ()
    claim(home)
    claim(home)
    assert home.marker.read_text(encoding="utf-8").startswith("Imprint keeps")


@pytest.fixture
def runtime(tmp_path: Path) -> Iterator[Path]:
    python = tmp_path / "home" / "runtimes" / "x" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    before = os.umask(0o022)
    yield python
    os.umask(before)


@pytest.mark.parametrize("part", [".", "runtimes", "runtimes/x", "runtimes/x/bin"])
def test_what_everybody_may_change_is_not_run(tmp_path: Path, runtime: Path, part: str) -> None:
    home = Home(tmp_path / "home")
    require_safe(home, runtime)
    (home.root / part).chmod(0o775)
    require_safe(home, runtime)
    (home.root / part).chmod(0o777)
    with pytest.raises(ImprintError, match="every user can write") as caught:
        require_safe(home, runtime)
    assert caught.value.specific_code == "unsafe-home"
    assert "chmod o-w" in str(caught.value.hint)
    (home.root / part).chmod(0o1777)  # as /tmp: nobody may replace what another user put there
    require_safe(home, runtime)
    require_safe(home, Path(sys.executable))


def test_what_another_user_put_into_a_folder_for_everybody_is_not_run(
    tmp_path: Path, runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(tmp_path / "home")
    home.root.chmod(0o1777)
    require_safe(home, runtime)
    # Whoever made it is somebody else now.
    monkeypatch.setattr(os, "geteuid", lambda: 54321)
    if runtime.stat().st_uid == 0:
        for place in (home.runtimes, home.runtimes / "x"):
            os.chown(place, 12345, 12345)
    with pytest.raises(ImprintError, match="every user can put files into"):
        require_safe(home, runtime)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a file away")
def test_root_runs_nothing_that_another_user_owns(tmp_path: Path, runtime: Path) -> None:
    home = Home(tmp_path / "home")
    os.chown(runtime, 54321, 54321, follow_symlinks=False)
    with pytest.raises(ImprintError, match="belongs to user 54321") as caught:
        require_safe(home, runtime)
    assert f"chown -R root {home.root}" in str(caught.value.hint)


def _umask() -> int:
    value = os.umask(0)
    os.umask(value)
    return value


def test_a_home_that_another_process_marks_at_this_moment_is_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(tmp_path / "home")
    home.root.mkdir()
    names = ownership._names

    def marked(folder: Path) -> list[str]:
        home.marker.touch()
        return names(folder)

    monkeypatch.setattr(ownership, "_names", marked)
    assert ownership.foreign(home) is None
