"""`plan`: decide and explain, for this machine or for any other whose document is given; change nothing."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TypeVar

from imprint.errors import UsageError
from imprint.operations.context import Context
from imprint.operations.planning_inputs import gather, load_builds
from imprint.operations.result import Remark, Result
from imprint.operations.status import remarks_of
from imprint.planning.builds import BuildTable
from imprint.planning.explain import explain
from imprint.planning.fingerprints import complete_verdict
from imprint.planning.model import Installed, Machine, Python, Request, Verdict
from imprint.planning.rule import decide
from imprint.planning.wire import machine_from_json, partial_verdicts_from_json, plan_to_json
from imprint.runtime.target import current_target
from imprint.state import config
from imprint.state.files import Damage

T = TypeVar("T")

LONGEST = 16 * 1024 * 1024
"""A document larger than this (bytes) is refused unread."""

_PYTHON = re.compile(r"(\d{1,2})\.(\d{1,3})(\.\d+\S*?)?(t?)")


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """What to plan for. `machine` and `verdicts` are paths, `machine` also `-` for what `stdin` gives.

    With `machine` nothing local is read; `verdicts`, `installed` (`BUILD[==VERSION]`) and `python` replace what is
    known here, or stand in for it.
    """

    machine: str | None = None
    verdicts: str | None = None
    installed: str | None = None
    python: str | None = None
    explain: bool = False
    stdin: Callable[[], bytes] = lambda: sys.stdin.buffer.read(LONGEST + 1)


@dataclass(frozen=True, slots=True)
class _Question:
    request: Request
    machine: Machine
    builds: BuildTable
    verdicts: tuple[Verdict, ...]
    installed: Installed | None
    warnings: tuple[Remark, ...] = ()


def plan(context: Context, options: PlanOptions) -> Result:
    """Return the plan document, with `gates` when asked to explain. Raises UsageError for a document that is none.

    Raises what reading configuration and state raises, unless another machine is planned for.
    """
    question = _elsewhere(context, options) if options.machine is not None else _here(context)
    question = _replaced(question, options)
    decided = decide(question.request, question.machine, question.builds, question.verdicts, question.installed)
    data = plan_to_json(decided)
    if options.explain:
        data["gates"] = [
            {"build": build.build, "version": build.version, **asdict(gate)}
            for build in explain(question.request, question.machine, question.builds, question.verdicts)
            for gate in build.gates
        ]
    return Result(data, question.warnings)


def _here(context: Context) -> _Question:
    findings: list[Damage] = []
    target = current_target(context.home, findings)
    inputs = gather(context, target, findings=findings)
    return _Question(
        inputs.request,
        inputs.machine,
        inputs.builds,
        inputs.verdicts,
        inputs.plan.installed,
        tuple(remarks_of(findings)),
    )


def _elsewhere(context: Context, options: PlanOptions) -> _Question:
    settings = config.merge({}, context.environ, context.flags, context.home.config)
    request = Request(
        settings.text("model.device"),
        settings.text("model.gpu_device"),
        settings.get("runtime.portable_gpu").value is not False,
    )
    machine = read_machine(options.machine or "-", options.stdin)
    return _Question(request, machine, load_builds(), (), None)


def _replaced(question: _Question, options: PlanOptions) -> _Question:
    if options.python is not None:
        python = parse_python_option(options.python)
        question = replace(question, machine=replace(question.machine, python=python))
    if options.installed is not None:
        question = replace(question, installed=parse_installed(options.installed, question.builds))
    if options.verdicts is not None:
        name = options.verdicts
        given = _named(name, lambda: partial_verdicts_from_json(read_document(name)))
        completed = tuple(
            complete_verdict(verdict, fields, question.machine, question.builds, question.request)
            for verdict, fields in given
        )
        question = replace(question, verdicts=completed)
    return question


def read_machine(name: str, stdin: Callable[[], bytes]) -> Machine:
    """Return the machine of a document, bare or in an envelope; `-` reads `stdin`. Raises UsageError with the file."""
    obj = parse_document(stdin(), "standard input") if name == "-" else read_document(name)
    return _named("standard input" if name == "-" else name, lambda: machine_from_json(obj))


def _named(name: str, read: Callable[[], T]) -> T:
    try:
        return read()
    except UsageError as error:
        if error.message.startswith(name):
            raise
        raise UsageError(f"{name}: {error.message}", hint=error.hint or "docs/json.md shows the document") from None


def read_document(name: str) -> object:
    """Return the JSON of a file. Raises UsageError where it cannot be read or is no JSON."""
    try:
        with Path(name).open("rb") as file:
            raw = file.read(LONGEST + 1)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"{name} cannot be read: {why}", hint="name a file that `imprint machine` wrote") from None
    return parse_document(raw, name)


def parse_document(raw: bytes, name: str) -> object:
    """Return the JSON in bytes. Raises UsageError that names where they came from."""
    hint = "`imprint machine > FILE` writes such a document"
    if len(raw) > LONGEST:
        raise UsageError(f"{name} is too large for such a document", hint=hint)
    try:
        return json.loads(raw.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{name} is not JSON: {str(error)[:120]}", hint=hint) from None


def parse_python_option(text: str) -> Python:
    """Return the interpreter that `3.12`, `3.12.4` or `3.13t` stands for. Raises UsageError for anything else."""
    match = _PYTHON.fullmatch(text)
    if match is None:
        raise UsageError(f"`{text}` is no Python version", hint="write it like 3.12, 3.12.4 or 3.13t")
    major, minor, rest, free = match.groups()
    return Python(f"{major}.{minor}{rest or ''}", f"cp{major}{minor}{free}")


def parse_installed(text: str, builds: BuildTable) -> Installed:
    """Return the installed build that `cuda12` or `cuda12==1.26.0` stands for. Raises UsageError for an unknown one."""
    name, separator, version = text.partition("==")
    if builds.find(name.strip()) is None:
        known = ", ".join(build.name for build in builds.builds)
        raise UsageError(f"`{name}` is no build", hint=f"the builds are {known}")
    if separator and not version.strip():
        raise UsageError(f"`{text}` names no version", hint="write it like cuda12==1.26.0, or leave out ==")
    return Installed(name.strip(), version.strip() or None)
