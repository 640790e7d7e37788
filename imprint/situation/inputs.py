"""Gathers what planning needs from configuration, machine and state, and plans: the one way from here to a plan.

The plumbing entry point comes through here too, so everything on the way is standard library, and what only some
plans need is imported where it is needed.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from imprint import resources
from imprint.context import Context
from imprint.errors import StateError, StateNewerError, UsageError
from imprint.hints import helps
from imprint.paths import is_absent
from imprint.planning.builds import BuildTable, parse_builds
from imprint.planning.model import Installed, Libc, Machine, Plan, Python, Request, Verdict
from imprint.planning.rule import asks_for_gpu, decide
from imprint.state import config
from imprint.state.findings import UNHEARD
from imprint.values import Record, fields_of, replace

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
    findings: Findings = UNHEARD,
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
        machine = survey_here(context, python=python, hardware=asks_for_gpu(request), processor=_may_be_translated())
    recorded = _recorded(context, findings, needed=asks_for_gpu(request))
    builds = load_builds(digests=to_record or bool(recorded))
    counted = tuple(verdict for verdict in recorded if not (ignore_failed and verdict.result == "failed"))
    installed = Installed(target.build, target.version) if target is not None and target.build is not None else None
    plan = decide(request, machine, builds, counted, installed)
    venv = target.prefix if target is not None and not target.managed else None
    plan = advised(plan, request, machine, builds, environ=context.environ, venv=venv)
    if not ignore_failed and plan.device is not None and recorded:
        plan = _with_uncounted(plan, machine, builds, recorded)
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
    plan = advised(plan, request, machine, builds, environ=context.environ)
    return Inputs(plan, request, machine, builds, counted, proved=False, installed=installed)


_COMPUTED = frozenset(
    {
        "driver-too-old",
        "gpu-not-found",
        "gpu-list-unsupported",
        "compute-capability-unsupported",
        "ptx-needs-newer-driver",
    }
)
"""Codes whose hint is found by planning again; without one nothing helps."""

HELPLESS = frozenset({"device-cpu", "no-nvidia-gpu", "vendor-not-nvidia", "os-no-gpu-build", "arch-no-gpu-build"})
"""Codes of plans that are as they should be: reading the catalogue for them would cost every start its time."""


def advised(  # noqa: PLR0913 - what a plan is made from
    plan: Plan,
    request: Request,
    machine: Machine,
    builds: BuildTable,
    *,
    environ: Mapping[str, str],
    venv: Path | None = None,
) -> Plan:
    """Return the plan with the catalogue's remedies that fit there, where no hint was computed and something helps."""
    code = _cause_of(plan, request, machine)
    if plan.hint is not None or plan.device is not None or code in HELPLESS | _COMPUTED:
        return plan
    if not _would_help(plan.code, request, machine, builds):
        return plan
    from imprint.causes.catalogue import as_one, remedies_for
    from imprint.causes.circumstances import of_machine
    from imprint.quoting import quoted, shell_of

    there = of_machine(machine, environ)
    if venv is not None:
        there = there.with_(setup=f"imprint setup --venv {quoted(str(venv), shell_of(environ))}")
    return replace(plan, hint=as_one(remedies_for(code, there)))


def _cause_of(plan: Plan, request: Request, machine: Machine) -> str:
    """Return the code whose remedies help: somebody who asks for a GPU in a container expects the host to have one."""
    asked = request.device == "gpu" and machine.platform.container
    return "container-no-gpu" if plan.code == "no-nvidia-gpu" and asked else plan.code


def _would_help(code: str, request: Request, machine: Machine, builds: BuildTable) -> bool:
    """Whether a GPU would be planned with another Python or another C library, where that is what is advised."""
    if code == "python-no-gpu-wheel":
        return decide(request, replace(machine, python=Python("3.12.4", "cp312")), builds, (), None).device is not None
    if code in {"libc-musl", "libc-too-old"}:
        newer = replace(machine.platform, libc=Libc("glibc", "2.39"))
        return decide(request, replace(machine, platform=newer), builds, (), None).device is not None
    return True


