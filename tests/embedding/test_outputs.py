"""Outputs appear whole or not at all, and an npy file reads back as the standard says."""

import ast
import contextlib
import errno
import io
import os
import pty
import signal
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from imprint import touch
from imprint.embedding.outputs import Output, npy_head
from imprint.errors import ImprintError, NoSpaceError, UsageError

ROOT = Path(__file__).resolve().parents[2]
ROW = struct.pack("<2f", 0.6, 0.8)


def parse_npy(data: bytes) -> tuple[tuple[int, int], bytes]:
    """Read an npy file as NEP 1 describes it."""
    assert data[:8] == b"\x93NUMPY\x01\x00"
    length = int.from_bytes(data[8:10], "little")
    assert (10 + length) % 64 == 0
    head = ast.literal_eval(data[10 : 10 + length].decode("ascii"))
    assert head["descr"] == "<f4"
    assert head["fortran_order"] is False
    return head["shape"], data[10 + length :]


@pytest.mark.parametrize("rows", [0, 1, 10**12])
def test_the_head_has_one_length_for_every_number_of_rows(rows: int) -> None:
    assert parse_npy(npy_head(rows, 384)) == ((rows, 384), b"")
    assert len(npy_head(rows, 384)) == 128


@pytest.mark.parametrize("form", ["jsonl", "npy", "text"])
def test_a_file_appears_only_when_it_is_finished(tmp_path: Path, form: str) -> None:
    place = tmp_path / "out"
    place.write_bytes(b"before")
    with Output(place, io.BytesIO(), form, 2) as output:
        output.write(1, ROW)
        output.write(2, ROW * 2)
        assert place.read_bytes() == b"before"
        output.finish()
    data = place.read_bytes()
    assert (parse_npy(data) if form == "npy" else data) == (((3, 2), ROW * 3) if form == "npy" else ROW * 3)
    assert list(tmp_path.iterdir()) == [place]


def test_a_run_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    place = tmp_path / "out"
    place.write_bytes(b"before")
    with Output(place, io.BytesIO(), "npy", 2) as output:
        output.write(1, ROW)  # and no finish
    assert place.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [place]


