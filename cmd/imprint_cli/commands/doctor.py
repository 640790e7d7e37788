"""`imprint doctor`."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from imprint_cli.answer import Answer
from imprint_cli.options import Json, completed_by


def _checks() -> Iterable[str]:
    from imprint.operations.doctor import list_checks

    return [check.id for check in list_checks().payload.checks]


def _codes() -> Iterable[str]:
    from imprint.operations.doctor import codes

    return codes()


def doctor(  # noqa: PLR0913 - a command's options are its arguments
    *,
    ids: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ID]...",
            help="Only these checks; `--list` shows them.",
            show_default=False,
            autocompletion=completed_by(_checks),
        ),
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="List the checks and what each looks at; run none.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Exit 1 for warnings too.")] = False,
    deep: Annotated[bool, typer.Option("--deep", help="Read and hash every installed file.")] = False,
    report: Annotated[
        bool,
        typer.Option("--report", help="Print one block for a bug report, without names, paths and secrets."),
    ] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="Show every finding, not only what needs attention.")
    ] = False,
    explain: Annotated[
        str | None,
        typer.Option(
            "--explain",
            metavar="CODE",
            help="Explain a code of a finding, a plan or an error.",
            autocompletion=completed_by(_codes),
        ),
    ] = None,
    venv: Annotated[
        Path | None,
        typer.Option(
            "--venv", metavar="PATH", help="Examine the virtual environment at PATH instead of Imprint's own runtime."
        ),
    ] = None,
    json: Json = False,  # noqa: ARG001 - `main` reads it
) -> Answer:
    """Find what is wrong and say what helps.

    It changes nothing.
    """
    from imprint.context import Context
    from imprint.operations.doctor import DoctorOptions, diagnose, explain_code, list_checks
    from imprint_cli.render_doctor import render_checks, render_explanation, render_report, rendering

    if explain is not None:
        return Answer(explain_code(Context.of_process(), explain), render_explanation)
    if list_:
        return Answer(list_checks(), render_checks)
    options = DoctorOptions(ids=tuple(ids or ()), strict=strict, deep=deep, report=report, venv=venv)
    return Answer(
        diagnose(Context.of_process(), options), render_report if report else rendering(everything=everything)
    )
