from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from imprint import touch
from imprint.errors import NotOursError
from support.sandbox import run_in


@pytest.fixture
def ground(tmp_path: Path) -> Path:
    """Make a folder of ours beside one of somebody else's, with links that lead there."""
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    (ours / "sub").mkdir(parents=True)
    (theirs / "deep").mkdir(parents=True)
    (theirs / "file").write_text("theirs")
    (ours / "file").write_text("ours")
    (ours / "link").symlink_to(theirs / "file")
    (ours / "folder-link").symlink_to(theirs)
    (ours / "loop").symlink_to("loop")
    return ours


def theirs_of(ground: Path) -> dict[str, str]:
    theirs = ground.parent / "theirs"
    return {str(path.relative_to(theirs)): path.read_text() if path.is_file() else "/" for path in theirs.rglob("*")}


OUTSIDE = (
    "../theirs/file",
    "folder-link/file",
    "folder-link/deep",
    "sub/../../theirs/file",
    "nul\0byte",
)
SELF = ("", ".", "..", "sub/..", "folder-link/..")

ACTS: list[Callable[[Path, Path], object]] = [
    lambda path, within: touch.remove_file(path, within=within),
    lambda path, within: touch.remove_tree(path, within=within),
    lambda path, within: touch.remove_empty(path, within=within),
    lambda path, within: touch.move(within / "file", path, within=within),
    lambda path, within: touch.move(path, within / "file", within=within),
    lambda path, within: touch.copy_file(within / "file", path, within=within),
    lambda path, within: touch.write_file(path, b"x", within=within),
    lambda path, within: touch.create_file(path, within=within),
    lambda path, within: touch.open_lock(path, within=within),
    lambda path, within: touch.link_file(within / "file", path, within=within),
]


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("name", [*OUTSIDE, *SELF])
def test_nothing_outside_is_touched_and_the_folder_itself_neither(
    ground: Path, act: Callable[[Path, Path], object], name: str
) -> None:
    before = theirs_of(ground)
    # As a string, since a Path would take some of these apart.
    path = Path(f"{ground}/{name}") if name else Path(f"{ground}/sub/..")
    with pytest.raises((NotOursError, ValueError)):
        act(path, ground)
    assert theirs_of(ground) == before
    assert (ground / "file").read_text() == "ours"


@pytest.mark.parametrize("act", [*ACTS[:2], *ACTS[3:]])
def test_a_loop_of_links_on_the_way_is_an_error_and_not_a_crash(
    ground: Path, act: Callable[[Path, Path], object]
) -> None:
    with pytest.raises((NotOursError, OSError)):
        act(ground / "loop" / "file" / "x", ground)


def test_a_link_is_removed_itself(ground: Path) -> None:
    assert touch.remove_file(ground / "link", within=ground)
    assert touch.remove_tree(ground / "folder-link", within=ground)
    assert not os.path.lexists(ground / "link")
    assert not os.path.lexists(ground / "folder-link")
    assert theirs_of(ground) == {"file": "theirs", "deep": "/"}


def test_a_folder_is_no_file(ground: Path) -> None:
    with pytest.raises(NotOursError):
        touch.remove_file(ground / "sub", within=ground)
    with pytest.raises(IsADirectoryError):
        touch.move(ground / "file", ground / "sub", within=ground)
    assert not touch.remove_file(ground / "nothing", within=ground)
    assert not touch.remove_empty(ground / "folder-link", within=ground)


def test_a_tree_with_links_out_of_it_is_removed_alone(ground: Path) -> None:
    (ground / "sub" / "out").symlink_to(ground.parent / "theirs")
    assert touch.remove_tree(ground / "sub", within=ground)
    assert theirs_of(ground) == {"file": "theirs", "deep": "/"}


def test_a_tree_with_folders_that_may_not_be_written_is_removed(ground: Path) -> None:
    theirs = ground.parent / "theirs"

    def body() -> list[bool]:
        inner = ground / "sub" / "a" / "b"
        inner.mkdir(parents=True)
        (inner / "file").touch()
        (inner / "link").symlink_to(theirs)
        for path in (inner, inner.parent, ground / "sub", theirs):
            path.chmod(0o555)
        removed = touch.remove_tree(ground / "sub", within=ground)
        return [removed, stat.S_IMODE(theirs.stat().st_mode) == 0o555]

    assert run_in(ground.parent, body, plain=True) == [True, True]


def test_a_link_is_replaced_and_not_written_through(ground: Path) -> None:
    touch.write_file(ground / "link", b"new", within=ground)
    assert (ground / "link").read_text() == "new"
    assert not (ground / "link").is_symlink()
    assert theirs_of(ground)["file"] == "theirs"


def test_a_lock_or_a_new_file_never_opens_what_a_link_leads_to(ground: Path) -> None:
    with pytest.raises(OSError, match=os.strerror(errno.ELOOP)):
        touch.open_lock(ground / "link", within=ground)
    with pytest.raises(FileExistsError):
        touch.create_file(ground / "link", within=ground)


def test_modes_follow_the_umask_unless_it_is_a_secret(ground: Path) -> None:
    before = os.umask(0o027)
    try:
        touch.write_file(ground / "new" / "shared", b"", within=ground)
        touch.write_file(ground / "secret", b"", within=ground, private=True)
    finally:
        os.umask(before)
    assert stat.S_IMODE((ground / "new" / "shared").stat().st_mode) == 0o640
    assert stat.S_IMODE((ground / "secret").stat().st_mode) == 0o600


def test_a_copy_shares_nothing_with_its_source(ground: Path) -> None:
    touch.copy_file(ground / "file", ground / "copy", within=ground)
    assert not (ground / "file").samefile(ground / "copy")
    assert (ground / "copy").read_text() == "ours"


def test_a_failed_write_leaves_the_old_content_and_nothing_else(ground: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EIO, "input/output error")

    before = sorted(ground.iterdir())
    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(OSError, match="input/output"):
        touch.write_file(ground / "file", b"new", within=ground)
    assert (ground / "file").read_text() == "ours"
    assert sorted(ground.iterdir()) == before


def test_a_folder_through_a_link_is_not_made(ground: Path) -> None:
    with pytest.raises(NotOursError):
        touch.make_folder(ground / "folder-link" / "new" / "deeper", within=ground)
    touch.make_folder(ground / "a" / "b", within=ground)
    touch.make_folder(ground, within=ground)
    assert (ground / "a" / "b").is_dir()
    assert theirs_of(ground) == {"file": "theirs", "deep": "/"}


def test_new_folders_differ(ground: Path) -> None:
    assert touch.new_folder("x-", within=ground) != touch.new_folder("x-", within=ground)
