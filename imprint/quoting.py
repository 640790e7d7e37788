"""Quotes what goes into a command that a person types, for the shell they most likely type it into.

On Windows two shells read commands differently; everything that both read alike is written that way.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Mapping

SH, POWERSHELL, CMD = "sh", "powershell", "cmd"

_PLAIN = re.compile(r"[\w@+=:,./\\~-]+")


def shell_of(environ: Mapping[str, str], platform: str = sys.platform) -> str:
    """Return the shell that a person here types into: on Windows only the command prompt sets PROMPT."""
    if platform != "win32":
        return SH
    return CMD if "PROMPT" in environ else POWERSHELL


def quoted(text: str, shell: str = SH) -> str:
    """Return `text` as one word of a command."""
    if shell == SH:
        return shlex.quote(text)
    if _PLAIN.fullmatch(text):
        return text
    if shell == POWERSHELL and re.search(r"[$`\"]", text):
        return "'" + text.replace("'", "''") + "'"
    return f'"{text}"'


def program(path: str, shell: str = SH) -> str:
    """Return `path` as the word that a command begins with: PowerShell takes a quoted one for a text."""
    word = quoted(path, shell)
    return f"& {word}" if shell == POWERSHELL and word != path else word


def joined(words: list[str] | tuple[str, ...], shell: str = SH) -> str:
    """Return a whole command."""
    return " ".join([program(words[0], shell), *(quoted(word, shell) for word in words[1:])])


def typed(*words: str | os.PathLike[str]) -> str:
    """Return a whole command for the shell of whoever runs this process."""
    return joined([os.fspath(word) for word in words], shell_of(os.environ))
