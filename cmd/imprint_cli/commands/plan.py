"""`imprint plan`."""

from typing import Annotated

import typer

from imprint_cli import exits
from imprint_cli.answer import Answer
from imprint_cli.options import Device, GpuDevice, Json, MachineFile, Venv, flags


def plan(  # noqa: PLR0913 - a command's options are its arguments
    *,
    machine: MachineFile = None,
    verdicts: Annotated[
        str | None,
        typer.Option(
            "--verdicts", metavar="FILE", help="Use the check results in this file instead of the recorded ones."
        ),
    ] = None,
    installed: Annotated[
        str | None,
        typer.Option("--installed", metavar="BUILD[==VERSION]", help="Plan as if this build were installed."),
    ] = None,
    venv: Venv = None,
    device: Device = None,
    gpu_device: GpuDevice = None,
    python: Annotated[
        str | None,
        typer.Option("--python", metavar="VERSION", help="Plan for this Python, for example 3.12 or 3.13t."),
    ] = None,
    explain: Annotated[
        bool,
        typer.Option("--explain", help="Show how each build fares at each gate: pass, refused or not reached."),
    ] = False,
    check: Annotated[
        bool,
        typer.Option("--check", help="Exit 100 if setup would change something, 1 if nothing can be installed."),
    ] = False,
    json: Json = False,  # noqa: ARG001 - `main` reads it
) -> Answer:
    """Decide which ONNX Runtime belongs here, and say why.

    It changes nothing.
    """
    from imprint.context import Context
    from imprint.operations.plan import PlanOptions, download_for
    from imprint.operations.plan import plan as decide_here
    from imprint_cli.render import render_plan

    context = Context.of_process(flags(device=device, gpu_device=gpu_device))
    options = PlanOptions(
        machine=machine,
        verdicts=verdicts,
        installed=installed,
        python=python,
        explain=explain,
        check=check,
        venv=venv,
    )
    result = decide_here(context, options)
    pending = check and result.ok and result.payload.pending
    download = download_for(context, result.payload, here=machine is None, venv=venv)
    return Answer(result, lambda plan: render_plan(plan, download), exits.PENDING if pending else None)
