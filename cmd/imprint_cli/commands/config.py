"""`imprint config list|get|set|unset|path`."""

import sys
from collections.abc import Iterable
from typing import Annotated

import typer

from imprint_cli.answer import Answer
from imprint_cli.options import Json, completed_by

group = typer.Typer(help="Read and change the configuration.", rich_markup_mode=None)


def _keys() -> Iterable[str]:
    from imprint.operations.config import names

    return names()


Key = Annotated[
    str, typer.Argument(metavar="KEY", help="A key such as model.device.", autocompletion=completed_by(_keys))
]
ShowOrigin = Annotated[
    bool,
    typer.Option("--show-origin", help="Also say where each value comes from: flag, env, file or default."),
]


@group.command("list")
def list_(
    *,
    show_origin: ShowOrigin = False,
    json: Json = False,  # noqa: ARG001 - `main` reads it
) -> Answer:
    """List every key and its current value."""
    from functools import partial

    from imprint.context import Context
    from imprint.operations.config import list_keys
    from imprint_cli.render import render_keys

    return Answer(list_keys(Context.of_process()), partial(render_keys, origins=show_origin))


@group.command()
def get(
    key: Key,
    *,
    show_origin: ShowOrigin = False,
    json: Json = False,  # noqa: ARG001 - `main` reads it
) -> Answer:
    """Print the value of a key; exit 1 if it has none."""
    from functools import partial

    from imprint.context import Context
    from imprint.operations.config import get_key
    from imprint_cli.render import render_value

    return Answer(get_key(Context.of_process(), key), partial(render_value, origin=show_origin))


@group.command("set", context_settings={"ignore_unknown_options": True})
def set_(
    key: Key,
    value: Annotated[str, typer.Argument(metavar="VALUE", help="The value, for example gpu.")],
    *,
    json: Json = False,  # noqa: ARG001 - `main` reads it
) -> Answer:
    """Set a key in the configuration file and say what that changes.

    With `-` as its value, a secret is read from standard input.
    """
    from imprint.context import Context
    from imprint.operations.config import is_secret, set_key
    from imprint_cli.render import render_set

    if value == "-" and is_secret(key):
        # What is typed as an argument is in the list of processes and in the shell's history.
        value = sys.stdin.readline().rstrip("\n")
    return Answer(set_key(Context.of_process(), key, value), render_set)


@group.command()
def unset(
    key: Key,
    *,
    json: Json = False,  # noqa: ARG001 - `main` reads it
) -> Answer:
    """Remove a key from the configuration file, so that its default applies again."""
    from imprint.context import Context
    from imprint.operations.config import unset_key
    from imprint_cli.render import render_unset

    return Answer(unset_key(Context.of_process(), key), render_unset)


@group.command()
def path(
    *,
    json: Json = False,  # noqa: ARG001 - `main` reads it
) -> Answer:
    """Print the path of the configuration file."""
    from imprint.context import Context
    from imprint.operations.config import config_path
    from imprint_cli.render import render_path

    return Answer(config_path(Context.of_process()), render_path)
