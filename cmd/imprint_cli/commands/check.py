"""`imprint check`."""

from typing import Annotated

import typer

from imprint_cli.answer import Answer
from imprint_cli.options import Json, Venv


def check(
    *,
    placement: Annotated[
        bool, typer.Option("--placement", help="Also run the configured model and say where each part of it ran.")
    ] = False,
    venv: Venv = None,
    json: Json = False,  # noqa: ARG001 - `main` reads it
) -> Answer:
    """Check the installed runtime now and record the outcome."""
    from imprint.context import Context
    from imprint.operations.check import check as prove
    from imprint_cli.render import render_check

    return Answer(prove(Context.of_process(), venv, placement=placement), render_check)
