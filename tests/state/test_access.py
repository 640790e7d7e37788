"""What the system refuses is told with its reason, and with a command only where one can help."""

from __future__ import annotations

import errno
import os
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from imprint import access
from imprint.errors import StateError
from imprint.state.files import read_json


@pytest.mark.parametrize(
    ("number", "words", "hint"),
    [
        (errno.EIO, "input/output error", "dmesg"),
        (errno.ESTALE, "stale file handle", "mount it again"),
        (errno.EMFILE, "too many files open", "ulimit -n"),
        (errno.ENFILE, "too many files open", "close some programs"),
        (errno.ENOMEM, "out of memory", "close some programs"),
        (errno.EROFS, "read-only", "IMPRINT_HOME"),
        (errno.ENAMETOOLONG, "too long", "shorter path"),
    ],
)
def test_a_fact_about_the_system_is_named(tmp_path: Path, number: int, words: str, hint: str) -> None:
    path = tmp_path / "state.json"
    error = access.error_of(OSError(number, os.strerror(number), str(path)))
    assert error is not None
    assert str(path) in error.message
    assert words in error.message.lower()
    assert hint in (error.hint or "")
    assert error.specific_code == access.CODES[number]


def test_a_path_that_is_too_long_is_blamed_on_the_home_only_in_it(tmp_path: Path) -> None:
    error = OSError(errno.ENAMETOOLONG, "File name too long", str(tmp_path / "home" / "data"))
    for name, hint in (("home", "set IMPRINT_HOME to a shorter path"), ("other", "use a shorter path")):
        told = access.error_of(error, tmp_path / name)
        assert told is not None
        assert told.hint == hint


def test_other_errors_say_nothing_about_the_system() -> None:
    assert access.error_of(OSError(errno.ENOENT, "No such file", "/x")) is None
    assert access.error_of(OSError("no number")) is None


def test_a_link_to_itself_is_named_and_the_remedy_works(tmp_path: Path) -> None:
    loop = tmp_path / "data"
    loop.symlink_to(loop)
    with pytest.raises(StateError, match="leads to itself") as caught:
        read_json(loop / "current.json")
    command = re.search("`(rm [^`]+)`", caught.value.hint or "")
    assert command is not None
    subprocess.run(command[1].split(), check=True)
    assert read_json(loop / "current.json") is None


def test_a_file_in_the_place_of_a_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "data").touch()
    with pytest.raises(StateError, match=r"`[^`]*data` is not a folder"):
        read_json(tmp_path / "data" / "current.json")


def test_too_many_open_files_are_not_damage(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    path.write_text('{"schema": 1}', encoding="utf-8")
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, limits[1]))
    try:
        with pytest.raises(StateError, match="too many files open"):
            read_json(path)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert read_json(path) == {"schema": 1}


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other owners")
def test_a_user_without_a_name_is_told_by_number() -> None:
    status = os.stat_result((0o100600, 0, 0, 1, 4242424, 0, 0, 0, 0, 0))
    assert access.owner_of(status) == "user 4242424"
