"""`imprint bundle`."""

from pathlib import Path
from typing import Annotated

import typer

from imprint_cli.answer import Answer
from imprint_cli.options import Device, GpuDevice, Json, flags


def bundle(  # noqa: PLR0913 - a command's options are its arguments
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="DIR", help="The bundle's folder: new, empty, or an earlier bundle, whose valid files are kept."
        ),
    ],
    *,
    target: Annotated[
        str,
        typer.Option(
            "--for",
            metavar="FILE|PLATFORM",
            help="Collect for the machine of this document, or for a platform such as linux-x86_64.",
        ),
    ],
    python: Annotated[
        str | None,
        typer.Option("--python", metavar="VERSION", help="Collect for this Python version, for example 3.12."),
    ] = None,
    device: Device = None,
    gpu_device: GpuDevice = None,
    find_links: Annotated[
        Path | None, typer.Option("--find-links", metavar="DIR", help="Also take packages from this folder.")
    ] = None,
    index_url: Annotated[
        str | None, typer.Option("--index-url", metavar="URL", help="Take packages from this index.")
    ] = None,
    json: Json = False,
) -> Answer:
    """Collect what a machine without a network needs."""
    from imprint.context import Context
    from imprint.operations.bundle import BundleOptions
    from imprint.operations.bundle import bundle as collect
    from imprint_cli.progress import Progress
    from imprint_cli.provision import render_bundle

    options = BundleOptions(target, folder, python=python, find_links=find_links, index_url=index_url)
    context = Context.of_process(flags(device=device, gpu_device=gpu_device))
    progress = Progress()
    try:
        return Answer(collect(context, options, (lambda _: None) if json else progress), render_bundle)
    finally:
        progress.close()
