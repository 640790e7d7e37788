"""The pages under docs/ that describe the contract say what the code does, all of it."""

import re
from pathlib import Path

import pytest
import typer

from contracts.shapes import SHAPES
from imprint import envvars
from imprint.errors import EXIT_CODES
from imprint.state.settings import KEYS, variables_of
from imprint_cli import exits
from imprint_cli.app import build
from imprint_cli.registry import COMMANDS

DOCS = Path(__file__).resolve().parents[2] / "docs"


def page(name: str) -> str:
    """Return a page's text."""
    return (DOCS / name).read_text(encoding="utf-8")


def sections() -> dict[str, str]:
    """Return the part of docs/cli.md that belongs to each command; a group's commands share one."""
    found: dict[str, str] = {}
    for part in page("cli.md").split("\n## ")[1:]:
        head = part.splitlines()[0]
        found |= dict.fromkeys(re.findall(r"`imprint (\w+)", head), part)
    return found


def options() -> list[tuple[str, str]]:
    """Return every option of every command with the command's first word."""
    application = typer.main.get_command(build(COMMANDS))
    found: list[tuple[str, str]] = []
    for name, command in vars(application)["commands"].items():
        inner = vars(command).get("commands") or {"": command}
        for member in inner.values():
            for parameter in member.params:
                found += [(name, option) for option in parameter.opts if option.startswith("--") and option != "--help"]
    return sorted(set(found))


@pytest.mark.parametrize("name", list(COMMANDS))
def test_every_command_is_in_cli_md(name: str) -> None:
    assert name in sections()


@pytest.mark.parametrize(("command", "option"), options())
def test_every_option_is_in_its_command_s_section(command: str, option: str) -> None:
    assert re.search(rf"`{option}[ `|\\]", sections()[command]), f"{option} of {command} is not in docs/cli.md"


def test_cli_md_names_no_option_that_does_not_exist() -> None:
    known = set(options())
    for command, text in sections().items():
        for row in re.findall(r"^\| (`--.*?) \|", text, re.MULTILINE):
            for option in re.findall(r"--[a-z-]+", row):
                assert (command, option) in known, f"{command} has no {option}"


def test_exit_codes_md_is_the_table() -> None:
    rows = re.findall(r"^\| (\d+) \| (.+?) \| (.*?) \|", page("exit-codes.md"), re.MULTILINE)
    assert {int(code): meaning for code, meaning, _ in rows} == dict(exits.MEANINGS)
    listed = {error: int(code) for code, _, errors in rows for error in re.findall(r"`([a-z-]+)`", errors)}
    assert listed == dict(EXIT_CODES)


def test_envvars_md_names_every_variable_and_default() -> None:
    text = page("envvars.md")
    names = {*envvars.ALIASES, *envvars.OTHERS, *(variable for key in KEYS for variable in variables_of(key))}
    assert names == set(re.findall(r"^\| `(IMPRINT_\w+)`", text, re.MULTILINE))
    rows = re.findall(r"^\| `IMPRINT_\w+` \| `([\w.]+)` \| (.+?) \|", text, re.MULTILINE)
    for key, default in rows:
        value = KEYS[key].default
        if value is not None:
            assert default.split(" (")[0] == f"`{str(value).lower()}`"
    assert {key for key, _ in rows} == set(KEYS)


def test_json_md_refers_only_to_shapes_it_shows() -> None:
    assert set(re.findall(r"@([\w ]+)", page("json.md").replace("`@name`", ""))) <= set(SHAPES)
