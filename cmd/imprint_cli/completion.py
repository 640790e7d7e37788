"""Installs completion for a person's shell: a script of its own and, where a shell needs it, a line that loads it.

Start-up files are a person's, and often links into a folder of theirs: such a link is followed, so that it stays one.
A link or a file that belongs to another user, and anything that is no regular file, is refused before anything is
written. What was written is said.
"""

import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import typer

from imprint import access, touch
from imprint.errors import ImprintError, UsageError
from imprint.hints import helps
from imprint_cli import human

_LINKS = 40
"""As many as the system follows."""


class Places(NamedTuple):
    """Where a shell looks, relative to a person's own folder: a script, and the line of a file that loads it."""

    script: str
    start_up: str = ""
    line: str = ""


SHELLS = {
    "bash": Places(".bash_completions/imprint.sh", ".bashrc", "source ~/.bash_completions/imprint.sh"),
    "zsh": Places(".zfunc/_imprint", ".zshrc", "fpath+=~/.zfunc; autoload -Uz compinit; compinit"),
    "fish": Places(".config/fish/completions/imprint.fish"),
}


def with_our_completion(command: Any) -> None:  # noqa: ANN401 - Typer's own command types are private
    """Make `--install-completion` of the program do what this module does; PowerShell keeps the parser's own way."""
    for param in command.params:
        if param.name == "install_completion":
            param.callback = _asked(param.callback)


def _asked(otherwise: Any) -> Any:  # noqa: ANN401 - as above
    def callback(context: Any, param: Any, value: Any) -> Any:  # noqa: ANN401 - as above
        if not value or context.resilient_parsing:
            return value
        shell = _shell()
        if shell in {"powershell", "pwsh"}:
            return otherwise(context, param, value)
        install(shell, Path.home())
        raise typer.Exit

    return callback


def _shell() -> str:
    import shellingham  # type: ignore[import-untyped] # it has no types

    try:
        return str(shellingham.detect_shell()[0])
    except shellingham.ShellDetectionFailure:
        return ""


def install(shell: str, home: Path) -> None:
    """Write the script and the line of one shell below a person's folder, and say which files that were.

    Raises UsageError for a shell that is not known, ImprintError (`not-ours`, `no-permission` …) with nothing written.
    """
    from typer._completion_shared import get_completion_script

    places = SHELLS.get(shell)
    if places is None:
        raise UsageError(f"completion is not available for {shell or 'this shell'}", hint=helps("completion-shells"))
    script = get_completion_script(prog_name="imprint", complete_var="_IMPRINT_COMPLETE", shell=shell) + "\n"
    wanted = [(home / places.script, script.encode())]
    if places.start_up:
        wanted.append((home / places.start_up, _with_line(_file(home, places.start_up), places.line)))
    # All are looked at before the first is written.
    targets = [(path, _file(home, path.relative_to(home).as_posix()), content) for path, content in wanted]
    for path, place, content in targets:
        if place.is_file() and place.read_bytes() == content:
            continue
        mode = stat.S_IMODE(place.stat().st_mode) if place.is_file() else None
        touch.write_file(place, content, within=place.parent, mode=mode)
        human.show(f"wrote {place}" if place == path else f"wrote {place}, which {path} leads to")
    human.show("open a new terminal to use it")


def _with_line(place: Path, line: str) -> bytes:
    before = place.read_bytes() if place.is_file() else b""
    if line.encode() in before.splitlines():
        return before
    gap = b"\n" if before and not before.endswith(b"\n") else b""
    return before + gap + line.encode() + b"\n"


def _file(home: Path, name: str) -> Path:
    """Return the file that is really meant, through this user's own links. Raises ImprintError for anybody else's."""
    current = home
    for part in Path(name).parts:
        current = current / part
        for place in _chain(current):
            _require_mine(place)
            current = place
    if os.path.lexists(current) and not access.is_file(current):
        raise ImprintError(
            f"`{current}` is not a regular file, so nothing was written to it",
            hint=helps("move-away-then-again", path=current),
            code="not-ours",
        )
    return current


def _chain(place: Path) -> Iterator[Path]:
    """Yield a path and, while it is a link, what it leads to."""
    for _ in range(_LINKS):
        if not os.path.lexists(place):
            yield place
            return
        yield place
        if not place.is_symlink():
            return
        place = Path(os.path.normpath(place.parent / place.readlink()))
    raise ImprintError(
        f"`{place}` is a link that leads to itself", hint=helps("move-away-then-again", path=place), code="bad-path"
    )


def _require_mine(place: Path) -> None:
    try:
        found = place.lstat()
    except FileNotFoundError:
        return
    if sys.platform != "win32" and found.st_uid != os.geteuid() and not stat.S_ISDIR(found.st_mode):
        raise ImprintError(
            f"`{place}` belongs to {access.owner_of(found)}, so nothing was written to it",
            hint=helps("completion-by-hand"),
            code="not-ours",
        )
