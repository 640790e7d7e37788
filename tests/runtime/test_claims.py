"""Whose a path is: by where it really leads, never by how somebody spelled it."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from imprint.runtime.distributions import claims, inventory
from imprint.runtime.distributions.claims import CHANGED, FOLDER, OTHERS, OUTSIDE, SPECIAL, UNPROVED, Claims, Ground
from imprint.runtime.distributions.metadata import InstalledDistribution, read_held, recorded_files

NOBODY = Claims.of(())


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    """Return an environment with a package, its script, and links to what is somebody else's."""
    packages = tmp_path / "env" / "lib" / "python3.11" / "site-packages"
    scripts = tmp_path / "env" / "bin"
    for folder in (packages / "pkg" / "sub", packages / "pkg-1.0.dist-info", scripts, tmp_path / "else"):
        folder.mkdir(parents=True)
    for path in (packages / "pkg" / "a.py", scripts / "tool", scripts / "python", tmp_path / "else" / "file"):
        path.write_text(path.name)
    (packages / "pkg-1.0.dist-info" / "RECORD").touch()
    (packages / "link").symlink_to(tmp_path / "else")
    (packages / "inner").symlink_to(packages / "pkg")
    (packages / "loop").symlink_to("loop")
    os.mkfifo(packages / "pkg" / "pipe")
    return Ground(tmp_path / "env", packages, scripts)


def held(ground: Ground, files: Mapping[str, str], name: str = "pkg", **also: object) -> InstalledDistribution:
    return InstalledDistribution(name, "1.0", files=files, folder=ground.packages / f"{name}-1.0.dist-info", **also)  # type: ignore[arg-type]


def digest(text: str) -> str:
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")


@pytest.mark.parametrize(
    "spelling",
    [
        *("pkg/a.py", "./pkg/a.py", "pkg//a.py", "x/../pkg/a.py", "pkg/sub/../a.py", "inner/a.py"),
        "../../../lib/python3.11/site-packages/pkg/a.py",
        "{packages}/pkg/a.py",
        *("pkg/a.py/", "pkg/a.py/.", " pkg/a.py", "pkg/a.py\n", "pkg\\a.py", "'pkg/a.py'", "PKG/A.py", "pkg/a.py;x;y"),
    ],
)
def test_every_spelling_of_a_file_is_the_same_claim(ground: Ground, spelling: str) -> None:
    staying = claims.claims_of([held(ground, {spelling.format(packages=ground.packages): "sha256=x"}, "other")], ground)
    own, _ = claims.own_files(held(ground, {"pkg/a.py": "sha256=x"}), staying, ground)
    assert own == ()


@pytest.mark.parametrize(
    ("row", "recorded", "why"),
    [
        (".", "", FOLDER),
        ("..", "", FOLDER),
        ("pkg/..", "", FOLDER),
        ("pkg/sub/", "", FOLDER),
        ("link/", "", OUTSIDE),
        ("../../..", "", FOLDER),
        ("../../../..", "", OUTSIDE),
        ("link/..", "", OUTSIDE),
        ("link/file", "sha256=x", OUTSIDE),
        ("/etc/hosts", "sha256=x", OUTSIDE),
        ("../../../pyvenv.cfg", "sha256=x", OUTSIDE),
        ("pkg/nul\0byte", "sha256=x", OUTSIDE),
        ("loop/x", "sha256=x", OUTSIDE),
        (f"pkg/{'x' * 5000}", "sha256=x", OUTSIDE),
        ("pkg/sub", "sha256=x", FOLDER),
        ("pkg", "", FOLDER),
        ("pkg/pipe", "sha256=x", SPECIAL),
        ("../../../bin/python", "", CHANGED),
        ("../../../bin/tool", digest("another"), CHANGED),
    ],
)
def test_what_is_no_file_of_its_own_stays_and_is_said(ground: Ground, row: str, recorded: str, why: str) -> None:
    own, skipped = claims.own_files(held(ground, {row: recorded, "pkg/a.py": "sha256=x"}), NOBODY, ground)
    assert own == (str(ground.packages.resolve() / "pkg" / "a.py"),)
    assert [(found.path, found.why) for found in skipped] == [(row, why)]


def test_its_files_its_links_and_its_scripts_go(ground: Ground) -> None:
    files = {"pkg/a.py": "sha256=x", "link": "sha256=x", "../../../bin/tool": digest("tool"), "pkg/gone.py": "sha256=x"}
    own, skipped = claims.own_files(held(ground, files), NOBODY, ground)
    assert [Path(place).name for place in own] == ["a.py", "link", "tool"]
    assert skipped == ()


