"""`imprint model list|show|path|remove`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from imprint_cli.answer import Answer
from imprint_cli.options import Json, Wait, a_model

if TYPE_CHECKING:
    from imprint.operations.model import Models, RemovedModel

group = typer.Typer(help="List, show, find and remove models.", rich_markup_mode=None)

Name = Annotated[
    str | None,
    typer.Argument(
        metavar="[NAME]", help="A model; the configured one if left out.", show_default=False, autocompletion=a_model
    ),
]


@group.command("list")
def list_(
    *,
    json: Json = False,  # noqa: ARG001 - `main` reads it
) -> Answer:
    """List the models and which of them are installed."""
    from imprint.context import Context
    from imprint.operations.model import list_models

    return Answer(list_models(Context.of_process()), render_models)


@group.command()
def show(
    name: Name = None,
    *,
    json: Json = False,  # noqa: ARG001 - `main` reads it
) -> Answer:
    """Show everything known about one model."""
    from imprint.context import Context
    from imprint.operations.model import show_model

    return Answer(show_model(Context.of_process(), name), render_model)


@group.command()
def path(
    name: Name = None,
    *,
    json: Json = False,  # noqa: ARG001 - `main` reads it
) -> Answer:
    """Print the folder of an installed model."""
    from imprint.context import Context
    from imprint.operations.model import model_path
    from imprint_cli.render import render_path

    return Answer(model_path(Context.of_process(), name), render_path)


@group.command()
def remove(
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help="A model that is installed.", show_default=False, autocompletion=a_model),
    ],
    *,
    wait: Wait = 60.0,
    json: Json = False,  # noqa: ARG001 - `main` reads it
) -> Answer:
    """Remove an installed model and say how much space that frees."""
    from imprint.context import Context
    from imprint.operations.model import remove_model

    return Answer(remove_model(Context.of_process(), name, wait_seconds=wait), render_removed)


def render_removed(removed: RemovedModel) -> str:
    """Render what was removed."""
    from imprint.sizes import in_units as size

    return f"removed {removed.name}: {size(removed.freed_bytes)} freed"


def render_models(found: Models) -> str:
    """Render the table of models; the configured one is marked."""
    from imprint.sizes import in_units as size
    from imprint_cli.human import table

    rows = [
        [
            model.name + (" (configured)" if model.configured else ""),
            "installed" if model.installed else "not installed",
            size(model.bytes),
            str(model.dims),
            str(model.max_tokens),
            model.license,
        ]
        for model in found.models
    ]
    return table(["model", "state", "size", "dims", "tokens", "license"], rows)


def render_model(found: Models) -> str:
    """Render one model, a fact a line."""
    from imprint_cli.render import render_one

    return "\n".join(f"{name}: {render_one(value)}" for name, value in found.models[0].to_json().items())
