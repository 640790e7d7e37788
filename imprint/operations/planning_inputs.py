"""Gathers what planning needs from configuration, machine and state, and plans: the one way from here to a plan.

The plumbing entry point comes through here too, so everything on the way is standard library, and what only some
plans need is imported where it is needed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from imprint import resources
from imprint.errors import UsageError
from imprint.operations.context import Context
from imprint.planning.builds import BuildTable, parse_builds
from imprint.planning.model import Installed, Machine, Plan, Request, Verdict
from imprint.planning.rule import asks_for_gpu, decide
from imprint.state import config
from imprint.values import Record

if TYPE_CHECKING:
    from pathlib import Path

    from imprint.runtime.target import Target
    from imprint.state.findings import Findings


class Inputs(Record):
    """A plan and what it was made from. `proved`: a passed check of the planned build on its GPU is recorded."""

    plan: Plan
    request: Request
    machine: Machine
    builds: BuildTable
    verdicts: tuple[Verdict, ...]
    proved: bool
    installed: Installed | None = None


def gather(  # noqa: PLR0913 - each keyword is one thing that a caller may already know
    context: Context,
    target: Target | None,
    *,
    findings: Findings | None = None,
    machine: Machine | None = None,
    ignore_failed: bool = False,
    to_record: bool = True,
) -> Inputs:
    """Return the plan for `machine` (None: this one, as the target's own interpreter sees it) and a target.

    No hardware is read when the CPU is asked for. With `ignore_failed` recorded failures do not count. `to_record`
    False spares hashing the locks where no verdict is recorded; a fingerprint made from the answer is then incomplete.
    Raises InvalidValueError and StateError as the configuration and the state files do.
    """
    request = request_of(context)
    if machine is None:
        # A managed target has the interpreter that runs this, which need not be asked.
        python = target.python if target is not None and not target.managed else None
        machine = survey_here(context, python=python, hardware=asks_for_gpu(request), processor=False)
    recorded = _recorded(context, findings)
    builds = load_builds(digests=to_record or bool(recorded))
    counted = tuple(verdict for verdict in recorded if not (ignore_failed and verdict.result == "failed"))
    installed = Installed(target.build, target.version) if target is not None and target.build is not None else None
    plan = decide(request, machine, builds, counted, installed)
    return Inputs(plan, request, machine, builds, recorded, _is_proved(plan, machine, builds, recorded), installed)


def gather_what_if(
    context: Context,
    machine: Machine,
    *,
    verdicts: Sequence[tuple[Verdict, frozenset[str]]] = (),
    installed: Installed | None = None,
    ignore_failed: bool = False,
) -> Inputs:
    """Return the plan for any machine; nothing of this one is read but its configuration.

    `verdicts` come from `wire.partial_verdicts_from_json`: what a fingerprint does not name is that of `machine`.
    """
    from imprint.planning.fingerprints import complete_verdict

    request, builds = request_of(context), load_builds(digests=bool(verdicts))
    complete = tuple(complete_verdict(verdict, given, machine, builds, request) for verdict, given in verdicts)
    counted = () if ignore_failed else complete
    plan = decide(request, machine, builds, counted, installed)
    return Inputs(plan, request, machine, builds, counted, proved=False, installed=installed)


def request_of(context: Context) -> Request:
    """Return what the configuration of this run asks for. Raises as `config.load` does."""
    settings = config.load(context.home, context.environ, context.flags)
    return Request(
        device=settings.text("model.device"),
        gpu_device=settings.text("model.gpu_device"),
        portable_gpu=settings.get("runtime.portable_gpu").value is not False,
    )


def load_builds(*, digests: bool = True) -> BuildTable:
    """Return the table of builds that ships with this Imprint.

    Without `digests` it cannot tell which verdicts hold; that is enough where there are none.
    """
    table = json.loads(resources.data_path("builds.json").read_text("utf-8"))
    if not digests:
        return parse_builds(table, {}, "")
    import hashlib

    from imprint.runtime.check_id import CHECK_ID

    folder = resources.lock_path("base.txt").parent
    found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.glob("*.txt"))}
    return parse_builds(table, found, CHECK_ID)


def parse_document(text: str, source: str) -> object:
    """Return the JSON value of a document somebody gave us. Raises UsageError that names the source and the line."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        problem = f"{source} is not JSON: {error.msg} (line {error.lineno}, column {error.colno})"
        raise UsageError(problem, hint="`imprint machine --json` writes such a document") from None
    except RecursionError:
        raise UsageError(f"{source} nests too deeply for a document of Imprint's") from None


def survey_here(context: Context, *, hardware: bool, python: Path | None = None, processor: bool = True) -> Machine:
    """Return this machine as `python` (None: the interpreter that runs this) finds it."""
    from imprint.probing.host import RealHost
    from imprint.probing.survey import survey

    return survey(RealHost(context.environ), python=python, hardware=hardware, processor=processor)


def _is_proved(plan: Plan, machine: Machine, builds: BuildTable, recorded: tuple[Verdict, ...]) -> bool:
    if plan.device is None or not recorded:
        return False
    from imprint.planning.fingerprints import fingerprint_of

    here = fingerprint_of(plan, None, machine, builds)
    return any(verdict.result == "ok" and verdict.fingerprint == here for verdict in recorded)


def _recorded(context: Context, findings: Findings | None) -> tuple[Verdict, ...]:
    if not os.path.lexists(context.home.verdicts):
        return ()
    from imprint.state import verdicts

    return verdicts.load(context.home, findings)
