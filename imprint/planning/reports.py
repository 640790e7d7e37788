"""The JSON form of what is told about a decision: gates, devices and choices. Written only; nothing reads them back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from imprint.planning.choices import Choice
from imprint.planning.devices import DeviceReport
from imprint.planning.explain import Explanation


def explanations_to_json(explanations: Iterable[Explanation]) -> list[dict[str, Any]]:
    """Write every gate of every build: a list of `{"build", "version", "gates": [{"gate", "outcome", ...}]}`."""
    return [
        {
            "build": one.build,
            "version": one.version,
            "gates": [
                {"gate": gate.gate, "outcome": gate.outcome, "code": gate.code, "reason": gate.reason}
                for gate in one.gates
            ],
        }
        for one in explanations
    ]


def devices_to_json(reports: Iterable[DeviceReport]) -> dict[str, Any]:
    """Write the `data` of `imprint devices --json`."""
    return {
        "devices": [
            {
                "index": one.gpu.index,
                "uuid": one.gpu.uuid,
                "name": one.gpu.name,
                "compute_capability": one.gpu.compute_capability,
                "memory_mib": one.gpu.memory_mib,
                "builds": [{"build": build.build, "how": build.how} for build in one.builds],
                "code": one.code,
                "reason": one.reason,
            }
            for one in reports
        ]
    }


def choices_to_json(choices: Iterable[Choice]) -> list[dict[str, Any]]:
    """Write the `choices` of a configuration key; each has a detail or a reason."""
    return [
        {"value": one.value, "available": one.available}
        | ({"detail": one.detail} if one.available else {"reason": one.reason})
        for one in choices
    ]
