"""`plan`: decide and explain, for this machine or for any other whose document is given; change nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from imprint.context import Context
from imprint.errors import UsageError
from imprint.hints import helps
from imprint.planning.facts import is_free_threaded
from imprint.planning.fingerprints import complete_verdict
from imprint.planning.model import Installed, Plan
from imprint.planning.rule import decide
from imprint.provisioning.downloads import Download, download_for
from imprint.results import Notice, Result
from imprint.situation.asked import unused_gpu_device
from imprint.situation.inputs import Inputs, advised, gather, gather_what_if, load_builds
from imprint.state.findings import Findings
from imprint.values import Record, replace

if TYPE_CHECKING:
    from imprint.runtime.target import Target
    from imprint.situation.verdict import Prove
from imprint.situation.documents import LONGEST, parse_installed, parse_python_option, read_machine, read_verdicts

__all__ = ["Download", "PlanOptions", "download_for", "plan"]


class PlanOptions(Record):
    """What to plan for. `machine` and `verdicts` are paths, `machine` also `-` for what `stdin` gives.

    With `machine` no local state is read; `verdicts`, `installed` (`BUILD[==VERSION]`) and `python` replace what is
    known, or stand in for it. `venv` plans for somebody's own environment, as its interpreter sees this machine. With
    `check` whatever setup would mend is a change that is pending, though the build is the planned one.
    """

    machine: str | None = None
    verdicts: str | None = None
    installed: str | None = None
    python: str | None = None
    venv: Path | None = None
    explain: bool = False
    check: bool = False
    stdin: Callable[[], bytes] = lambda: sys.stdin.buffer.read(LONGEST + 1)


def plan(context: Context, options: PlanOptions, *, prove: Prove | None = None) -> Result[Plan]:
    """Return the plan document, with `gates` when asked to explain. Raises UsageError for a document that is none.

    With `check` an error where nothing can be installed, or where what is installed is the planned build and does not
    work; `prove` runs the check where none that holds is recorded. Raises what reading configuration and state raises;
    state is not read when another machine is planned for.
    """
    warnings: tuple[Notice, ...] = ()
    errors: tuple[Notice, ...] = ()
    pending: bool | None = None
    target: Target | None = None
    if options.machine is not None and options.venv is not None:
        raise UsageError("`--machine` and `--venv` were both given", hint=helps("give-one"))
    if options.machine is not None:
        inputs = _elsewhere(context, options)
    else:
        target, inputs, warnings = _here(context, options)
        inputs = _replaced(context, inputs, options)
        if options.check and options.installed is None:
            pending, warnings_found, errors = _judged(context, target, inputs, prove)
            warnings = (*warnings, *warnings_found)
    warnings = (*warnings, *unused_gpu_device(context))
    told = replace(inputs.plan, pending=inputs.plan.pending if pending is None else pending)
    if told.installed is None and options.installed is None and target is not None and target.version is not None:
        told = replace(told, installed=Installed(None, target.version))
    refused = _refused(inputs)
    if options.check and refused is not None:
        errors = (refused,)
    elif refused is not None and inputs.plan.build is not None:
        warnings = (*warnings, refused)
    if options.explain:
        from imprint.planning.explain import explain

        told = replace(told, gates=explain(inputs.request, inputs.machine, inputs.builds, inputs.verdicts))
    return Result(told, warnings, errors)


def _here(context: Context, options: PlanOptions) -> tuple[Target | None, Inputs, tuple[Notice, ...]]:
    from imprint.runtime.target import current_target

    findings = Findings()
    if options.venv is None:
        target = current_target(context.home, findings)
    else:
        from imprint.situation.targets import target_of

        target = target_of(context, options.venv, findings)
    inputs = gather(context, target, findings=findings, to_record=False)
    return target, inputs, tuple(Notice(found.code, found.message, found.hint) for found in findings)


def _refused(inputs: Inputs) -> Notice | None:
    """Return why setup would install nothing, None where it would."""
    plan = inputs.plan
    if plan.build is None:
        return Notice(plan.code, plan.reason, plan.hint)
    if not is_free_threaded(inputs.machine):
        return None
    from imprint.provisioning.options import free_threaded

    return free_threaded(inputs.machine)


def _judged(
    context: Context, target: Target | None, inputs: Inputs, prove: Prove | None
) -> tuple[bool, tuple[Notice, ...], tuple[Notice, ...]]:
    """Return whether setup has something to change at what is there, and the warnings and errors about it."""
    from imprint.runtime.check.run import run_check
    from imprint.runtime.verdict import ABSENT, decide
    from imprint.situation.verdict import look_at, notices_of_verdict, what_setup_does

    changes = False
    if target is not None and not target.managed and inputs.plan.build is not None:
        changes, refused = what_setup_does(context, target, inputs.plan)
        if refused is not None:
            return False, (), (Notice.of(refused),)
    verdict = decide(look_at(context, target, inputs.plan, gpu_proved=inputs.proved, prove=prove or run_check))
    if verdict.seen.blocked is not None:
        return False, (), (Notice.of(verdict.seen.blocked),)
    # That nothing is installed is what the plan is about.
    found = tuple(one for one in notices_of_verdict(verdict) if one.code != ABSENT)
    return (True, found, ()) if verdict.pending or changes else (False, (), found)


def _elsewhere(context: Context, options: PlanOptions) -> Inputs:
    machine = read_machine(options.machine or "-", options.stdin)
    if options.python is not None:
        machine = replace(machine, python=parse_python_option(options.python))
    verdicts = read_verdicts(options.verdicts) if options.verdicts is not None else ()
    installed = parse_installed(options.installed) if options.installed is not None else None
    return gather_what_if(context, machine, verdicts=verdicts, installed=installed)


def _replaced(context: Context, inputs: Inputs, options: PlanOptions) -> Inputs:
    """Return the inputs of this machine with what the options replace, and the plan that follows."""
    if options.python is None and options.installed is None and options.verdicts is None:
        return inputs
    machine, installed, verdicts, builds = inputs.machine, inputs.installed, inputs.verdicts, inputs.builds
    if options.python is not None:
        machine = replace(machine, python=parse_python_option(options.python))
    if options.installed is not None:
        installed = parse_installed(options.installed)
    if options.verdicts is not None:
        builds = load_builds()
        verdicts = tuple(
            complete_verdict(verdict, given, machine, builds, inputs.request)
            for verdict, given in read_verdicts(options.verdicts)
        )
    decided = decide(inputs.request, machine, builds, verdicts, installed)
    decided = advised(decided, inputs.request, machine, builds, environ=context.environ, venv=options.venv)
    return Inputs(decided, inputs.request, machine, builds, verdicts, proved=False, installed=installed)
