"""`imprint model list|show|path`."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from imprint_cli.answer import Answer
from imprint_cli.options import Json

group = typer.Typer(help="Show the models and where they are.", rich_markup_mode=None)

Name = Annotated[
    str | None,
    typer.Argument(metavar="[NAME]", help="By default the configured model.", show_default=False),
]


@group.command("list")
def list_(
    *,
    json: Json = False,  # noqa: ARG001 - `main` reads it
) -> Answer:
    """List the models of the catalogue and what of them is installed."""
    from imprint.operations.context import Context
    from imprint.operations.model import list_models

    return Answer(list_models(Context.of_process()), render_models)


@group.command()
def show(
    name: Name = None,
    *,
    json: Json = False,  # noqa: ARG001 - `main` reads it
) -> Answer:
    """Show everything known about one model."""
    from imprint.operations.context import Context
    from imprint.operations.model import show_model

    return Answer(show_model(Context.of_process(), name), render_model)


@group.command()
def path(
    name: Name = None,
    *,
    json: Json = False,  # noqa: ARG001 - `main` reads it
) -> Answer:
    """Print the folder of an installed model."""
    from imprint.operations.context import Context
    from imprint.operations.model import model_path

    return Answer(model_path(Context.of_process(), name), lambda data: str(data["path"]))


def render_models(data: Mapping[str, Any]) -> str:
    """Render the table of models; the configured one is marked."""
    from imprint_cli.human import size, table

    rows = [
        [
            model["name"] + (" (configured)" if model["configured"] else ""),
            "installed" if model["installed"] else "not installed",
            size(model["bytes"]),
            str(model["dims"]),
            str(model["max_tokens"]),
            model["license"],
        ]
        for model in data["models"]
    ]
    return table(["model", "state", "size", "dims", "tokens", "license"], rows)


def render_model(data: Mapping[str, Any]) -> str:
    """Render one model, a fact a line."""
    from imprint_cli.render import render_one

    return "\n".join(f"{name}: {render_one(value)}" for name, value in data["models"][0].items())
