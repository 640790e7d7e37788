"""What no RECORD names is removed only where it is the rest of a build, and never outside the environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from imprint.runtime import leftovers
from imprint.runtime.claims import Claims, Ground

NOBODY = Claims(frozenset())


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    """Return an environment with one leftover, beside things that are somebody else's."""
    folder = tmp_path / "env" / "lib" / "python3.11" / "site-packages"
    (folder / "onnxruntime").mkdir(parents=True)
    (folder / "onnxruntime" / "left.py").touch()
    (tmp_path / "else" / "empty").mkdir(parents=True)
    (tmp_path / "else" / "file").touch()
    (tmp_path / "env" / "empty").mkdir()
    (tmp_path / "env" / "bin").mkdir()
    return Ground(tmp_path / "env", folder, tmp_path / "env" / "bin")


def test_only_what_lies_in_the_folder_of_packages_is_removed(ground: Ground, tmp_path: Path) -> None:
    """Absolute paths, `..` and links that lead out are left alone, and so are empty folders there."""
    (ground.packages / "link").symlink_to(tmp_path / "else")
    (ground.packages / "empty").mkdir()
    outside = tmp_path / "else" / "file"
    named = [str(outside), "../../../../else/file", "../../../empty", "link/file", "/", "..", "empty", "a\0b"]
    assert leftovers.remove(ground, ["onnxruntime", "link", "..", "."], [*named, "onnxruntime/left.py"], NOBODY) == 1
    assert outside.exists()
    assert (tmp_path / "else" / "empty").is_dir()
    assert (tmp_path / "env" / "empty").is_dir()
    assert (ground.packages / "empty").is_dir()
    assert not (ground.packages / "onnxruntime").exists()


def test_what_no_wheel_brings_stays(ground: Ground) -> None:
    for name in ("notes.txt", "data.csv", "Makefile"):
        (ground.packages / "onnxruntime" / name).touch()
    assert leftovers.unclaimed(ground, ["onnxruntime"], NOBODY) == ("onnxruntime/left.py",)
    leftovers.remove(ground, ["onnxruntime"], [], NOBODY)
    assert sorted(path.name for path in (ground.packages / "onnxruntime").iterdir()) == [
        "Makefile",
        "data.csv",
        "notes.txt",
    ]


def test_a_claimed_file_stays_however_it_is_spelled(ground: Ground) -> None:
    place = ground.place("./onnxruntime//x/../left.py")
    assert place is not None
    assert leftovers.remove(ground, ["onnxruntime"], ["onnxruntime/left.py"], Claims(frozenset({place}))) == 0


def test_what_was_compiled_goes_with_its_source_and_no_other(ground: Ground) -> None:
    cache = ground.packages / "onnxruntime" / "__pycache__"
    cache.mkdir()
    for name in ("left.cpython-311.pyc", "left.cpython-311.opt-1.pyc", "theirs.cpython-311.pyc"):
        (cache / name).touch()
    place = ground.place("onnxruntime/left.py")
    assert place is not None
    leftovers.remove_files(ground, [place])
    assert [path.name for path in cache.iterdir()] == ["theirs.cpython-311.pyc"]
