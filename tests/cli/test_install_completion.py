"""`--install-completion` writes what it says: through a person's own links, and through nobody else's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from imprint.errors import ImprintError, UsageError
from imprint_cli.app import build, main
from imprint_cli.completion import SHELLS, install, with_our_completion
from imprint_cli.registry import COMMANDS
from support.sandbox import snapshot

LINE = SHELLS["bash"].line


@pytest.mark.parametrize("shell", sorted(SHELLS))
def test_what_is_written_is_said_and_written_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], shell: str
) -> None:
    for expected in (1 + bool(SHELLS[shell].start_up), 0):
        install(shell, tmp_path)
        said = capsys.readouterr().out.splitlines()
        assert len([line for line in said if line.startswith("wrote ")]) == expected
    files = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    assert files == {name for name in (SHELLS[shell].script, SHELLS[shell].start_up) if name}
    if SHELLS[shell].start_up:
        assert (tmp_path / SHELLS[shell].start_up).read_text() == f"{SHELLS[shell].line}\n"
    assert "_IMPRINT_COMPLETE" in (tmp_path / SHELLS[shell].script).read_text()


@pytest.mark.parametrize("option", ["--install-completion", "--show-completion"])
def test_a_name_after_the_option_is_refused(capsys: pytest.CaptureFixture[str], option: str) -> None:
    """The script is for the shell that runs the command; one that was named would be ignored."""
    assert main([option, "foo"]) == 2
    assert f"`{option}` takes no value" in capsys.readouterr().err


def test_the_line_loads_a_script_that_bash_understands(tmp_path: Path) -> None:
    install("bash", tmp_path)
    command = ["bash", "--norc", "-ec", "source ~/.bashrc; complete -p imprint"]
    done = subprocess.run(
        command, env={**os.environ, "HOME": str(tmp_path)}, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "_imprint_completion" in done.stdout


def test_a_persons_own_link_stays_a_link_and_its_file_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "dotfiles").mkdir()
    kept = tmp_path / "dotfiles" / "bashrc"
    kept.write_text("alias x=y")
    kept.chmod(0o600)
    (tmp_path / ".bashrc").symlink_to("dotfiles/bashrc")
    install("bash", tmp_path)
    assert (tmp_path / ".bashrc").is_symlink()
    assert kept.read_text() == f"alias x=y\n{LINE}\n"
    assert kept.stat().st_mode & 0o777 == 0o600
    assert f"wrote {kept}, which {tmp_path / '.bashrc'} leads to" in capsys.readouterr().out


def another_users_link(home: Path) -> None:
    (home / "theirs").write_text("theirs\n")
    (home / ".bashrc").symlink_to("theirs")
    os.lchown(home / ".bashrc", 12345, 12345)


def another_users_file(home: Path) -> None:
    (home / ".bashrc").write_text("theirs\n")
    os.chown(home / ".bashrc", 12345, 12345)


def another_users_folder_link(home: Path) -> None:
    (home / "theirs").mkdir()
    (home / ".bash_completions").symlink_to("theirs")
    os.lchown(home / ".bash_completions", 12345, 12345)


def a_link_to_a_link_of_another(home: Path) -> None:
    another_users_link(home)
    (home / ".bashrc").rename(home / "second")
    (home / ".bashrc").symlink_to("second")


def a_fifo(home: Path) -> None:
    os.mkfifo(home / ".bashrc")


def a_folder(home: Path) -> None:
    (home / ".bashrc").mkdir()


def a_device(home: Path) -> None:
    (home / ".bashrc").symlink_to("/dev/null")


def a_loop(home: Path) -> None:
    (home / ".bashrc").symlink_to(".bashrc")


@pytest.mark.skipif(os.name == "nt" or os.geteuid() != 0, reason="only the superuser gives files away")
@pytest.mark.parametrize(
    "hinder",
    [
        *(another_users_link, another_users_file, another_users_folder_link, a_link_to_a_link_of_another),
        *(a_fifo, a_folder, a_device, a_loop),
    ],
)
def test_what_is_not_a_persons_own_file_is_refused_with_nothing_written(tmp_path: Path, hinder: object) -> None:
    assert callable(hinder)
    hinder(tmp_path)
    before = snapshot(tmp_path)
    with pytest.raises(ImprintError) as caught:
        install("bash", tmp_path)
    assert str(tmp_path) in caught.value.message or "/dev/null" in caught.value.message
    assert caught.value.hint
    assert snapshot(tmp_path) == before


def test_an_unknown_shell_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        install("tcsh", tmp_path)
    assert caught.value.hint
    assert not list(tmp_path.iterdir())


def test_the_option_is_ours() -> None:
    import typer

    command = typer.main.get_command(build(COMMANDS))
    before = {param.name: getattr(param, "callback", None) for param in command.params}
    with_our_completion(command)
    after = {param.name: getattr(param, "callback", None) for param in command.params}
    assert [name for name in before if before[name] is not after[name]] == ["install_completion"]


def test_from_a_shell(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[2]
    code = "import sys; sys.path[:0] = sys.argv.pop(1).split('|'); from imprint_cli.app import main; sys.exit(main())"
    script = f'"{sys.executable}" -P -c "$CODE" "{root}|{root / "cmd"}" --install-completion; echo $?'
    environ = {**os.environ, "HOME": str(tmp_path), "CODE": code, "IMPRINT_HOME": str(tmp_path / "imprint")}
    done = subprocess.run(["bash", "-c", script], env=environ, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout.splitlines()[-2:] == ["open a new terminal to use it", "0"]
    assert (tmp_path / ".bashrc").read_text() == f"{LINE}\n"
