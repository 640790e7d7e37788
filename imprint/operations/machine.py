"""`machine`: the facts about this machine that plans depend on, with its GPUs, because they were asked for."""

from __future__ import annotations

from imprint.operations.context import Context
from imprint.operations.result import Result
from imprint.planning.wire import machine_to_json
from imprint.probing.host import RealHost
from imprint.probing.survey import survey
from imprint.runtime.target import current_target


def machine(context: Context, *, redacted: bool = False) -> Result:
    """Return the machine document as the target's interpreter (without a target, this one) finds it.

    `redacted` leaves out UUIDs, paths and host names. Raises StateError for state that cannot be read, and
    ImprintError for a target whose interpreter does not answer.
    """
    from imprint.probing.redact import redact

    target = current_target(context.home)
    found = survey(RealHost(), python=target.python if target else None)
    return Result(machine_to_json(redact(found) if redacted else found))
