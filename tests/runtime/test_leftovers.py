"""What no RECORD names is removed only where it is the rest of a build, and never outside the environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from imprint.runtime.distributions.claims import Claims, Ground
from imprint.runtime.foreign import leftovers

NOBODY = Claims.of(())


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


def names(ground: Ground, places: tuple[str, ...]) -> list[str]:
    return [ground.relative(place) for place in places]


def test_only_what_lies_in_the_folder_of_packages_is_found(ground: Ground, tmp_path: Path) -> None:
    """Absolute paths, `..` and links that lead out are left alone, and so are folders."""
    (ground.packages / "link").symlink_to(tmp_path / "else")
    (ground.packages / "empty").mkdir()
    outside = tmp_path / "else" / "file"
    named = [str(outside), "../../../../else/file", "../../../empty", "link/file", "/", "..", "empty", "a\0b"]
    found = leftovers.find(ground, ["onnxruntime", "link", "..", "."], [*named, "onnxruntime/left.py"], NOBODY)
    assert names(ground, found) == ["onnxruntime/left.py"]


def test_what_no_wheel_brings_is_none(ground: Ground) -> None:
    for name in ("notes.txt", "data.csv", "Makefile"):
        (ground.packages / "onnxruntime" / name).touch()
    assert leftovers.unclaimed(ground, ["onnxruntime"], NOBODY) == ("onnxruntime/left.py",)


def test_a_claimed_file_is_none_however_it_is_spelled(ground: Ground) -> None:
    place = ground.place("./onnxruntime//x/../left.py")
    assert place is not None
    assert leftovers.find(ground, ["onnxruntime"], ["onnxruntime/left.py"], Claims.of([place])) == ()


def test_only_folders_that_a_change_left_empty_go(ground: Ground, tmp_path: Path) -> None:
    deep = ground.packages / "onnxruntime" / "a" / "b"
    deep.mkdir(parents=True)
    (ground.packages / "onnxruntime" / "left.py").unlink()
    (ground.packages / "theirs").mkdir()
    leftovers.remove_empty_folders(ground, [deep])
    assert [path.name for path in ground.packages.iterdir()] == ["theirs"]
    assert (tmp_path / "env" / "empty").is_dir()
