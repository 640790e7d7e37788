"""However a command ends, `main` says it once, in the right place, with the right exit code."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cli.cli_fakes import CLASSES
from imprint.errors import EXIT_CODES, UsageError
from imprint_cli.app import main, wants_json
from imprint_cli.commands.embed import embed
from imprint_cli.registry import Entry, words_of

NAMES = ("fine", "unhappy", "refuse", "crash", "stumble", "interrupt", "bare")
FAKES: dict[str, Entry] = {name: Entry("cli.cli_fakes", name) for name in NAMES}


@pytest.fixture(autouse=True)
def _temporary_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("IMPRINT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("NO_COLOR", "1")


def run(capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(list(arguments), FAKES)
    out, err = capfd.readouterr()
    assert "Traceback" not in err
    return code, out, err


def document(out: str) -> dict[str, Any]:
    loaded = json.loads(out)
    assert list(loaded) == ["schema", "command", "ok", "data", "warnings", "errors"]
    return dict(loaded)


def test_an_answer_is_text_on_stdout_and_remarks_on_stderr(capfd: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capfd, "fine")
    assert (code, out) == (0, "é\\udc80\n")
    assert err == "warning: something is odd\nhint: look\n"


def test_an_answer_is_one_document_with_json(capfd: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capfd, "fine", "--json")
    assert (code, err) == (0, "")
    assert document(out) == {
        "schema": 1,
        "command": "fine",
        "ok": True,
        "data": {"path": "é\udc80"},
        "warnings": [{"code": "odd", "message": "something is odd", "hint": "look"}],
        "errors": [],
    }


def test_errors_in_an_answer_keep_its_data_and_set_the_exit_code(capfd: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capfd, "unhappy")
    assert (code, out, err) == (5, "partly\n", "error: no way out\n")
    code, out, _ = run(capfd, "unhappy", "--json")
    assert (code, document(out)["ok"], document(out)["data"]) == (5, False, {"path": "a"})


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["model", "fetch", "all"], "`imprint model --help` shows how to use it"),
        (["config", "get", "--bogus"], "`imprint config get --help` shows how to use it"),
        (["nonsense"], "`imprint --help` shows how to use it"),
    ],
)
def test_the_hint_at_an_unknown_word_is_a_command_that_works(
    capfd: pytest.CaptureFixture[str], arguments: list[str], hint: str
) -> None:
    assert main(arguments) == 2
    assert f"hint: {hint}\n" in capfd.readouterr().err
    assert main([*hint.split("`")[1].split()[1:]]) == 0


@pytest.mark.parametrize("code", sorted(CLASSES))
def test_every_error_has_its_exit_code(capfd: pytest.CaptureFixture[str], code: str) -> None:
    expected = EXIT_CODES[code]
    assert run(capfd, "refuse", code) == (expected, "", "error: it did not work\nhint: try `this`\n")
    exit_code, out, err = run(capfd, "refuse", code, "--json")
    assert (exit_code, err) == (expected, "")
    assert document(out)["errors"] == [{"code": code, "message": "it did not work", "hint": "try `this`"}]


def test_a_narrow_code_falls_back_to_its_class(capfd: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capfd, "refuse", "network", "--narrow", "index-says-no", "--json")
    assert (code, document(out)["errors"][0]["code"]) == (5, "index-says-no")


def test_a_bug_leaves_a_log_without_the_texts_it_was_given(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, out, err = run(capfd, "crash", "a private text")
    assert (code, out) == (70, "")
    log = next((tmp_path / "home" / "data" / "logs").iterdir())
    assert str(log) in err
    assert "IndexError" in log.read_text(encoding="utf-8")
    assert "private" not in log.read_text(encoding="utf-8")
    code, out, _ = run(capfd, "crash", "--json")
    assert (code, document(out)["errors"][0]["code"]) == (70, "bug")


def test_a_bug_with_an_unusable_home_is_logged_elsewhere(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    for home in (str(tmp_path / "file"), "relative"):
        monkeypatch.setenv("IMPRINT_HOME", home)
        code, _, err = run(capfd, "crash")
        assert code == 70
        log = Path(err.split("the log is ")[1].splitlines()[0])
        assert log.is_file()
        log.unlink()


def test_what_the_system_refuses_is_no_bug_of_ours(capfd: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capfd, "stumble", "--json")
    assert (code, document(out)["errors"][0]["code"]) == (1, "no-permission")


def test_an_interrupt_is_130(capfd: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capfd, "interrupt")
    assert (code, out) == (130, "")
    assert err.startswith("error: interrupted")
    code, out, _ = run(capfd, "interrupt", "--json")
    assert (code, document(out)["errors"][0]["code"]) == (130, "interrupted")


@pytest.mark.parametrize(
    "arguments",
    [["fine", "--bogus"], ["bogus"], ["fine", "extra"], ["refuse"], ["--bogus"], ["refuse", "--narrow"]],
)
def test_a_command_line_that_makes_no_sense_is_2(capfd: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    code, out, err = run(capfd, *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert "hint: " in err
    code, out, err = run(capfd, "--json", *arguments) if arguments == ["--bogus"] else run(capfd, *arguments, "--json")
    assert (code, err) == (2, "")
    assert document(out)["errors"][0]["code"] == "usage"
    assert document(out)["command"] == (arguments[0] if arguments[0] in FAKES else "imprint")


def test_a_bare_document_stands_for_itself_without_json(capfd: pytest.CaptureFixture[str]) -> None:
    assert json.loads(run(capfd, "bare")[1]) == {"schema": 1}
    assert document(run(capfd, "bare", "--json")[1])["data"] == {"schema": 1}


def test_help_and_version_are_results(capfd: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capfd, "--help")
    assert (code, err) == (0, "")
    assert all(name in out for name in FAKES)
    code, out, err = run(capfd, "--version")
    assert (code, out.split()[0], err) == (0, "imprint", "")


def test_no_command_shows_the_help_on_stderr(capfd: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capfd)
    assert (code, out) == (2, "")
    assert "Commands:" in err


def test_words_and_json_are_read_off_any_command_line() -> None:
    groups = FAKES | {"config": Entry("x", "group")}
    assert words_of(["config", "get", "model.device"], groups) == ("config", "get")
    assert words_of(["--x", "fine", "a"], groups) == ("fine",)
    assert words_of(["nothing"], groups) == ()
    assert wants_json(["fine", "--json"])
    assert not wants_json(["fine", "--", "--json"])


ROOT = Path(__file__).resolve().parents[2]
LAUNCH = "import sys; sys.path[:0] = sys.argv.pop(1).split('|'); from imprint_cli.app import main; sys.exit(main())"


def launched(*arguments: str) -> list[str]:
    return [sys.executable, "-P", "-c", LAUNCH, f"{ROOT}|{ROOT / 'cmd'}", *arguments]


def test_a_closed_pipe_is_quiet() -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as pipe:
        done = subprocess.run(launched("config", "list"), stdout=pipe, stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (1, b"")


needs_full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")


@needs_full
@pytest.mark.parametrize("arguments", [["config", "path"], ["bogus", "--json"]])
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_disk_behind_stdout_is_7(arguments: list[str], unbuffered: str) -> None:
    """Also with Python's own buffering, which keeps what could not be written and tries again at the very end."""
    environ = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(launched(*arguments), stdout=full, stderr=subprocess.PIPE, env=environ, check=False)
    assert done.returncode == 7
    assert b"Traceback" not in done.stderr
    assert b"ignored" not in done.stderr


