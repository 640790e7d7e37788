"""`imprint devices`."""

from imprint_cli.answer import Answer
from imprint_cli.options import Json


def devices(
    *,
    json: Json = False,  # noqa: ARG001 - `main` reads it
) -> Answer:
    """List the GPUs and the builds that run on each."""
    from imprint.context import Context
    from imprint.operations.devices import devices as list_devices
    from imprint_cli.render import render_devices

    return Answer(list_devices(Context.of_process()), render_devices)
