"""How to set up, as plain values, and what the ways of setting up have in common."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from imprint import resources
from imprint.context import Context
from imprint.embedding import catalogue, models
from imprint.errors import ImprintError, UsageError
from imprint.hints import helps
from imprint.planning import facts
from imprint.planning.model import Machine, Plan
from imprint.provisioning.downloads import Download
from imprint.quoting import typed
from imprint.results import Notice
from imprint.runtime.check.run import run_check
from imprint.runtime.checkpoint import reached
from imprint.runtime.events import Event, OnEvent
from imprint.runtime.installer.sources import Sources
from imprint.runtime.installer.uv import find_uv
from imprint.runtime.managed import generations
from imprint.runtime.managed.recipe import own_interpreter
from imprint.situation.asked import unused_gpu_device
from imprint.situation.inputs import Inputs, request_of
from imprint.state import config, mutex
from imprint.values import Record, replace

CONFIRM_ABOVE = 100 * 10**6
"""Bytes; a smaller download is not worth a question."""


class SetupOptions(Record):
    """How to set up. The device and the model are configuration, and come with the context's flags.

    `venv` is somebody's own environment, changed in place; None is the managed target. `machine` is the document of
    another machine to provision for, which was read from `document`. `confirm` is asked before a download of more than
    `CONFIRM_ABOVE` bytes; None asks nobody. `wait_seconds` is for the mutex, 0 fails at once.
    """

    require_gpu: bool = False
    retry_gpu: bool = False
    repair: bool = False
    dry_run: bool = False
    offline: bool = False
    find_links: Path | None = None
    index_url: str | None = None
    venv: Path | None = None
    machine: Machine | None = None
    wait_seconds: float = mutex.DEFAULT_WAIT
    command: str = "imprint setup"
    document: str | None = None
    confirm: Callable[[Plan], bool] | None = None


class Seams(Record):
    """What setup asks of the world around it; tests play it. `machine` None: this one is surveyed."""

    machine: Machine | None = None
    check: generations.Check = run_check
    lock_path: Callable[[str], Path] = resources.lock_path
    install_model: Callable[..., object] = models.install_model


REAL = Seams()
"""The world as it is."""


def command_again(context: Context, options: SetupOptions, **flags: str) -> str:
    """Return the command that sets up with these options, as a person types it; `flags` add or replace the device."""
    given = {"device": context.flags.get("model.device"), "gpu-device": context.flags.get("model.gpu_device")} | flags
    values = {"venv": options.venv, "for": options.document, **given}
    switches = {name: getattr(options, name) for name in ("require_gpu", "retry_gpu", "repair", "offline")}
    words = [word for name, value in values.items() if value is not None for word in (f"--{name}", os.fspath(value))]
    words += [f"--{name.replace('_', '-')}" for name, on in switches.items() if on]
    words += [] if options.find_links is None else ["--find-links", os.fspath(options.find_links)]
    # What an address may hold is nobody's business.
    words += [] if options.index_url is None else ["--index-url", "URL"]
    return typed(*options.command.split(), *words)


def sources_of(options: SetupOptions) -> Sources:
    """Return where packages come from. Raises UsageError for a folder or an address that is none."""
    folder = options.find_links
    if folder is not None and not folder.is_dir():
        raise UsageError(f"`--find-links {folder}` is not a folder")
    url = options.index_url
    if url is not None and not url.startswith(("https://", "http://", "file://")):
        raise UsageError("`--index-url` needs a URL that begins with https://, http:// or file://")
    return Sources(options.offline, folder.absolute() if folder is not None else None, url)


def refusal_of(context: Context, inputs: Inputs, options: SetupOptions) -> Notice | None:
    """Return why nothing is done: no build or not all of its packages exist, or a GPU is required and not planned."""
    plan = inputs.plan
    if plan.build is None:
        return Notice(plan.code, plan.reason, plan.hint)
    if options.require_gpu and plan.device is None:
        hint = plan.hint
        if plan.code == "device-cpu":
            hint = helps("require-with-device", command=command_again(context, options, device="gpu"))
        return Notice(plan.code, f"a GPU is required, but none is planned: {plan.reason}", hint)
    return free_threaded(inputs.machine)


def free_threaded(machine: Machine) -> Notice | None:
    """Return why nothing can be installed for a free-threaded Python, though ONNX Runtime has wheels for it.

    Source: the package index, 2026-12-01: orjson 3.13.0 has no wheel for cp313t and cp314t, tokenizers 0.23.3 none for
    cp313t, and neither is ever built here.
    """
    if not facts.is_free_threaded(machine):
        return None
    message = f"orjson, which embedding needs, has no wheel for {facts.python(machine)}"
    return Notice("python-abi-no-wheel", message, helps("standard-python"))


def not_honoured(context: Context, plan: Plan, refused: Notice | None) -> tuple[Notice, ...]:
    """Return the warnings about a GPU that was asked for and is not planned; refusals say so themselves."""
    if refused is not None or plan.device is not None or request_of(context).device != "gpu":
        return unused_gpu_device(context)
    return (Notice(plan.code, f"you asked for a GPU, but the CPU is planned: {plan.reason}", plan.hint),)


def confirm_download(options: SetupOptions, inputs: Inputs, expected: Download) -> None:
    """Ask before a large download. Raises ImprintError (`declined`)."""
    size = expected.total
    # Unknown sizes: the builds for GPUs are all large, the one for the CPU is not.
    small = inputs.plan.device is None if size is None else size <= CONFIRM_ABOVE
    if not small:
        _agree(options.confirm, replace(inputs.plan, download_bytes=size, installed_bytes=expected.on_disk))


class UnansweredError(Exception):
    """A download that somebody has to agree to, met while others wait for the mutex: it is asked without holding it."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        self.plan = plan