@needs_full
def test_talk_that_cannot_be_written_is_lost_and_the_exit_code_stays() -> None:
    """A log on a full disk, or `2>&1 | head`, is no reason to end otherwise."""
    with Path("/dev/full").open("wb") as full:
        assert subprocess.run(launched("bogus"), stderr=full, check=False).returncode == 2
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as pipe:
        assert subprocess.run(launched("bogus"), stderr=pipe, check=False).returncode == 2


@pytest.mark.parametrize("moment", ["imprint_cli.app", "imprint_cli.quick"])
def test_ctrl_c_while_the_program_is_being_imported_is_an_answer_too(moment: str, tmp_path: Path) -> None:
    code = (
        "import builtins, signal, sys; sys.path[:0] = sys.argv.pop(1).split('|'); real = builtins.__import__\n"
        "def load(name, *rest):\n"
        f"    name == {moment!r} and {moment!r} not in sys.modules and signal.raise_signal(signal.SIGINT)\n"
        "    return real(name, *rest)\n"
        "from imprint_cli.__main__ import main; builtins.__import__ = load; sys.exit(main())"
    )
    command = [sys.executable, "-P", "-c", code, f"{ROOT}|{ROOT / 'cmd'}", "config", "path", "--json"]
    done = subprocess.run(command, capture_output=True, env={**os.environ, "IMPRINT_HOME": str(tmp_path)}, check=False)
    assert (done.returncode, done.stderr) == (130, b"")
    assert json.loads(done.stdout)["errors"][0]["code"] == "interrupted"


@pytest.mark.parametrize("arguments", [["config", "path"], ["config", "path", "--json"], ["--help"], ["--version"]])
def test_an_answer_that_goes_nowhere_is_a_failure_that_is_said(arguments: list[str]) -> None:
    """As with any other tool whose stdout was closed; a bug it is not."""
    done = subprocess.run(["sh", "-c", f"{shlex.join(launched(*arguments))} >&-"], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (1, b"error: standard output is closed\n")
    both = subprocess.run(["sh", "-c", f"{shlex.join(launched(*arguments))} <&- >&- 2>&-"], check=False)
    assert both.returncode == 1


def test_a_closed_stderr_and_an_ascii_terminal_are_no_reason_to_fail(tmp_path: Path) -> None:
    line = shlex.join(launched("config", "path"))
    assert subprocess.run(["sh", "-c", f"{line} 2>&-"], stdout=subprocess.DEVNULL, check=False).returncode == 0
    environ = {"IMPRINT_HOME": str(tmp_path / "é"), "PYTHONIOENCODING": "ascii", "PATH": os.environ["PATH"]}
    done = subprocess.run(launched("config", "path"), env=environ, capture_output=True, check=False)
    assert done.returncode == 0
    assert b"\\xe9" in done.stdout


def test_an_output_that_ends_with_a_slash_is_not_written_as_a_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="names a folder"):
        embed(["a"], output=f"{tmp_path / 'new'}/")
    assert list(tmp_path.iterdir()) == []


def test_an_empty_name_of_a_file_is_refused_by_the_name_of_its_option() -> None:
    with pytest.raises(UsageError, match="`--input` is empty"):
        embed(None, input="")
    with pytest.raises(UsageError, match="`--output` is empty"):
        embed(["a"], output="")
