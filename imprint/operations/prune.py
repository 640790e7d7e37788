"""`prune`: removes what no target needs any more, and says how much became free and what waits for which process."""

from __future__ import annotations

import sys
from pathlib import Path

from imprint.context import Context
from imprint.embedding import models
from imprint.errors import ImprintError
from imprint.hints import helps
from imprint.planning.builds import Wheel
from imprint.planning.gates import wheel_for
from imprint.planning.model import Plan
from imprint.probing.this_machine import RealHost
from imprint.provisioning.notices import DeferredFolder, notices_of_pruned, notices_of_skipped, waiting
from imprint.results import Result
from imprint.runtime import prune as pruning
from imprint.runtime.distributions.shipped import read_shipped
from imprint.runtime.events import OnEvent
from imprint.runtime.foreign import inplace
from imprint.runtime.foreign.inplace import InplaceOutcome
from imprint.runtime.installer import space
from imprint.runtime.installer.sources import Sources
from imprint.runtime.installer.uv import Uv, find_uv
from imprint.runtime.interrupts import interruptible
from imprint.runtime.managed import deferred, removal
from imprint.runtime.place import Changed
from imprint.runtime.target import Target, read_pointer
from imprint.situation.inputs import load_builds, survey_here
from imprint.situation.reading import notices_of
from imprint.situation.targets import command_for, target_of
from imprint.state import mutex
from imprint.state.findings import Findings
from imprint.values import Record


class PruneResult(Record):
    """The runtimes that were removed, what left the environment that was named, and the folders still in use."""

    freed_bytes: int
    removed: tuple[str, ...]
    changes: tuple[Changed, ...]
    deferred: tuple[DeferredFolder, ...]


def prune(
    context: Context,
    venv: Path | None = None,
    *,
    on_event: OnEvent = lambda _: None,
    wait_seconds: float = mutex.DEFAULT_WAIT,
) -> Result[PruneResult]:
    """Remove unfinished and unneeded generations, old tool environments, and from our cache what no target uses.

    With `venv` also the distributions of other builds that nothing in that environment needs; its own build stays.
    No other cache is touched, nothing is forced. Raises BusyError, StateError, InterruptedByUserError, and
    ImprintError when the environment cannot be changed.
    """
    home = context.home
    findings = Findings(writing_in=home)
    with interruptible("prune"), mutex.hold(home, wait_seconds, command="imprint prune"):
        removal.sweep_unfinished(home, read_pointer(home, findings))
        models.remove_leftovers(home)
        uv = find_uv(home, context.environ, Sources(offline=True))
        before = space.free_at(home.root)
        deferred.release(home)
        tools = pruning.remove_tools(home, Path(sys.prefix))
        after = space.free_at(home.root)
        outcome = _prune_environment(context, venv, uv, findings, on_event) if venv is not None else None
        pruned = pruning.prune(home, uv, known=read_shipped().ever)
    freed = pruned.freed + (max(0, (after or 0) - (before or 0)) if tools else 0)
    done = PruneResult(freed, (*pruned.removed, *tools), _changes(outcome), waiting(pruned))
    skipped = notices_of_skipped(outcome.skipped) if outcome is not None else ()
    return Result(done, warnings=(*notices_of(findings), *skipped, *notices_of_pruned(pruned)))


def _prune_environment(context: Context, venv: Path, uv: Uv, findings: Findings, on_event: OnEvent) -> InplaceOutcome:
    target = target_of(context, venv, findings)
    assert target is not None  # noqa: S101 - with an environment named it is that
    plan, host = _as_it_is(context, target), RealHost(context.environ)
    prepared = inplace.prepare(target.prefix, plan, context.home, host=host, findings=findings)
    if prepared.replacement.install or prepared.interrupted:
        raise ImprintError(
            f"`{target.prefix}` does not contain an intact {target.build}, so nothing was removed",
            hint=helps("run", command=command_for(target)),
            code="target-damaged",
        )
    return inplace.apply(prepared, uv, on_event)


def _changes(outcome: InplaceOutcome | None) -> tuple[Changed, ...]:
    if outcome is None or not outcome.changed:
        return ()
    return tuple(Changed(change.name, change.from_ or "", None) for change in outcome.plan.replacement.changes)


def _as_it_is(context: Context, target: Target) -> Plan:
    """Return the plan that an environment follows already."""
    builds = load_builds(digests=False)
    build = builds.find(target.build)
    machine = survey_here(context, python=target.python, hardware=False)
    wheel = wheel_for(build, machine) if build is not None else None
    if build is None or not isinstance(wheel, Wheel) or wheel.version != target.version:
        raise ImprintError(
            f"`{target.prefix}` contains no build of ONNX Runtime that Imprint knows, so nothing was removed",
            hint=helps("run", command=command_for(target)),
            code="not-installed",
        )
    return Plan(build.name, wheel.lock, wheel.version, None, "as-installed", "it is what is installed")
