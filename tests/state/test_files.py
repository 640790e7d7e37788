from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from imprint import touch
from imprint.errors import ImprintError, NoSpaceError, StateError, StateNewerError
from imprint.paths import Home
from imprint.state import files
from imprint.state.files import read_json, write_json
from imprint.state.findings import UNHEARD, Findings


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "ünder" / "data" / "state.json"
    write_json(path, {"schema": 1, "name": "München \udcff", "n": 2**70}, within=tmp_path)
    assert read_json(path) == {"schema": 1, "name": "München \udcff", "n": 2**70}
    assert [entry.name for entry in path.parent.iterdir()] == ["state.json"]


def test_a_missing_file_is_none(tmp_path: Path) -> None:
    assert read_json(tmp_path / "none.json") is None
    (tmp_path / "file").write_text("x")
    with pytest.raises(StateError, match="is not a folder"):
        read_json(tmp_path / "file" / "none.json")


BAD = {
    "empty": b"",
    "not json": b"hello",
    "nul bytes": b"\0" * 300,
    "list": b"[1]",
    "null": b"null",
    "no schema": b"{}",
    "schema is text": b'{"schema": "1"}',
    "schema is true": b'{"schema": true}',
    "schema is zero": b'{"schema": 0}',
    "schema is a fraction": b'{"schema": 1.5}',
    "bom": b'\xef\xbb\xbf{"schema": 1}',
    "utf-16": '{"schema": 1}'.encode("utf-16"),
    "latin-1": b'{"schema": 1, "name": "\xfc"}',
    "nan": b'{"schema": 1, "x": NaN}',
    "twice": b'{"schema": 1, "schema": 1}',
    "truncated": b'{"schema": 1, "x": ',
    "deep": b"[" * 200_000,
    "digits": b'{"schema": ' + b"9" * 10_000 + b"}",
}


@pytest.mark.parametrize("content", BAD.values(), ids=BAD.keys())
def test_a_damaged_file_is_set_aside_and_reported(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "state.json"
    path.write_bytes(content)
    findings = Findings(writing_in=Home(tmp_path))
    assert read_json(path, findings=findings) is None
    assert not path.exists()
    (finding,) = findings
    assert finding.moved_to is not None
    assert finding.moved_to.read_bytes() == content
    assert finding.moved_to.name.startswith("state.json.corrupt-")
    assert finding.code == "state-set-aside"
    assert str(path) in finding.message


@pytest.mark.parametrize("content", BAD.values(), ids=BAD.keys())
@pytest.mark.parametrize("told", [False, True], ids=["untold", "told"])
def test_reading_changes_nothing(tmp_path: Path, content: bytes, *, told: bool) -> None:
    findings = Findings() if told else UNHEARD
    path = tmp_path / "state.json"
    path.write_bytes(content)
    before = path.stat()
    assert read_json(path, findings=findings) is None
    assert read_json(path, findings=findings) is None
    assert path.read_bytes() == content
    assert path.stat().st_mtime_ns == before.st_mtime_ns
    assert [entry.name for entry in tmp_path.iterdir()] == ["state.json"]
    heard = [(finding.code, finding.moved_to, "nothing was changed" in finding.message) for finding in findings]
    assert heard == [("state-damaged", None, True)] * told


def test_what_is_no_regular_file_is_set_aside(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "kept").write_text("x")
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    (tmp_path / "foreign").symlink_to("/etc/passwd")
    (tmp_path / "device").symlink_to("/dev/zero")
    for name in ("folder", "fifo", "dangling", "foreign", "device"):
        findings = Findings(writing_in=Home(tmp_path))
        assert read_json(tmp_path / name, findings=findings) is None, name
        assert len(findings) == 1, name
        assert not os.path.lexists(tmp_path / name), name
    assert Path("/etc/passwd").exists()


def test_a_huge_file_is_set_aside_without_being_read(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    with path.open("wb") as file:
        file.truncate(files.SIZE_LIMIT * 50)
    assert read_json(path, findings=Findings(writing_in=Home(tmp_path))) is None
    assert not path.exists()


def test_two_damaged_files_in_one_second_are_both_kept(tmp_path: Path) -> None:
    for _ in range(3):
        (tmp_path / "state.json").write_bytes(b"x")
        assert read_json(tmp_path / "state.json", findings=Findings(writing_in=Home(tmp_path))) is None
    assert len(list(tmp_path.iterdir())) == 3


def test_a_newer_file_is_refused_and_untouched(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    path.write_text('{"schema": 2, "what": "ever"}')
    with pytest.raises(StateNewerError) as caught:
        read_json(path)
    assert caught.value.specific_code == "state-newer"
    assert path.read_text() == '{"schema": 2, "what": "ever"}'


def test_what_cannot_be_set_aside_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "state.json"
    path.write_bytes(b"x")

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(touch, "move", refuse)
    with pytest.raises(StateError, match="cannot be set aside"):
        read_json(path, findings=Findings(writing_in=Home(tmp_path)))
    assert path.read_bytes() == b"x"


@pytest.mark.parametrize(
    ("number", "error"), [(errno.ENOSPC, NoSpaceError), (errno.EDQUOT, NoSpaceError), (errno.EROFS, ImprintError)]
)
def test_a_failed_write_keeps_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, error: type[ImprintError]
) -> None:
    path = tmp_path / "state.json"
    write_json(path, {"schema": 1}, within=tmp_path)

    def fail(_: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(error):
        write_json(path, {"schema": 1, "new": True}, within=tmp_path)
    monkeypatch.undo()
    assert read_json(path) == {"schema": 1}
    assert len(list(tmp_path.iterdir())) == 1


def test_the_file_is_synced_before_the_rename_and_the_folder_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    fsync, replace = os.fsync, os.replace

    def seen_fsync(descriptor: int) -> None:
        calls.append("fsync folder" if os.path.isdir(f"/proc/self/fd/{descriptor}") else "fsync file")  # noqa: PTH112 - a descriptor, not a path
        fsync(descriptor)

    def seen_replace(source: str, target: Path) -> None:
        calls.append("replace")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", seen_fsync)
    monkeypatch.setattr(os, "replace", seen_replace)
    write_json(tmp_path / "state.json", {"schema": 1}, within=tmp_path)
    assert calls == ["fsync file", "replace", "fsync folder"]


_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(content=st.binary(max_size=200) | _values.map(lambda value: json.dumps(value).encode()))
def test_no_content_raises_anything_but_newer(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    """Whatever lies there, reading ends in a value, in none with the bytes kept, or in `newer` with nothing touched."""
    folder = tmp_path_factory.mktemp("state")
    path = folder / "state.json"
    path.write_bytes(content)
    findings = Findings(writing_in=Home(folder))
    try:
        value = read_json(path, findings=findings)
    except StateNewerError:
        assert path.read_bytes() == content
        return
    kept = path if value is not None else findings[0].moved_to
    assert kept is not None
    assert kept.read_bytes() == content


def test_a_cut_at_any_point_leaves_old_new_or_none(tmp_path: Path) -> None:
    """A file that was cut or filled with NULs by a power loss counts as none; it is never half believed."""
    path = tmp_path / "state.json"
    write_json(path, {"schema": 1, "generation": "a"}, within=tmp_path)
    whole = path.read_bytes()
    for length in range(len(whole)):
        for content in (whole[:length], whole[:length].ljust(len(whole), b"\0")):
            path.write_bytes(content)
            assert read_json(path) in (None, {"schema": 1, "generation": "a"})
