"""`imprint machine`."""

from typing import Annotated

import typer

from imprint_cli.answer import Answer
from imprint_cli.options import Json, Venv


def machine(
    *,
    venv: Venv = None,
    redact: Annotated[
        bool,
        typer.Option("--redact", help="Leave out whatever could identify you or the machine."),
    ] = False,
    json: Json = False,  # noqa: ARG001 - `main` reads it
) -> Answer:
    """Print the facts about this machine as JSON.

    These are the facts that plans depend on; `imprint plan --machine FILE` takes them back.
    """
    from imprint.context import Context
    from imprint.operations.machine import machine as survey_here

    return Answer(survey_here(Context.of_process(), venv, redacted=redact), None)
