"""Every command of the program, by name, and which of them a command line calls; nothing is imported for that."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Entry(NamedTuple):
    """Where a command lives: a function, or a Typer group named `group`, in a module that is imported when needed."""

    module: str
    attribute: str


COMMANDS: dict[str, Entry] = {
    "setup": Entry("imprint_cli.commands.setup", "setup"),
    "bootstrap": Entry("imprint_cli.commands.setup", "bootstrap"),
    "rollback": Entry("imprint_cli.commands.setup", "rollback"),
    "prune": Entry("imprint_cli.commands.setup", "prune"),
    "bundle": Entry("imprint_cli.commands.bundle", "bundle"),
    "plan": Entry("imprint_cli.commands.plan", "plan"),
    "machine": Entry("imprint_cli.commands.machine", "machine"),
    "devices": Entry("imprint_cli.commands.devices", "devices"),
    "check": Entry("imprint_cli.commands.check", "check"),
    "status": Entry("imprint_cli.commands.status", "status"),
    "config": Entry("imprint_cli.commands.config", "group"),
    "doctor": Entry("imprint_cli.commands.doctor", "doctor"),
    "embed": Entry("imprint_cli.commands.embed", "embed"),
    "model": Entry("imprint_cli.commands.model", "group"),
}
"""Every command in the order of `imprint --help`."""


def words_of(arguments: Sequence[str], commands: Mapping[str, Entry]) -> tuple[str, ...]:
    """Return the command that arguments name, one or two words, without importing it; `()` when they name none."""
    words = [argument for argument in arguments if not argument.startswith("-")]
    if not words or words[0] not in commands:
        return ()
    if commands[words[0]].attribute != "group":
        return (words[0],)
    return tuple(words[:2])
