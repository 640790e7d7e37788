"""Commands for the tests of `main`: each ends in one of the ways a command can end."""

from typing import Annotated

import typer

from imprint import errors
from imprint.results import Notice, Result
from imprint.values import Document, Record
from imprint_cli.answer import Answer
from imprint_cli.options import Json

CLASSES = {
    cls.code: cls for cls in vars(errors).values() if isinstance(cls, type) and issubclass(cls, errors.ImprintError)
}


class Found(Record):
    """A payload of one field."""

    path: str


class Bare(Document):
    """A document without fields."""


def fine(*, json: Json = False) -> Answer:  # noqa: ARG001 - `main` reads it
    """Answer with a warning."""
    return Answer(Result(Found("é\udc80"), (Notice("odd", "something is odd", "look"),)), lambda found: found.path)


def unhappy(*, json: Json = False) -> Answer:  # noqa: ARG001 - `main` reads it
    """Answer with data and an error."""
    return Answer(Result(Found("a"), errors=(Notice("network", "no way out"),)), lambda _: "partly")


def refuse(code: str, narrow: Annotated[str | None, typer.Option()] = None, *, json: Json = False) -> Answer:  # noqa: ARG001
    """Raise the error of that code."""
    raise CLASSES[code]("it did not work", hint="try `this`", code=narrow)


def crash(text: Annotated[str, typer.Argument()] = "", *, json: Json = False) -> Answer:  # noqa: ARG001
    """Have a bug."""
    return Answer(Result(Found(text[10**6])), str)


def stumble(*, json: Json = False) -> Answer:  # noqa: ARG001 - `main` reads it
    """Meet an error of the system that no operation expects."""
    raise PermissionError(13, "Permission denied", "/some/file")


def interrupt(*, json: Json = False) -> Answer:  # noqa: ARG001 - `main` reads it
    """Be interrupted."""
    raise KeyboardInterrupt


def bare(*, json: Json = False) -> Answer:  # noqa: ARG001 - `main` reads it
    """Answer with a document that stands for itself."""
    return Answer(Result(Bare()), None)
