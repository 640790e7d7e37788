"""Finds the target an operation is about: the managed one, or somebody's own environment (`--venv`), and its damage."""

from __future__ import annotations

import os
from pathlib import Path

from imprint.causes.errors import blocked_error, denied_file
from imprint.context import Context
from imprint.errors import ImprintError
from imprint.hints import helps
from imprint.quoting import quoted, shell_of
from imprint.runtime.distributions import inventory
from imprint.runtime.distributions.damage import INTERRUPTED, together, words_of
from imprint.runtime.distributions.inventory import Inventory
from imprint.runtime.distributions.metadata import is_vendor
from imprint.runtime.foreign import journal
from imprint.runtime.foreign.target import find_environment
from imprint.runtime.managed import generations
from imprint.runtime.target import Target, current_target
from imprint.situation.inputs import load_builds
from imprint.state.findings import UNHEARD, Findings


def target_of(context: Context, venv: Path | None, findings: Findings = UNHEARD) -> Target | None:
    """Return the managed target, None without one, or the environment at `venv` with the build its files are.

    Raises ImprintError with the reason when `venv` is no environment that can be used, StateError, StateNewerError.
    """
    if venv is None:
        return current_target(context.home, findings)
    return find_environment(venv, context.home, context.environ, load_builds(digests=False), findings)


def damage_in(context: Context, target: Target) -> tuple[str, ...]:
    """Return what is broken in a target, a fragment each; empty when it is whole. Nothing is started."""
    if target.managed:
        return generations.damage_of(target)
    faults = []
    seen = inventory.inspect(target.prefix)
    if journal.is_unfinished(journal.read_journal(journal.store_of(context.home, target.prefix)), seen):
        faults.append(INTERRUPTED)
    return (*faults, *_faults_of(seen))


def withheld_from(target: Target) -> ImprintError | None:
    """Return why the system does not let whole files of a target be run or loaded, None where it does; looks only.

    Any other library lies on the same disk as ONNX Runtime's own.
    """
    packages = inventory.packages_folder(target.prefix)
    library = str(next(packages.glob("onnxruntime/capi/onnxruntime_pybind11_state*"), packages)) if packages else ""
    python = str(target.python)
    return (
        blocked_error(python)
        or denied_file(python, execute=True)
        or (blocked_error(library) or denied_file(library) if library else None)
    )


def require_start(target: Target) -> None:
    """Raise ImprintError where the target's interpreter may not, or cannot, be started, or loads nothing there."""
    if (refused := target.refused or withheld_from(target)) is not None:
        raise refused
    if target.fault is not None:
        message = f"the runtime in `{target.prefix}` is damaged: {target.fault}"
        raise ImprintError(message, hint=helps("run", command=command_for(target)), code="target-damaged")


def command_for(target: Target | None, verb: str = "setup") -> str:
    """Return the command that does something to this target; without another verb the one that sets it up."""
    return command_of(verb, None if target is None or target.managed else target.prefix)


def command_of(verb: str, venv: Path | None) -> str:
    """Return the command that does something to the managed target, or to the environment `venv`."""
    place = "" if venv is None else f" --venv {quoted(str(venv), shell_of(os.environ))}"
    return f"imprint {verb}{place}"


def _faults_of(seen: Inventory) -> tuple[str, ...]:
    runtimes = seen.runtime_distributions
    if len(runtimes) > 1:
        return (together([found.name for found in runtimes]),)
    if runtimes and (seen.runtime is None or seen.runtime.package is None):
        return (f"the package {runtimes[0].name} is listed as installed, but its modules are missing",)
    if runtimes and seen.runtime is not None and seen.runtime.package != runtimes[0].name:
        return (f"{runtimes[0].name} contains the files of {seen.runtime.package}",)
    ours = [
        found
        for found in seen.problems
        if found.distribution in {each.name for each in runtimes} or is_vendor(found.distribution)
    ]
    return tuple(f"{found.distribution}: {words_of(found.kind, example=found.path)}" for found in ours[:1])
