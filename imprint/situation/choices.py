"""The devices that can be chosen on this machine, and what choosing one asks for: what `config set` answers with."""

from __future__ import annotations

from imprint.context import Context
from imprint.errors import ImprintError
from imprint.planning.choices import device_choices, gpu_device_choices
from imprint.planning.model import Choice
from imprint.probing.survey import survey
from imprint.probing.this_machine import RealHost
from imprint.results import Notice
from imprint.runtime.target import current_target
from imprint.situation.inputs import Inputs, gather
from imprint.situation.reading import notices_of, read_as_writer
from imprint.state.findings import Findings
from imprint.values import Record


class Offered(Record):
    """The choices of a key, how to apply what is configured now, and notices made on the way."""

    choices: tuple[Choice, ...]
    apply: str | None
    notices: tuple[Notice, ...]


def choices_of(context: Context, key: str) -> Offered:
    """Return the choices of `model.device` or `model.gpu_device`. Never raises; an error becomes a notice."""
    machine = survey(RealHost(context.environ))

    def read(findings: Findings) -> Inputs:
        return gather(context, current_target(context.home, findings), findings=findings, machine=machine)

    try:
        inputs, findings = read_as_writer(context, read, "imprint config", wait_seconds=0)
    except ImprintError as error:
        return Offered((), "`imprint setup`", (Notice.of(error),))
    offer = device_choices if key == "model.device" else gpu_device_choices
    offered = offer(inputs.request, inputs.machine, inputs.builds, inputs.verdicts, inputs.installed)
    return Offered(
        offered,
        "`imprint setup`"
        if inputs.plan.pending
        else "nothing to install; restart running Imprint processes to apply this",
        tuple(notices_of(findings)),
    )
