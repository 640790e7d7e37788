"""The options that several commands share, each with one wording."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated

import typer


def completed_by(words: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """Return what a shell's completion of a value calls: those of the words that begin as what is typed.

    The words are asked for only then.
    """

    def complete(incomplete: str) -> list[str]:
        return [word for word in words() if word.startswith(incomplete)]

    return complete


def one_of(*words: str) -> Callable[[str], list[str]]:
    """Return the completion of a value that is one of some words."""
    return completed_by(lambda: words)


def _models() -> Iterable[str]:
    from imprint.operations.model import names

    return names()


a_model = completed_by(_models)
"""Completes the name of a model."""

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout instead of text.")]
Stream = Annotated[bool, typer.Option("--json", help="Print progress and the result as one JSON object per line.")]
Device = Annotated[
    str | None,
    typer.Option(
        "--device",
        metavar="cpu|gpu|auto",
        help="Use this device for this run; the configuration stays as it is.",
        autocompletion=one_of("cpu", "gpu", "auto"),
    ),
]
GpuDevice = Annotated[
    str | None,
    typer.Option(
        "--gpu-device",
        metavar="auto|INDEX|UUID",
        help="Use this GPU for this run; the configuration stays as it is.",
        autocompletion=one_of("auto"),
    ),
]
RequireGpu = Annotated[
    bool,
    typer.Option("--require-gpu", help="Exit 1 and change nothing if embeddings would not run on a GPU."),
]
Wait = Annotated[
    float,
    typer.Option(
        "--wait", metavar="SECONDS", min=0, help="Wait this long for another Imprint process; 0 does not wait."
    ),
]
Venv = Annotated[
    Path | None,
    typer.Option(
        "--venv", metavar="PATH", help="Use the virtual environment at PATH instead of Imprint's own runtime."
    ),
]
MachineFile = Annotated[
    str | None,
    typer.Option(
        "--machine",
        metavar="FILE|-",
        help="Plan for the machine that this document describes; ignore what is installed here.",
    ),
]


def flags(*, device: str | None = None, gpu_device: str | None = None, model: str | None = None) -> dict[str, str]:
    """Return the configuration keys that were given as options."""
    given = {"model.device": device, "model.gpu_device": gpu_device, "model.name": model}
    return {key: value for key, value in given.items() if value is not None}
