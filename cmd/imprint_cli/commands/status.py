"""`imprint status`."""

from imprint_cli.answer import Answer
from imprint_cli.options import Json, Venv


def status(
    *,
    venv: Venv = None,
    json: Json = False,  # noqa: ARG001 - `main` reads it
) -> Answer:
    """Say in one line what embeddings run on, why, and since when."""
    from imprint.context import Context
    from imprint.operations.status import status as look
    from imprint_cli.render import render_status

    result = look(Context.of_process(), venv)
    return Answer(result, render_status, hint=result.payload.hint or None)
