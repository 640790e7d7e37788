"""What a RECORD names outside its environment is never touched, whatever it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from imprint.runtime.leftovers import is_within, keep, remove_unclaimed


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    """Return a folder of packages with one leftover, beside things that are somebody else's."""
    folder = tmp_path / "env" / "lib" / "python3.11" / "site-packages"
    (folder / "onnxruntime").mkdir(parents=True)
    (folder / "onnxruntime" / "left.py").touch()
    (tmp_path / "else" / "empty").mkdir(parents=True)
    (tmp_path / "else" / "file").touch()
    (tmp_path / "env" / "empty").mkdir()
    return folder


def test_only_what_lies_in_the_folder_of_packages_is_removed(packages: Path, tmp_path: Path) -> None:
    """Absolute paths, `..` and links that lead out are left alone, and so are empty folders there."""
    (packages / "link").symlink_to(tmp_path / "else")
    outside = tmp_path / "else" / "file"
    named = [str(outside), "../../../../else/file", "../../../empty", "link/file", "/", "..", "onnxruntime/left.py"]
    assert remove_unclaimed(packages, ["onnxruntime", "link"], named) == 1
    assert outside.exists()
    assert (tmp_path / "else" / "empty").is_dir()
    assert (tmp_path / "env" / "empty").is_dir()
    assert not (packages / "onnxruntime").exists()


def test_nothing_outside_is_kept_as_a_copy(packages: Path, tmp_path: Path) -> None:
    outside = tmp_path / "else" / "file"
    outside.write_text("owned")
    keep(packages, [str(outside), "../../../../else/file", "onnxruntime/left.py"], tmp_path / "kept")
    assert outside.read_text() == "owned"
    assert [path.name for path in (tmp_path / "kept").rglob("*") if path.is_file()] == ["left.py"]


@pytest.mark.parametrize("path", ["", ".", "..", "/", "/etc/hosts", "../x", "a/../../x"])
def test_a_path_that_leaves_is_not_within(packages: Path, path: str) -> None:
    assert not is_within(packages, path)
