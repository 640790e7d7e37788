"""`devices`: for each GPU which builds run on it and how, or why none does."""

from __future__ import annotations

from typing import Any

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


def devices(context: Context) -> Result:
    """Return every NVIDIA GPU that a process here can use; when there is none, `code` and `reason` say why.

    Raises StateError for state that cannot be read.
    """
    findings = Findings()
    current_target(context.home, findings)
    machine = survey(RealHost(context.environ))
    builds = load_builds(digests=False)
    reports = report_devices(machine, builds)
    why = None if reports else decide(Request(device="gpu", portable_gpu=False), machine, builds, (), None)
    return Result(
        {
            "devices": [document(report) for report in reports],
            "code": why.code if why else None,
            "reason": why.reason if why else None,
        },
        tuple(notices_of(findings)),
    )


def document(report: DeviceReport) -> dict[str, Any]:
    """Return the JSON form of one GPU."""
    gpu = report.gpu
    return {
        "index": gpu.index,
        "uuid": gpu.uuid,
        "name": gpu.name,
        "compute_capability": gpu.compute_capability,
        "memory_mib": gpu.memory_mib,
        "builds": [{"build": build.build, "how": build.how} for build in report.builds],
        "code": report.code,
        "reason": report.reason,
    }
