from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from imprint import ownership
from imprint.errors import BusyError, ImprintError
from imprint.paths import Home
from imprint.state import mutex

HOLD = """
import sys, time
from pathlib import Path
from imprint.paths import Home
from imprint.state import mutex
with mutex.hold(Home(Path(sys.argv[1])), 0, command="imprint setup"):
    print("held", flush=True)
    time.sleep(60)
"""
FOREIGN = """
import fcntl, os, sys, time
file = os.open(sys.argv[1] + "/setup.lock", os.O_RDWR | os.O_CREAT)
fcntl.flock(file, fcntl.LOCK_EX)
print("held", flush=True)
time.sleep(60)
"""


def _start(script: str, root: Path) -> subprocess.Popen[str]:
    folder = Path(mutex.__file__).parents[2]
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(root)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(folder)},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


def test_a_second_holder_is_refused_at_once_and_told_who(tmp_path: Path) -> None:
    home = Home(tmp_path / "mit Leerzeichen ü")
    process = _start(HOLD, home.root)
    try:
        started = time.monotonic()
        with pytest.raises(BusyError) as caught, mutex.hold(home, 0):
            pass
        assert time.monotonic() - started < 1
        assert f"process {process.pid} (`imprint setup`, since 20" in caught.value.message
    finally:
        _end(process)


def test_a_waiter_waits_for_a_stopped_holder_and_then_says_so(tmp_path: Path) -> None:
    process = _start(HOLD, tmp_path)
    said: list[str] = []
    try:
        process.send_signal(signal.SIGSTOP)
        started = time.monotonic()
        with pytest.raises(BusyError), mutex.hold(Home(tmp_path), 0.4, on_wait=said.append):
            pass
        assert 0.4 <= time.monotonic() - started < 2
        assert len(said) == 1
        assert str(process.pid) in said[0]
    finally:
        process.send_signal(signal.SIGCONT)
        _end(process)


def test_a_killed_holder_frees_the_mutex(tmp_path: Path) -> None:
    process = _start(HOLD, tmp_path)
    _end(process)
    with mutex.hold(Home(tmp_path), 0):
        found = mutex.holder(Home(tmp_path))
        assert found is not None
        assert found.pid == os.getpid()
    assert mutex.holder(Home(tmp_path)) is None


def test_a_foreign_holder_is_called_unknown_even_beside_a_stale_note(tmp_path: Path) -> None:
    _end(_start(HOLD, tmp_path))
    process = _start(FOREIGN, tmp_path)
    try:
        with pytest.raises(BusyError, match="an unidentified process"), mutex.hold(Home(tmp_path), 0):
            pass
    finally:
        _end(process)


@pytest.mark.parametrize("note", [b"", b"\0", b"[]", b'{"pid": "x"}', b'{"pid": -1}', b'{"pid": 1e999}'])
def test_a_broken_note_names_nobody(tmp_path: Path, note: bytes) -> None:
    (tmp_path / "setup.lock.holder").write_bytes(note)
    assert mutex.holder(Home(tmp_path)) is None


def test_a_home_that_cannot_be_made_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(ImprintError) as caught, mutex.hold(Home(tmp_path / "file" / "home"), 0):
        pass
    assert caught.value.specific_code == "home-not-writable"
    assert caught.value.hint


@pytest.mark.parametrize("name", ["setup.lock", "setup.lock.holder"])
def test_links_in_the_place_of_our_files_are_not_followed(tmp_path: Path, name: str) -> None:
    home, theirs = Home(tmp_path / "home"), tmp_path / "theirs.txt"
    ownership.claim(home)
    theirs.write_text("theirs", encoding="utf-8")
    (home.root / name).symlink_to(theirs)
    if name == "setup.lock":
        with pytest.raises(ImprintError), mutex.hold(home, 0):
            pytest.fail("a link was taken for the mutex")
    else:
        with mutex.hold(home, 0):
            assert not (home.root / name).is_symlink()
    assert theirs.read_text(encoding="utf-8") == "theirs"


def test_what_killed_writers_left_is_swept_and_nothing_else(tmp_path: Path) -> None:
    home = Home(tmp_path)
    ownership.claim(home)
    ours = [
        "data/.current.json.0123abcd.tmp",
        "data/inplace/v-1/.journal.json.x_y0abcd.tmp",
        ".setup.lock.holder.0123abcd.tmp",
    ]
    ours.append("runtimes/g/.manifest.json.0123abcd.tmp")
    theirs = [
        "data/.notes.tmp",
        "data/notes.0123abcd.tmp",
        ".config.toml.0123abcd.tmp",
        "data/inplace/.x.0123abcd.tmp/f",
    ]
    for name in (*ours, *theirs):
        (home.root / name).parent.mkdir(parents=True, exist_ok=True)
        (home.root / name).write_text("x", encoding="utf-8")
    (home.data / ".link.json.0123abcd.tmp").symlink_to(home.root / theirs[0])
    with mutex.hold(home, 0):
        pass
    assert [name for name in ours if (home.root / name).exists()] == []
    assert [name for name in theirs if not (home.root / name).exists()] == []
    assert (home.data / ".link.json.0123abcd.tmp").is_symlink()


@pytest.mark.parametrize("umask", [0o002, 0o077])
def test_the_mutex_can_be_taken_by_whoever_the_umask_lets(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        with mutex.hold(Home(tmp_path / "home"), 0):
            modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "home").iterdir()}
    finally:
        os.umask(before)
    assert modes == dict.fromkeys([".imprint-home", "setup.lock", "setup.lock.holder"], 0o666 & ~umask)