def _may_be_translated() -> bool:
    """Whether the processor's name says something that a plan needs: an Intel interpreter may run on Apple silicon."""
    return sys.platform == "darwin" and os.uname().machine == "x86_64"


def request_of(context: Context) -> Request:
    """Return what the configuration of this run asks for. Raises as `config.load` does."""
    settings = config.load(context.home, context.environ, context.flags)
    return Request(
        device=settings.device,
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

    from imprint.runtime.check.identity import CHECK_ID

    folder = resources.lock_path("base.txt").parent
    found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.glob("*.txt"))}
    return parse_builds(table, found, CHECK_ID)


def machine_here(machine: Machine, context: Context) -> Machine:
    """Return another machine's document with the interpreter that runs this, which will be the target's.

    Raises UsageError when that machine cannot run what is installed here.
    """
    own = survey_here(context, hardware=False)
    for what in ("os", "arch"):
        theirs, ours = getattr(machine.platform, what), getattr(own.platform, what)
        if theirs is not None and theirs != ours:
            raise UsageError(
                f"that machine has {theirs} and this one has {ours}, so it could not run this runtime",
                hint=helps("setup-there"),
            )
    libcs = [found.platform.libc.name for found in (machine, own) if found.platform.libc is not None]
    if len(set(filter(None, libcs))) > 1:
        raise UsageError("that machine has another C library, so it could not run this runtime")
    return replace(machine, python=own.python)


def survey_here(context: Context, *, hardware: bool, python: Path | None = None, processor: bool = True) -> Machine:
    """Return this machine as `python` (None: the interpreter that runs this) finds it."""
    from imprint.probing.survey import survey
    from imprint.probing.this_machine import RealHost

    return survey(RealHost(context.environ), python=python, hardware=hardware, processor=processor)


_UNKNOWN = {"driver": "the driver's version", "gpu_uuid": "the GPU's UUID", "gpu_name": "the GPU's name"}
"""What a person calls those facts of a fingerprint that a machine may not tell."""


def _with_uncounted(plan: Plan, machine: Machine, builds: BuildTable, recorded: tuple[Verdict, ...]) -> Plan:
    """Return a plan for a GPU with the failed check of it that cannot count as its reason, where there is one.

    Where a fact is unknown, nobody can tell whether the failure still holds: the build is tried again, but what is
    known is told.
    """
    from imprint.planning.fingerprints import FAILED, fingerprint_of

    here = fingerprint_of(plan, None, machine, builds)
    unknown = [_UNKNOWN.get(name, name) for name in fields_of(type(here)) if getattr(here, name) is None]
    failed = [verdict for verdict in recorded if verdict.result == FAILED and verdict.fingerprint == here]
    last = max(failed, key=lambda verdict: verdict.time or "", default=None)
    build = builds.find(plan.build or "")
    if last is None or build is None or not unknown:
        return plan
    how = ": ".join(filter(None, (", ".join(filter(None, (last.kind, last.time))), last.detail)))
    verb = "is" if len(unknown) == 1 else "are"
    because = f"it does not count, because {' and '.join(unknown)} {verb} unknown"
    reason = f"the last check of the {build.title} build failed ({how}); {because}"
    return replace(plan, code="check-failed", reason=reason)


def _is_proved(plan: Plan, machine: Machine, builds: BuildTable, recorded: tuple[Verdict, ...]) -> bool:
    if plan.device is None or not recorded:
        return False
    from imprint.planning.fingerprints import fingerprint_of

    here = fingerprint_of(plan, None, machine, builds)
    return any(verdict.result == "ok" and verdict.fingerprint == here for verdict in recorded)


def _recorded(context: Context, findings: Findings, *, needed: bool) -> tuple[Verdict, ...]:
    """Return the recorded verdicts; unless they are needed, a file that cannot be read is told and counts as none."""
    if is_absent(context.home.verdicts):
        return ()
    from imprint.state import verdicts

    try:
        return verdicts.load(context.home, findings)
    except StateNewerError:
        raise
    except StateError as error:
        if needed:
            raise
        findings.unread(context.home.verdicts, error)
        return ()
