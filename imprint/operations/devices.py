"""`devices`: for each GPU which builds run on it and how, or why none does."""

from __future__ import annotations

from imprint.context import Context
from imprint.planning.choices import DeviceReport
from imprint.planning.choices import devices as report_devices
from imprint.planning.model import Request
from imprint.planning.rule import decide
from imprint.probing.survey import survey
from imprint.probing.this_machine import RealHost
from imprint.results import Result
from imprint.runtime.target import current_target
from imprint.situation.inputs import load_builds
from imprint.situation.reading import notices_of
from imprint.state.findings import Findings
from imprint.values import Record


class Devices(Record):
    """Every NVIDIA GPU that a process here can use; when there is none, `code` and `reason` say why."""

    devices: tuple[DeviceReport, ...]
    code: str | None
    reason: str | None


def devices(context: Context) -> Result[Devices]:
    """Return the GPUs and what runs on them. Raises StateError for state that cannot be read."""
    findings = Findings()
    current_target(context.home, findings)
    machine = survey(RealHost(context.environ))
    builds = load_builds(digests=False)
    reports = report_devices(machine, builds)
    why = None if reports else decide(Request(device="gpu", portable_gpu=False), machine, builds, (), None)
    found = Devices(reports, why.code if why else None, why.reason if why else None)
    return Result(found, tuple(notices_of(findings)))