def test_a_row_that_no_installer_wrote_proves_nothing(ground: Ground) -> None:
    (ground.packages / "notes.txt").touch()
    rows = {"notes.txt": "", "pkg/a.py": "", "pkg/b.py": "sha256=x"}
    own, skipped = claims.own_files(held(ground, rows), NOBODY, ground)
    assert [Path(place).name for place in own] == ["a.py"]
    assert [(found.path, found.why) for found in skipped] == [("notes.txt", UNPROVED)]


def test_what_somebody_who_stays_has_too_stays_and_is_said_where_it_is_odd(ground: Ground) -> None:
    staying = claims.claims_of([held(ground, {"pkg/a.py": "sha256=x"}, "other")], ground)
    assert claims.own_files(held(ground, {"pkg/a.py": "sha256=x"}), staying, ground) == ((), ())
    _, skipped = claims.own_files(held(ground, {"pkg/a.py": ""}), staying, ground)
    assert [found.why for found in skipped] == [OTHERS]


@pytest.mark.parametrize("rows", [{}, {"own/\udce9.py": ""}, {"a\0b": ""}, {"nothing/there.py": "sha256=x"}])
def test_an_unreadable_record_claims_what_is_near_it(ground: Ground, rows: dict[str, str]) -> None:
    claimed = claims.claims_of([held(ground, rows, "pkg")], ground)
    assert claimed.hold(ground.place("pkg/unrecorded.txt") or "")
    assert claimed.hold(ground.place("pkg-1.0.dist-info/anything") or "")
    assert not claimed.hold(ground.place("other/a.py") or "")


def test_a_record_that_is_not_whole_claims_the_folders_it_names(ground: Ground) -> None:
    """It may have been cut, and what it does not name any more lies beside what it names."""
    whole = {"pkg/a.py": "sha256=x", "pkg-1.0.dist-info/RECORD": ""}
    assert not claims.claims_of([held(ground, whole)], ground).hold(ground.place("pkg/b.py") or "")
    for rows in ({"pkg/a.py": "sha256=x"}, whole | {"pkg/gone.py": "sha256=x"}):
        claimed = claims.claims_of([held(ground, rows, "other")], ground)
        assert claimed.hold(ground.place("pkg/b.py") or "")
        assert not claimed.hold(ground.place("onnxruntime/b.py") or "")


def test_a_module_that_is_there_compiled_alone_is_claimed(ground: Ground) -> None:
    record = ground.packages / "pkg-1.0.dist-info" / "RECORD"
    record.write_text("pkg/sub/x.pyc,sha256=x,1\npkg/__pycache__/a.cpython-311.pyc,,\n")
    assert list(recorded_files(record.parent)) == ["pkg/sub/x.pyc"]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_record_that_another_program_wrote_is_read(ground: Ground, encoding: str) -> None:
    record = ground.packages / "pkg-1.0.dist-info" / "RECORD"
    record.write_text("pkg/a.py,sha256=x,1\n", encoding=encoding)
    assert list(recorded_files(record.parent)) == ["pkg/a.py"]


def test_what_an_egg_lists_is_claimed(ground: Ground) -> None:
    egg = ground.packages / "theirs-1.0.egg-info"
    egg.mkdir()
    (egg / "PKG-INFO").write_text("Name: theirs\nVersion: 1.0\n")
    (egg / "installed-files.txt").write_text("../pkg/a.py\nPKG-INFO\n")
    found = read_held(inventory.inspect(ground.prefix))
    assert claims.claims_of(found, ground).hold(ground.place("pkg/a.py") or "")


def test_names_are_compared_as_disks_may_spell_them(ground: Ground) -> None:
    claimed = claims.claims_of([held(ground, {"pkg/u\u0308.py": "sha256=x"})], ground)
    assert claimed.hold(ground.place("pkg/\u00fc.py") or "")


def test_nobody_claims_a_folder_that_many_share(ground: Ground) -> None:
    claimed = claims.claims_of([held(ground, {}, "nvidia-nccl-cu12", tops=("nvidia",))], ground)
    assert not claimed.hold(ground.place("nvidia/cublas/lib/x.so") or "")
    assert claimed.hold(ground.place("nvidia/nccl/lib/x.so") or "")


def test_a_compiled_file_belongs_to_whom_its_source_does(ground: Ground) -> None:
    whole = {"pkg/a.py": "sha256=x", "pkg-1.0.dist-info/RECORD": ""}
    claimed = claims.claims_of([held(ground, whole)], ground)
    assert claimed.hold(ground.place("pkg/__pycache__/a.cpython-311.opt-1.pyc") or "")
    assert not claimed.hold(ground.place("pkg/__pycache__/b.cpython-311.pyc") or "")
