"""The sandbox that destructive tests stand on holds, tells what changed, and fails loudly where it cannot be made."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support import sandbox
from support.sandbox import SandboxError, differences, run_in, sandboxed, snapshot


def test_nothing_outside_the_folder_can_be_written(tmp_path: Path) -> None:
    scratch, outside = tmp_path / "scratch ü", tmp_path / "outside"
    scratch.mkdir()
    outside.mkdir()
    (outside / "file").write_text("owned")
    before = snapshot(outside)

    def body() -> list[str]:
        (scratch / "mine").write_text("x")
        refused = []
        for attempt in (
            (outside / "file").unlink,
            lambda: (outside / "file").write_text("y"),
            (outside / "new").mkdir,
            lambda: (outside / "file").rename(outside / "moved"),
            lambda: outside.chmod(0o700),
            lambda: Path(f"/imprint-{os.getpid()}").touch(),
            lambda: scratch.rename(tmp_path / "moved"),
        ):
            try:
                attempt()
            except OSError as error:
                refused.append(type(error).__name__)
        child = subprocess.run(["rm", "-rf", outside], check=False, capture_output=True)
        assert child.returncode != 0
        return refused

    assert len(run_in(scratch, body)) == 7
    assert differences(before, snapshot(outside)) == []
    assert (scratch / "mine").read_text() == "x"


def test_processes_and_devices_can_be_used(tmp_path: Path) -> None:
    def body() -> str:
        Path("/dev/null").write_text("x")
        assert Path("/proc/self/maps").read_bytes()
        return subprocess.run([sys.executable, "-c", "print(1)"], check=True, capture_output=True, text=True).stdout

    assert run_in(tmp_path, body) == "1\n"


def test_the_superuser_can_be_made_to_heed_modes(tmp_path: Path) -> None:
    (tmp_path / "closed").write_text("x")
    (tmp_path / "closed").chmod(0)
    (tmp_path / "fixed").mkdir(mode=0o555)

    def body() -> list[int]:
        for attempt in ((tmp_path / "closed").read_text, (tmp_path / "fixed" / "new").touch):
            with pytest.raises(PermissionError):
                attempt()
        return [subprocess.run(["cat", tmp_path / "closed"], check=False, capture_output=True).returncode]

    assert run_in(tmp_path, body, plain=True) == [1]


def test_what_fails_inside_fails_outside_with_its_words(tmp_path: Path) -> None:
    def body() -> None:
        raise ValueError("the very reason")

    with pytest.raises(SandboxError, match="the very reason"):
        run_in(tmp_path, body)


def test_what_hangs_is_ended_and_fails(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(SandboxError, match="did not end"):
        run_in(tmp_path, (tmp_path / "fifo").read_text, seconds=0.5)


def test_what_dies_is_no_pass(tmp_path: Path) -> None:
    with pytest.raises(SandboxError, match="without an answer"):
        run_in(tmp_path, lambda: os._exit(0))


def test_without_namespaces_it_fails_and_runs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # No namespace has these bits: the system call refuses them.
    monkeypatch.setattr(sandbox, "_CLONE_NEWNS", 0x1000)
    monkeypatch.setattr(sandbox, "_CLONE_NEWUSER", 0x1000)
    with pytest.raises(SandboxError, match="nothing that deletes is tried"):
        run_in(tmp_path, (tmp_path / "ran").touch)
    assert not (tmp_path / "ran").exists()


@sandboxed
def test_a_whole_test_can_run_inside(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="Read-only"):
        (tmp_path.parent / "beside").touch()


def test_every_kind_of_change_is_told(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "folder" / "empty").mkdir(parents=True)
    for name in ("content", "mode", "linked", "gone", "folder/deep"):
        (root / name).write_text("before")
    (root / "link").symlink_to("content")
    (root / "kind").symlink_to("nowhere")
    os.mkfifo(root / "fifo")
    before = snapshot(root)
    assert differences(before, snapshot(root)) == []
    (root / "content").write_text("after!")
    (root / "mode").chmod(0o600)
    os.link(root / "linked", tmp_path / "second name")
    (root / "gone").unlink()
    (root / "link").unlink()
    (root / "link").symlink_to("mode")
    (root / "kind").unlink()
    (root / "kind").mkdir()
    (root / "folder" / "empty").rmdir()
    (root / "folder" / "deep").write_text("after!")
    (root / "new").touch()
    told = [line.split(": ")[:2] for line in differences(before, snapshot(root))]
    assert told == [
        ["changed", "content"],
        ["changed", "folder/deep"],
        ["gone", "folder/empty"],
        ["gone", "gone"],
        ["changed", "kind"],
        ["changed", "link"],
        ["changed", "linked"],
        ["changed", "mode"],
        ["new", "new"],
    ]
