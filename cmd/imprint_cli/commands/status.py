"""`imprint status`."""

from imprint_cli.answer import Answer
from imprint_cli.options import Json


def status(
    *,
    json: Json = False,  # noqa: ARG001 - `main` reads it
) -> Answer:
    """Say in one line what embeddings run on, why, and since when."""
    from imprint.operations.status import status as look

    from imprint.operations.context import Context
    from imprint_cli.render import render_status

    return Answer(look(Context.of_process()), render_status)