def asking_later(options: SetupOptions) -> SetupOptions:
    """Return options under which a question ends the run, before anything is changed, with UnansweredError."""

    def confirm(plan: Plan) -> bool:
        raise UnansweredError(plan)

    return options if options.confirm is None else replace(options, confirm=confirm)


def agreed_to(options: SetupOptions, question: UnansweredError) -> SetupOptions:
    """Ask the question and return options under which the same download is not asked about again.

    Raises ImprintError (`declined`).
    """
    _agree(options.confirm, question.plan)
    agreed = question.plan

    def confirm(plan: Plan) -> bool:
        same = (plan.build, plan.version) == (agreed.build, agreed.version)
        more = (plan.download_bytes or 0) > (agreed.download_bytes or 0)
        return (same and not more) or options.confirm is None or options.confirm(plan)

    return replace(options, confirm=confirm)


def _agree(confirm: Callable[[Plan], bool] | None, plan: Plan) -> None:
    if confirm is not None and not confirm(plan):
        raise ImprintError("nothing was changed: you declined the download", code="declined")


def provide_model(context: Context, options: SetupOptions, seams: Seams, sources: Sources, on_event: OnEvent) -> None:
    """Install the configured model when it is not there, or not whole. The caller holds the mutex."""
    home = context.home

    def installer(lock: Path, folder: Path) -> None:
        uv = find_uv(home, context.environ, sources)
        # What is downloaded, and the model that is made of it beside.
        needed = 2 * catalogue.load_catalogue().model(name).download.size
        uv.install([lock], python=own_interpreter(), folder=folder, needed=needed)

    name = config.load(home, context.environ, context.flags).text("model.name")
    seams.install_model(home, name, installer=installer, on_event=on_event, deep=options.repair)
    reached("model-installed")


def describe_machine(machine: Machine) -> str:
    """Return a machine as one short line: system, C library, Python, and its GPUs where they were looked for."""
    platform, libc = machine.platform, machine.platform.libc
    parts = [" ".join(filter(None, (platform.os, platform.arch))) or "an unknown system"]
    if libc is not None:
        parts.append(" ".join(filter(None, (libc.name, libc.version))))
    parts.append(f"Python {machine.python.version}" if machine.python.version else "an unknown Python")
    gpus = machine.nvidia.gpus or ()
    parts += [gpu.name or gpu.uuid or "an unnamed GPU" for gpu in gpus]
    if gpus and machine.nvidia.driver:
        parts.append(f"driver {machine.nvidia.driver}")
    return ", ".join(parts)


@dataclass(slots=True)
class Story:
    """Tells the first two steps of a run only once it is known that something will change: no change, no talk."""

    on_event: OnEvent
    told: bool = False

    def begin(self, inputs: Inputs) -> None:
        """Tell what was seen and planned; later plans of the same run are told as well."""
        if not self.told:
            self.on_event(Event("done", "survey", describe_machine(inputs.machine)))
        self.told = True
        plan = inputs.plan
        where = "" if plan.device is None else f" on {plan.device.name or plan.device.uuid or 'the GPU'}"
        self.on_event(Event("done", "plan", f"{plan.build} {plan.version}{where}: {plan.reason}"))
