"""`imprint check`."""

from imprint_cli.answer import Answer
from imprint_cli.options import Json, Venv


def check(
    *,
    venv: Venv = None,
    json: Json = False,  # noqa: ARG001 - `main` reads it
) -> Answer:
    """Check the installed runtime now and record the outcome."""
    from imprint.operations.check import check as prove
    from imprint.operations.context import Context
    from imprint_cli.render import render_check

    return Answer(prove(Context.of_process(), venv), render_check)
