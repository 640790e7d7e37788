"""`imprint setup`, `bootstrap`, `rollback` and `prune`: the commands that change targets."""

from pathlib import Path
from typing import Annotated

import typer

from imprint_cli.answer import Answer
from imprint_cli.options import Device, GpuDevice, Json, RequireGpu, Stream, Venv, Wait, flags

RetryGpu = Annotated[bool, typer.Option("--retry-gpu", help="Ignore failed checks and try a GPU build again.")]
Repair = Annotated[bool, typer.Option("--repair", help="Reinstall even if everything looks right.")]
Offline = Annotated[bool, typer.Option("--offline", help="Use only the cache and --find-links, not the network.")]
FindLinks = Annotated[
    str | None, typer.Option("--find-links", metavar="DIR", help="Also take packages from this folder.")
]
IndexUrl = Annotated[str | None, typer.Option("--index-url", metavar="URL", help="Take packages from this index.")]


ForMachine = Annotated[
    str | None,
    typer.Option(
        "--for", metavar="FILE|-", help="Set up for the machine that this document describes; the check runs there."
    ),
]


def setup(  # noqa: PLR0913 - a command's options are its arguments
    *,
    venv: Venv = None,
    document: ForMachine = None,
    device: Device = None,
    gpu_device: GpuDevice = None,
    require_gpu: RequireGpu = False,
    retry_gpu: RetryGpu = False,
    repair: Repair = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what setup would do; change nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before a large download.")] = False,
    non_interactive: Annotated[bool, typer.Option("--non-interactive", help="Do the same as --yes.")] = False,
    offline: Offline = False,
    find_links: FindLinks = None,
    index_url: IndexUrl = None,
    wait: Wait = 60.0,
    json: Stream = False,
) -> Answer:
    """Install the right ONNX Runtime and the model, and prove them.

    The last line says what embeddings run on, and why.
    """
    from imprint_cli.provision import ask, provision

    return provision(
        flags(device=device, gpu_device=gpu_device),
        as_json=json,
        document=document,
        venv=venv,
        command="imprint setup",
        require_gpu=require_gpu,
        retry_gpu=retry_gpu,
        repair=repair,
        dry_run=dry_run,
        offline=offline,
        find_links=find_links,
        index_url=index_url,
        wait_seconds=wait,
        confirm=None if yes or non_interactive else ask,
    )


def bootstrap(  # noqa: PLR0913 - as above
    *,
    device: Device = None,
    gpu_device: GpuDevice = None,
    require_gpu: RequireGpu = False,
    retry_gpu: RetryGpu = False,
    repair: Repair = False,
    offline: Offline = False,
    find_links: FindLinks = None,
    index_url: IndexUrl = None,
    wait: Wait = 60.0,
    json: Stream = False,
) -> Answer:
    """Install without prompting, for scripts.

    It is `imprint setup --yes` without `--venv`, `--for` and `--dry-run`.
    """
    from imprint_cli.provision import provision

    return provision(
        flags(device=device, gpu_device=gpu_device),
        as_json=json,
        command="imprint bootstrap",
        require_gpu=require_gpu,
        retry_gpu=retry_gpu,
        repair=repair,
        offline=offline,
        find_links=find_links,
        index_url=index_url,
        wait_seconds=wait,
    )


def rollback(
    *,
    wait: Wait = 60.0,
    json: Json = False,  # noqa: ARG001 - `main` reads it
) -> Answer:
    """Go back to the previous runtime, offline."""
    from imprint.context import Context
    from imprint.operations.rollback import rollback as roll_back
    from imprint_cli.provision import render_rollback

    return Answer(roll_back(Context.of_process(), wait_seconds=wait), render_rollback)


def prune(
    *,
    venv: Annotated[
        Path | None,
        typer.Option("--venv", metavar="PATH", help="Also remove other builds' packages from the environment at PATH."),
    ] = None,
    wait: Wait = 60.0,
    json: Json = False,  # noqa: ARG001 - as above
) -> Answer:
    """Remove unused runtimes and downloads."""
    from imprint.context import Context
    from imprint.operations.prune import prune as free
    from imprint_cli.provision import render_prune

    return Answer(free(Context.of_process(), venv, wait_seconds=wait), render_prune)
