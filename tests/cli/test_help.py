"""Every `--help` reads as a person would write it: whole sentences, no language of the parser's."""

from __future__ import annotations

import re

import pytest
import typer

from imprint_cli.app import build
from imprint_cli.help import render
from imprint_cli.registry import COMMANDS

VERBS = {
    *("Also", "Collect", "Do", "Embed", "Examine", "Exit", "Explain", "Ignore", "Install", "Leave", "List", "Plan"),
    *("Print", "Read", "Reinstall", "Run", "Say", "Set", "Show", "Take", "Use", "Wait", "Write"),
}
"""How an explanation begins: with what the option does."""

WIDTH = 80


def helps() -> dict[str, str]:
    """Return every help by the command's words."""
    application = typer.main.get_command(build(COMMANDS))
    found: dict[str, str] = {}

    def collect(command: object, names: tuple[str, ...]) -> None:
        with command.make_context(names[-1], ["--help"], resilient_parsing=True) as context:  # type: ignore[attr-defined]
            found[" ".join(names)] = render(command, names, context, WIDTH)
        for name, member in getattr(command, "commands", {}).items():
            collect(member, (*names, name))

    collect(application, ("imprint",))
    return found


HELPS = helps()


@pytest.mark.parametrize("name", HELPS)
def test_a_help_is_in_plain_words(name: str) -> None:
    text = HELPS[name]
    assert text.startswith(f"Usage: {name}")
    for odd in ("COMMAND [", "...", "list[", "[default", "x>=", "None", "{", "This message"):
        assert odd not in text.replace('{"text": …}', ""), odd
    assert all(len(line) <= WIDTH and line == line.rstrip() for line in text.splitlines())


@pytest.mark.parametrize("name", HELPS)
def test_an_option_says_what_it_does_in_one_sentence(name: str) -> None:
    section = HELPS[name].partition("\nOptions:\n")[2].split("\n\n")[0]
    for row in re.split(r"\n  (?=-)", section.removeprefix("  ")):
        text = re.split(r" {2,}|\n +", row, maxsplit=1)[1]
        assert text.split()[0] in VERBS, row
        assert text.endswith("."), row


def test_every_command_is_named_with_a_whole_summary() -> None:
    flat = " ".join(HELPS["imprint"].split())
    for command in COMMANDS:
        assert command in flat
    assert "Begin with `imprint setup`" in flat
    assert "…" not in HELPS["imprint"]
