"""A change of somebody's environment that fails or is killed midway costs nothing, and leaves nothing of itself."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from imprint.errors import ImprintError
from imprint.paths import Home
from imprint.runtime import checkpoint
from imprint.runtime.distributions import inventory
from imprint.runtime.foreign import inplace, journal
from support.foreign import BASE, Foreign, Wheels, assert_exactly, hollow_with_orphans, make_wheels

CPU = "onnxruntime==1.31.1"


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Wheels:
    return make_wheels(tmp_path_factory.mktemp("foreign wheels"))


@pytest.fixture
def foreign(tmp_path: Path, wheels: Wheels) -> Foreign:
    return Foreign(tmp_path, wheels)


def test_a_file_that_cannot_be_renamed_is_a_refusal_with_everything_as_it_was(
    foreign: Foreign, monkeypatch: pytest.MonkeyPatch
) -> None:
    foreign.create(*BASE, CPU)
    before = foreign.tree()
    rename = os.replace

    def refuse(source: str | Path, target: str | Path) -> None:
        if Path(source).name == "libonnxruntime.so.1.31.1" and "site-packages" in str(source):
            raise PermissionError(1, "Operation not permitted", str(source))
        rename(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", refuse)
        with pytest.raises(ImprintError, match="nothing was changed") as caught:
            foreign.setup("cuda13")
    assert caught.value.specific_code == "environment-read-only"
    assert "libonnxruntime.so" in caught.value.message
    assert foreign.tree() == before
    assert not inplace.is_interrupted(foreign.home, foreign.prefix)
    foreign.setup("cuda13")
    assert_exactly(foreign, "cuda13")


def test_a_disk_that_renames_no_folder_is_none_too_many(foreign: Foreign, monkeypatch: pytest.MonkeyPatch) -> None:
    """Overlays, such as a container image's layers, rename no folder that a lower layer holds."""
    foreign.create(*BASE, CPU)
    rename = os.replace

    def refuse(source: str | Path, target: str | Path) -> None:
        if Path(source).is_dir() and not Path(source).is_symlink():
            raise OSError(errno.EXDEV, "Invalid cross-device link", str(source))
        rename(source, target)

    monkeypatch.setattr(os, "replace", refuse)
    foreign.setup("cuda13")
    assert_exactly(foreign, "cuda13")


def test_a_cut_record_never_costs_a_file(foreign: Foreign) -> None:
    """What a cut RECORD does not name any more may still be the build's own."""
    foreign.create(*BASE)
    foreign.setup("cpu")
    record = next(foreign.packages.glob("onnxruntime-1*.dist-info")) / "RECORD"
    lines = record.read_text().splitlines()
    record.write_text("\n".join(lines[: len(lines) // 2]) + "\n")
    before = foreign.tree()
    assert not foreign.prepare("cpu").pending
    assert foreign.tree() == before
    foreign.setup("cuda13")
    assert not foreign.prepare("cuda13").pending


def test_the_owners_files_beside_a_whole_build_stay(foreign: Foreign, monkeypatch: pytest.MonkeyPatch) -> None:
    foreign.create(*BASE, "onnxruntime==1.26.0")
    mine = {"mine.py": "x = 1", "my_model.onnx": "weights", "mine/config.json": "{}", "mine/deep/notes.txt": "words"}
    for name, content in mine.items():
        path = foreign.packages / "onnxruntime" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)

    def theirs() -> dict[str, str]:
        return {name: (foreign.packages / "onnxruntime" / name).read_text() for name in mine}

    def stop(name: str) -> None:
        if name == "inplace-switched":
            raise KeyboardInterrupt

    assert foreign.prepare("cuda13").leftovers == ()
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "listener", stop)
        with pytest.raises(KeyboardInterrupt):
            foreign.setup("cuda13")
    assert theirs() == mine
    for build in ("cpu", "cuda13", "cpu"):
        foreign.setup(build)
        assert theirs() == mine
        assert not foreign.prepare(build).pending


def test_a_build_without_record_gives_its_script_up(foreign: Foreign) -> None:
    foreign.create(*BASE, CPU)
    (next(foreign.packages.glob("onnxruntime-1*.dist-info")) / "RECORD").unlink()
    foreign.setup("cpu")
    assert_exactly(foreign, "cpu")


def test_a_journal_counts_only_while_something_of_it_is_undone(
    foreign: Foreign, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another home may have finished the change since, or the owner undone it."""
    foreign.create(*BASE, CPU)

    def stop(name: str) -> None:
        if name == "inplace-libraries":
            raise KeyboardInterrupt

    def unfinished() -> bool:
        found = journal.read_journal(journal.store_of(foreign.home, foreign.prefix))
        return journal.is_unfinished(found, inventory.inspect(foreign.prefix))

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "listener", stop)
        with pytest.raises(KeyboardInterrupt):
            foreign.setup("cuda13")
    next(foreign.packages.glob("onnxruntime-1*.dist-info/INSTALLER")).unlink()
    assert unfinished()
    other = Foreign(foreign.root, foreign.wheels)
    monkeypatch.setattr(Foreign, "home", property(lambda self: Home(self.root / "another home")))
    other.setup("cuda13")
    monkeypatch.undo()
    assert not unfinished()
    (foreign.packages / "onnxruntime" / "mine_new.py").write_text("x = 1")
    foreign.setup("cuda13")
    assert (foreign.packages / "onnxruntime" / "mine_new.py").read_text() == "x = 1"
    assert not inplace.is_interrupted(foreign.home, foreign.prefix)


def test_rests_of_a_change_that_was_killed_before_they_went_still_go(
    foreign: Foreign, monkeypatch: pytest.MonkeyPatch
) -> None:
    foreign.create(*BASE)
    hollow_with_orphans(foreign)

    def stop(name: str) -> None:
        if name == "inplace-removed":
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "listener", stop)
        with pytest.raises(KeyboardInterrupt):
            foreign.setup("cpu")
    foreign.setup("cpu")
    assert_exactly(foreign, "cpu")
