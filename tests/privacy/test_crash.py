"""The log of a crash, which people are asked to attach, holds nothing of theirs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from imprint_cli.crash import record_crash

SECRET = st.text("abcdefXYZ0189@:/?#&%-_. ", min_size=4, max_size=20).map(lambda text: f"Zq{text}9x")
OPTIONS = ["--index-url", "--find-links", "--input", "--machine", "--model", "--venv"]


def crashed(message: str, arguments: list[str]) -> tuple[str, str]:
    """Return the log and the message of a crash with that message in it, raised while another was handled."""
    error = ValueError(f"it said {message!r}")
    error.__cause__ = KeyError(message)
    try:
        raise error
    except ValueError as caught:
        remark = record_crash(caught, arguments)
    path = remark.message.split("the log is ")[1]
    text = Path(path).read_text("utf-8")
    assert Path(path).stat().st_mode & 0o777 == 0o600
    Path(path).unlink()
    return text, remark.message


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the user's folder, in which the home is."""
    monkeypatch.setenv("HOME", str(tmp_path / "ada"))
    monkeypatch.setenv("IMPRINT_HOME", str(tmp_path / "ada" / "home"))
    return tmp_path


def test_the_log_names_options_and_where_it_happened() -> None:
    text, _ = crashed("boom", ["setup", "--index-url=https://bob:secret@host/", "--yes", "-h", "--", "--my-text"])
    assert "imprint setup --index-url --yes -h\n" in text
    assert "test_crash.py" in text
    assert "KeyError" in text
    assert "ValueError: it said" in text
    assert "--my-text" not in text


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    value=SECRET,
    variable=SECRET,
    option=st.sampled_from(OPTIONS),
    shape=st.sampled_from(["{}={}", "{} {}", "{}"]),
    around=st.sampled_from(["{}", "no `{}` there", "https://bob:{}@host.example/simple", "{}: {}"]),
)
def test_no_value_of_an_argument_or_a_variable_is_in_it(
    value: str, variable: str, option: str, shape: str, around: str
) -> None:
    words = shape.format(option, value).split(" ", 1) if shape != "{}" else [value]
    os.environ["SOME_TOKEN"] = variable
    try:
        text, message = crashed(around.format(value, value) + " and " + variable, ["embed", *words])
    finally:
        del os.environ["SOME_TOKEN"]
    for told in (text, message):
        assert value not in told
        assert variable not in told


def test_the_users_folder_and_name_are_not_in_it(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("USER", "ada")
    text, _ = crashed(f"cannot read {home}/ada/notes.txt, says ada", ["embed"])
    assert str(home) not in text
    assert "~/notes.txt, says $USER" in text