WRITES = """
import io, os, signal, sys
from pathlib import Path
from imprint.embedding.outputs import Output
with Output(Path(sys.argv[1]), io.BytesIO(), "text", 2) as output:
    output.write(1, b"x" * 64)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_run_that_is_killed_leaves_nothing_beside(tmp_path: Path) -> None:
    descriptor = touch.create_unnamed(tmp_path / "probe", within=tmp_path)
    if descriptor is None:
        pytest.skip("no files without a name here")
    os.close(descriptor)
    ended = subprocess.run([sys.executable, "-c", WRITES, tmp_path / "out"], cwd=ROOT, check=False)
    assert ended.returncode == -signal.SIGKILL
    assert list(tmp_path.iterdir()) == []


def test_where_every_file_has_a_name_it_is_written_beside_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(touch, "create_unnamed", lambda _path, **_: None)
    place = tmp_path / "out"
    place.touch(mode=0o600)
    with Output(place, io.BytesIO(), "text", 2) as output:
        output.write(1, b"1 0\n")
        assert len(list(tmp_path.iterdir())) == 2
        output.finish()
    assert (place.read_bytes(), place.stat().st_mode & 0o777) == (b"1 0\n", 0o600)
    assert list(tmp_path.iterdir()) == [place]


@pytest.mark.skipif(os.name == "nt", reason="permissions of POSIX")
def test_a_file_that_was_private_stays_private(tmp_path: Path) -> None:
    (tmp_path / "out").touch(mode=0o600)
    with Output(tmp_path / "out", io.BytesIO(), "text", 2) as output:
        output.finish()
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o600


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("real")
    with Output(tmp_path / "link", io.BytesIO(), "text", 2) as output:
        output.write(1, b"1 0\n")
        output.finish()
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"1 0\n"


def test_a_link_that_leads_to_itself_is_named_and_stays(tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to("loop")
    (tmp_path / "other").symlink_to("loop")
    for path in (loop, tmp_path / "other", loop / "out"):
        with pytest.raises(UsageError, match="is a link that leads to itself"), Output(path, io.BytesIO(), "text", 2):
            pass
    assert loop.is_symlink()


def test_a_stream_gets_rows_as_they_come_and_npy_at_the_end() -> None:
    stream = io.BytesIO()
    with Output(None, stream, "jsonl", 2) as output:
        output.write(1, b"{}\n")
        assert stream.getvalue() == b"{}\n"
        output.finish()
    stream = io.BytesIO()
    with Output(None, stream, "npy", 2) as output:
        output.write(1, ROW)
        assert stream.getvalue() == b""
        output.finish()
    assert parse_npy(stream.getvalue()) == ((1, 2), ROW)
    assert not stream.closed


def break_off(output: Output, error: BaseException) -> None:
    """Write two rows, then fail."""
    with contextlib.suppress(type(error)), output:
        output.write(2, ROW * 2)
        raise error


@pytest.mark.parametrize("form", ["jsonl", "npy"])
@pytest.mark.parametrize("error", [KeyboardInterrupt(), ImprintError("the worker crashed", code="worker-crashed")])
def test_a_run_that_is_broken_off_keeps_what_was_done_beside_its_place(
    tmp_path: Path, form: str, error: BaseException
) -> None:
    place, taken = tmp_path / "out", tmp_path / "out.partial"
    place.write_bytes(b"before")
    taken.write_bytes(b"somebody's")
    output = Output(place, io.BytesIO(), form, 2)
    break_off(output, error)
    assert output.kept == tmp_path / "out.partial-2"
    data = output.kept.read_bytes()
    assert (parse_npy(data) if form == "npy" else data) == (((2, 2), ROW * 2) if form == "npy" else ROW * 2)
    assert (place.read_bytes(), taken.read_bytes()) == (b"before", b"somebody's")
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.parametrize("error", [UsageError("line 9 is odd"), NoSpaceError("full"), ValueError("a bug")])
def test_what_has_to_come_again_anyway_is_not_kept(tmp_path: Path, error: Exception) -> None:
    output = Output(tmp_path / "out", io.BytesIO(), "jsonl", 2)
    break_off(output, error)
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_kept_of_nothing(tmp_path: Path) -> None:
    output = Output(tmp_path / "out", io.BytesIO(), "npy", 2)
    with pytest.raises(KeyboardInterrupt), output:
        raise KeyboardInterrupt
    assert (output.kept, list(tmp_path.iterdir())) == (None, [])


class Terminal(io.BytesIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        """Say so."""
        return True


def test_npy_is_not_written_to_a_terminal(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="binary"), Output(None, Terminal(), "npy", 2):
        pass
    with Output(tmp_path / "out", Terminal(), "npy", 2), Output(None, Terminal(), "text", 2):
        pass
    manager, terminal = pty.openpty()
    try:
        with pytest.raises(UsageError, match="binary"), Output(Path(os.ttyname(terminal)), io.BytesIO(), "npy", 2):
            pass
    finally:
        os.close(manager)
        os.close(terminal)


def test_a_pipe_that_a_shell_names_is_written_to() -> None:
    """`--output >(gzip >file)` gives a name like /dev/fd/63."""
    reader, writer = os.pipe()
    with Output(Path(f"/dev/fd/{writer}"), io.BytesIO(), "text", 2) as output:
        output.write(1, b"1 0\n")
        output.finish()
    os.close(writer)
    with open(reader, "rb") as stream:  # noqa: PTH123
        assert stream.read() == b"1 0\n"


def test_no_rows_make_an_empty_array(tmp_path: Path) -> None:
    with Output(tmp_path / "out", io.BytesIO(), "npy", 384) as output:
        output.finish()
    assert parse_npy((tmp_path / "out").read_bytes()) == ((0, 384), b"")


def test_a_place_that_cannot_be_is_refused_at_once(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "no" / "out"):
        with pytest.raises(UsageError), Output(path, io.BytesIO(), "npy", 2):
            pass


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")  # noqa: PTH110
def test_a_full_disk_is_said() -> None:
    with Output(Path("/dev/full"), io.BytesIO(), "npy", 2) as output:
        output.write(1, ROW)
        with pytest.raises(NoSpaceError, match="/dev/full"):
            output.finish()


def test_a_reader_that_is_gone_is_passed_on() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "wb", buffering=0) as stream:  # noqa: PTH123
        output = Output(None, stream, "jsonl", 2).__enter__()
        with pytest.raises(BrokenPipeError):
            output.write(1, b"{}\n")


@pytest.mark.parametrize("form", ["jsonl", "npy"])
@pytest.mark.parametrize("number", [errno.EPERM, errno.EBUSY, errno.EIO])
def test_a_place_that_refuses_the_finished_file_gets_it_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str, number: int
) -> None:
    """An immutable file, one that is a mount of its own, another user's in a folder for everybody."""
    place = tmp_path / "out"
    place.write_bytes(b"before")
    real = touch.move

    def move(source: Path, target: Path, *, within: Path) -> None:
        if target == place:
            raise OSError(number, os.strerror(number), str(target))
        real(source, target, within=within)

    monkeypatch.setattr(touch, "move", move)
    output = Output(place, io.BytesIO(), form, 2)

    def write() -> None:
        with output:
            output.write(1, ROW)
            output.finish()

    with pytest.raises(ImprintError) as caught:
        write()
    assert caught.value.specific_code == "output-not-writable"
    assert caught.value.hint == "name another file with `--output`"
    assert output.kept == tmp_path / "out.partial"
    data = output.kept.read_bytes()
    assert (parse_npy(data) if form == "npy" else data) == (((1, 2), ROW) if form == "npy" else ROW)
    assert place.read_bytes() == b"before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "out.partial"]
