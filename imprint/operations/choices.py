"""What the values of `model.device` and `model.gpu_device` would do on this machine; looks at its hardware."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from imprint.errors import ImprintError
from imprint.operations.context import Context
from imprint.operations.planning_inputs import load_builds
from imprint.operations.result import Remark
from imprint.operations.status import remarks_of
from imprint.planning.choices import Choice, device_choices, gpu_device_choices
from imprint.planning.model import Installed, Request
from imprint.planning.rule import decide
from imprint.probing.host import RealHost
from imprint.probing.survey import survey
from imprint.runtime.target import current_target
from imprint.state import config, verdicts
from imprint.state.files import Damage


@dataclass(frozen=True, slots=True)
class Offered:
    """The choices of a key in JSON form, how to apply what is configured now, and remarks made on the way."""

    choices: list[dict[str, Any]]
    apply: str | None
    remarks: tuple[Remark, ...]


def choices_of(context: Context, key: str) -> Offered:
    """Return the choices of `model.device` or `model.gpu_device`. Never raises; an error becomes a remark."""
    findings: list[Damage] = []
    try:
        target = current_target(context.home, findings)
        recorded, damaged = verdicts.load(context.home)
        settings = config.load(context.home, context.environ, context.flags)
        machine = survey(RealHost(context.environ))
    except ImprintError as error:
        return Offered([], "`imprint setup`", (Remark.of(error),))
    builds = load_builds()
    installed = Installed(target.build, target.version) if target is not None and target.build is not None else None
    request = Request(
        settings.text("model.device"),
        settings.text("model.gpu_device"),
        settings.get("runtime.portable_gpu").value is not False,
    )
    offer = device_choices if key == "model.device" else gpu_device_choices
    offered = offer(request, machine, builds, recorded, installed)
    pending = decide(request, machine, builds, recorded, installed).pending
    return Offered(
        [document(choice) for choice in offered],
        "`imprint setup`" if pending else "restart what runs; the installed build stays",
        tuple(remarks_of([*findings, *damaged])),
    )


def document(choice: Choice) -> dict[str, Any]:
    """Return the JSON form of a choice: `detail` where it is available, `reason` where it is not."""
    text = {"detail": choice.detail} if choice.available else {"reason": choice.reason}
    return {"value": choice.value, "available": choice.available, **text}
