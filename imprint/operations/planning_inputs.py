"""Gathers what planning needs from configuration, machine and state, and plans: the one way from here to a plan."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

from imprint import resources
from imprint.operations.context import Context
from imprint.planning.builds import BuildTable, parse_builds
from imprint.planning.fingerprints import fingerprint_of
from imprint.planning.model import Installed, Machine, Plan, Request, Verdict
from imprint.planning.rule import asks_for_gpu, decide
from imprint.probing.host import RealHost
from imprint.probing.survey import survey
from imprint.runtime.check import CHECK_ID
from imprint.runtime.target import Target
from imprint.state import config, verdicts
from imprint.state.files import Damage


@dataclass(frozen=True, slots=True)
class Inputs:
    """A plan and what it was made from. `proved`: a passed check of its build on its GPU is recorded."""

    plan: Plan
    request: Request
    machine: Machine
    builds: BuildTable
    verdicts: tuple[Verdict, ...]
    proved: bool


def gather(
    context: Context,
    target: Target | None,
    *,
    findings: list[Damage] | None = None,
    machine: Machine | None = None,
    ignore_failed: bool = False,
) -> Inputs:
    """Return the plan for `machine` (None: this one) and the managed target.

    No hardware is read when the CPU is asked for. With `ignore_failed` recorded failures do not count.
    """
    settings = config.load(context.home, context.environ, context.flags)
    request = Request(
        settings.text("model.device"),
        settings.text("model.gpu_device"),
        settings.get("runtime.portable_gpu").value is not False,
    )
    if machine is None:
        machine = survey(RealHost(context.environ), hardware=asks_for_gpu(request))
    builds = load_builds()
    recorded, damaged = verdicts.load(context.home)
    if findings is not None:
        findings.extend(damaged)
    counted = tuple(verdict for verdict in recorded if not (ignore_failed and verdict.result == "failed"))
    installed = Installed(target.build, target.version) if target is not None and target.build is not None else None
    plan = decide(request, machine, builds, counted, installed)
    here = fingerprint_of(plan, None, machine, builds)
    proved = plan.device is not None and any(
        verdict.result == "ok" and verdict.fingerprint == here for verdict in recorded
    )
    return Inputs(plan, request, machine, builds, recorded, proved)


def load_builds() -> BuildTable:
    """Return the table of builds that ships with this Imprint, with the digests of its locks."""
    folder = resources.lock_path("base.txt").parent
    digests = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.glob("*.txt"))}
    table = json.loads(resources.data_path("builds.json").read_text("utf-8"))
    return parse_builds(table, digests, CHECK_ID)
