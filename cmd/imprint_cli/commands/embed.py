"""`imprint embed`. Its function is long because each option is a parameter with its help."""

from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import IO, Annotated

import typer

from imprint.hints import helps
from imprint_cli.answer import Answer
from imprint_cli.options import Device, GpuDevice, Json, a_model, flags, one_of


def embed(  # noqa: PLR0913 - a command's options are its arguments
    texts: Annotated[
        list[str] | None, typer.Argument(metavar="[TEXT]...", help="Texts to embed.", show_default=False)
    ] = None,
    *,
    input: Annotated[  # noqa: A002 - the option's name
        str | None, typer.Option("--input", metavar="FILE|-", help="Read texts from this file; `-` is standard input.")
    ] = None,
    input_format: Annotated[
        str,
        typer.Option(
            "--input-format",
            metavar="lines|jsonl",
            help='Read one text per line (blank lines count), or one JSON string or {"text": …} per line.',
            autocompletion=one_of("lines", "jsonl"),
        ),
    ] = "lines",
    output: Annotated[
        str | None,
        typer.Option(
            "--output", metavar="FILE|-", help="Write to this file, whole or not at all; `-` is standard output."
        ),
    ] = None,
    format: Annotated[  # noqa: A002 - the option's name
        str,
        typer.Option(
            "--format",
            metavar="jsonl|npy|text",
            help="Write JSON lines, a NumPy array, or numbers as text.",
            autocompletion=one_of("jsonl", "npy", "text"),
        ),
    ] = "jsonl",
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            metavar="NAME",
            help="Use this model for this run; the configuration stays as it is.",
            autocompletion=a_model,
        ),
    ] = None,
    query: Annotated[bool, typer.Option("--query", help="Embed as queries, not as passages.")] = False,
    device: Device = None,
    gpu_device: GpuDevice = None,
    require_gpu: Annotated[
        bool, typer.Option("--require-gpu", help="Exit 1 and embed nothing if it would not run on a GPU.")
    ] = False,
    venv: Annotated[
        Path | None,
        typer.Option(
            "--venv", metavar="PATH", help="Run in the virtual environment at PATH instead of Imprint's own runtime."
        ),
    ] = None,
    json: Json = False,
) -> Answer:
    """Print a unit vector for each text, in order.

    The first line on stderr says what it runs on.
    """
    import os
    import sys

    from imprint.context import Context
    from imprint.errors import UsageError
    from imprint.operations.embed import STDOUT, EmbedOptions
    from imprint.operations.embed import embed as embed_texts
    from imprint_cli.progress import Progress

    if json and (output is None or output in STDOUT):
        raise UsageError("`--json` prints its result on standard output", hint=helps("vectors-to-a-file"))
    for name, given in (("--input", input), ("--output", output)):
        if given is not None and not given:
            raise UsageError(f"`{name}` is empty; it names a file")
    if output is not None and output.endswith((os.sep, os.altsep or os.sep)):
        raise UsageError(f"`{output}` names a folder; `--output` names a file")
    options = EmbedOptions(
        texts=tuple(texts or ()),
        input=input,
        input_format=input_format,
        output=None if output is None else Path(output),
        format=format,
        query=query,
        require_gpu=require_gpu,
        venv=venv,
    )
    progress = Progress()
    try:
        result = embed_texts(
            Context.of_process(flags(device=device, gpu_device=gpu_device, model=model)),
            options,
            progress,
            stdin=_standard_input,
            stdout=sys.stdout.buffer,
        )
    finally:
        progress.close()
    # What was told at the start is not told again at the end.
    untold = tuple(notice for notice in result.warnings if notice.message not in progress.warned)
    return Answer(result if json else replace(result, warnings=untold), lambda _: "")


def _standard_input() -> IO[bytes]:
    # Not sys.stdin: the thread that reads may still wait when the process ends, and Python would want that buffer.
    try:
        return open(0, "rb", closefd=False)
    except OSError:
        return BytesIO()
