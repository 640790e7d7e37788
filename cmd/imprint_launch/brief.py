"""Answers `--help`, `--version` and completion before there is a tool environment, with the standard library alone.

The commands come from the table that the command line itself uses, their options from docs/cli.md, which a test
compares with the code.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

HELP = ("-h", "--help")


class Reply(NamedTuple):
    """What to print, and the exit code: 2 where no command was named."""

    text: str
    exit_code: int = 0


def answer(words: Sequence[str], environ: Mapping[str, str], root: Path) -> Reply | None:
    """Return the answer to words that need no environment, None for all others."""
    if any(name.startswith("_IMPRINT") and name.endswith("_COMPLETE") for name in environ):
        return Reply("")  # a shell asks with each press of the key: no reason to build anything
    asked = list(words[: list(words).index("--")] if "--" in words else words)
    if asked[:1] == ["--version"]:
        return Reply(f"imprint {_version(root)}\n")
    if words and not any(word in HELP for word in asked):
        return None
    named = next((word for word in asked if not word.startswith("-")), None)
    section = _section(root, named) if named in _commands(root) else None
    return Reply(section or _overview(root), 0 if words else 2)


def _version(root: Path) -> str:
    text = (root / "imprint" / "__init__.py").read_text("utf-8")
    (found,) = re.findall(r'^__version__ = "(.+)"$', text, re.MULTILINE)
    return str(found)


def _overview(root: Path) -> str:
    commands = _commands(root)
    width = max(map(len, commands))
    lines = [
        "Usage: imprint COMMAND",
        "",
        _docstring(_parsed(root, "app.py"), "_root"),
        "",
        "Commands:",
        *(f"  {name:{width}}  {about}" for name, about in commands.items()),
        "",
        "`imprint COMMAND --help` shows the options of a command. Begin with `imprint setup`; the first command that",
        "does something builds Imprint's own environment (once, about 40 MB).",
    ]
    return "\n".join(lines) + "\n"


def _parsed(root: Path, name: str) -> ast.Module:
    return ast.parse((root / "cmd" / "imprint_cli" / name).read_text("utf-8"))


def _commands(root: Path) -> dict[str, str]:
    """Return each command and its summary, read from the table in the command line's source."""
    (table,) = (
        node.value
        for node in _parsed(root, "registry.py").body
        if isinstance(node, ast.AnnAssign)
        and ast.unparse(node.target) == "COMMANDS"
        and isinstance(node.value, ast.Dict)
    )
    found = {}
    for key, entry in zip(table.keys, table.values, strict=True):
        module, attribute = (str(ast.literal_eval(argument)) for argument in getattr(entry, "args", ()))
        tree = ast.parse((root / "cmd" / f"{module.replace('.', '/')}.py").read_text("utf-8"))
        found[str(getattr(key, "value", key))] = _docstring(tree, attribute)
    return found


def _docstring(tree: ast.Module, name: str) -> str:
    """Return the summary of a function, or the `help` of a group of commands."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return (ast.get_docstring(node) or "").partition("\n")[0]
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name and isinstance(node.value, ast.Call):
            return next(str(ast.literal_eval(word.value)) for word in node.value.keywords if word.arg == "help")
    return ""


def _section(root: Path, command: str) -> str | None:
    """Return what docs/cli.md says of a command, for a terminal."""
    page = (root / "docs" / "cli.md").read_text("utf-8")
    for section in re.split(r"^## ", page, flags=re.MULTILINE)[1:]:
        heading, _, body = section.partition("\n")
        if re.match(rf"`imprint {re.escape(command)}[ `]", heading):
            usage = heading.replace("`", "").replace(", ", f"\n       imprint {command} ")
            return f"Usage: {usage}\n" + re.sub(r"\n{3,}", "\n\n", "".join(map(_plain, body.splitlines())))
    return None


def _plain(line: str) -> str:
    row = re.fullmatch(r"\| (.+?) \| (.+) \|", line.replace("\\|", "\0"))
    if row is not None:
        option, does = (cell.replace("\0", "|") for cell in row.groups())
        return "Options:\n" if option == "option" else f"  {option.replace('`', '')}\n      {does}\n"
    return "" if line.startswith("|---") else f"{line}\n".replace("\\.", ".")
