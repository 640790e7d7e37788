"""`machine`: the facts about this machine that plans depend on, with its GPUs, because they were asked for."""

from __future__ import annotations

from pathlib import Path

from imprint.context import Context
from imprint.planning.model import Machine
from imprint.probing.survey import survey
from imprint.probing.this_machine import RealHost
from imprint.results import Result
from imprint.situation.documents import LONGEST, read_machine
from imprint.situation.targets import target_of

__all__ = ["LONGEST", "machine", "read_machine"]


def machine(context: Context, venv: Path | None = None, *, redacted: bool = False) -> Result[Machine]:
    """Return the machine document as the target's interpreter (without a target, this one) finds it.

    The target is the managed one or the environment `venv`. `redacted` leaves out UUIDs, paths and host names. Raises
    StateError for state that cannot be read, and ImprintError for an interpreter that does not answer.
    """
    from imprint.probing.redact import redact

    target = target_of(context, venv)
    if target is not None and target.refused is not None:
        raise target.refused
    found = survey(RealHost(), python=target.python if target else None)
    return Result(redact(found) if redacted else found)
