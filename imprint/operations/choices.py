"""What the values of `model.device` and `model.gpu_device` would do on this machine; looks at its hardware."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from imprint.errors import ImprintError
from imprint.operations.context import Context
from imprint.operations.planning_inputs import Inputs, gather
from imprint.operations.result import Remark
from imprint.operations.status import remarks_of
from imprint.operations.writing import read_as_writer
from imprint.planning.choices import Choice, device_choices, gpu_device_choices
from imprint.probing.host import RealHost
from imprint.probing.survey import survey
from imprint.runtime.target import current_target
from imprint.state.findings import Findings


@dataclass(frozen=True, slots=True)
class Offered:
    """The choices of a key in JSON form, how to apply what is configured now, and remarks made on the way."""

    choices: list[dict[str, Any]]
    apply: str | None
    remarks: tuple[Remark, ...]


def choices_of(context: Context, key: str) -> Offered:
    """Return the choices of `model.device` or `model.gpu_device`. Never raises; an error becomes a remark."""
    machine = survey(RealHost(context.environ))

    def read(findings: Findings) -> Inputs:
        return gather(context, current_target(context.home, findings), findings=findings, machine=machine)

    try:
        inputs, findings = read_as_writer(context, read, "imprint config", wait_seconds=0)
    except ImprintError as error:
        return Offered([], "`imprint setup`", (Remark.of(error),))
    offer = device_choices if key == "model.device" else gpu_device_choices
    offered = offer(inputs.request, inputs.machine, inputs.builds, inputs.verdicts, inputs.installed)
    return Offered(
        [document(choice) for choice in offered],
        "`imprint setup`"
        if inputs.plan.pending
        else "nothing to install; restart running Imprint processes to apply this",
        tuple(remarks_of(findings)),
    )


def document(choice: Choice) -> dict[str, Any]:
    """Return the JSON form of a choice: `detail` where it is available, `reason` where it is not."""
    text = {"detail": choice.detail} if choice.available else {"reason": choice.reason}
    return {"value": choice.value, "available": choice.available, **text}
