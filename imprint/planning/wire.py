"""The one JSON form of each value of planning, read strictly; `writing` writes it.

Reading what was written gives an equal value. Errors are UsageError and name the place in the document.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from imprint.planning import documents as doc
from imprint.planning.model import (
    Cpu,
    Device,
    Fingerprint,
    Gpu,
    Installed,
    Libc,
    Machine,
    Note,
    Nvidia,
    OtherGpu,
    Plan,
    Platform,
    Python,
    Refusal,
    Rocm,
    Verdict,
    Vulkan,
)
from imprint.planning.writing import SCHEMA, machine_to_json, plan_to_json, verdict_to_json, verdicts_to_json
from imprint.values import fields_of

__all__ = [
    "machine_from_json",
    "machine_to_json",
    "partial_verdicts_from_json",
    "plan_from_json",
    "plan_to_json",
    "verdict_from_json",
    "verdict_to_json",
    "verdicts_from_json",
    "verdicts_to_json",
]

STATUSES = (
    "ok",
    "none",
    "driver-missing",
    "no-device",
    "bad-visible-devices",
    "driver-mismatch",
    "compat-unsupported",
    "uvm-unavailable",
    "timeout",
    "error",
)
"""Every value of `nvidia.status`; null is unknown."""

Fields = Mapping[str, doc.Reader]

_LIBC: Fields = {"name": doc.text, "version": doc.text}
_PLATFORM: Fields = {
    "os": doc.text,
    "arch": doc.text,
    "libc": lambda value, path: Libc(**doc.fields(value, path, _LIBC)),
    "os_version": doc.text,
    "wsl": doc.truth,
    "container": doc.truth,
    "jetson": doc.truth,
}
_PYTHON: Fields = {"version": doc.text, "abi": doc.text}
_CPU: Fields = {
    "name": doc.text,
    "physical_cores": doc.number,
    "memory_mib": doc.number,
    "memory_free_mib": doc.number,
    "flags": doc.list_of(doc.text),
}
_GPU: Fields = {
    "index": doc.number,
    "uuid": doc.text,
    "name": doc.text,
    "compute_capability": doc.text,
    "memory_mib": doc.number,
    "memory_free_mib": doc.number,
    "integrated": doc.truth,
    "mig": doc.truth,
    "pci_bus_id": doc.text,
}
_NVIDIA: Fields = {
    "status": doc.one_of(*STATUSES),
    "driver": doc.text,
    "kernel_driver": doc.text,
    "cuda": doc.text,
    "libcuda": doc.text,
    "error": doc.text,
    "gpus": doc.list_of(lambda value, path: Gpu(**doc.fields(value, path, _GPU))),
}
_OTHER_GPU: Fields = {
    "vendor": doc.text,
    "name": doc.text,
    "kind": doc.one_of("discrete", "integrated", "software"),
    "api": doc.text,
    "memory_mib": doc.number,
}
_VULKAN: Fields = {"status": doc.text, "loader": doc.text, "error": doc.text}
_ROCM: Fields = {"smi": doc.truth, "kfd_access": doc.truth}
_MACHINE: Fields = {
    "schema": doc.schema(SCHEMA),
    "platform": lambda value, path: Platform(**doc.fields(value, path, _PLATFORM)),
    "python": lambda value, path: Python(**doc.fields(value, path, _PYTHON)),
    "cpu": lambda value, path: Cpu(**doc.fields(value, path, _CPU)),
    "nvidia": lambda value, path: Nvidia(**doc.fields(value, path, _NVIDIA)),
    "other_gpus": doc.list_of(lambda value, path: OtherGpu(**doc.fields(value, path, _OTHER_GPU))),
    "vulkan": lambda value, path: Vulkan(**doc.fields(value, path, _VULKAN)),
    "rocm": lambda value, path: Rocm(**doc.fields(value, path, _ROCM)),
    "environment": doc.open_map,
}
_FINGERPRINT: Fields = dict.fromkeys(fields_of(Fingerprint), doc.text)
_VERDICT: Fields = {
    "build": doc.text,
    "result": doc.text,
    "kind": doc.text,
    "time": doc.text,
    "detail": doc.text,
    "fingerprint": lambda value, path: Fingerprint(**doc.fields(value, path, _FINGERPRINT)),
}
_INSTALLED: Fields = {"build": doc.text, "version": doc.text}
_DEVICE: Fields = {"index": doc.number, "uuid": doc.text, "name": doc.text}
_REFUSAL: Fields = {"build": doc.text, "code": doc.text, "reason": doc.text, "hint": doc.text}
_NOTE: Fields = {"code": doc.text, "reason": doc.text}


def _device(value: object, path: str) -> Device:
    read = doc.fields(value, path, _DEVICE)
    return Device(read.get("index"), read.get("uuid"), read.get("name"))


def _installed(value: object, path: str) -> Installed:
    return Installed(**doc.fields(value, path, _INSTALLED, required=("build",)))


_PLAN: Fields = {
    "schema": doc.schema(SCHEMA),
    "build": doc.text,
    "lock": doc.text,
    "version": doc.text,
    "device": _device,
    "code": doc.text,
    "reason": doc.text,
    "hint": doc.text,
    "provisional": doc.truth,
    "refused": doc.list_of(
        lambda value, path: Refusal(**doc.fields(value, path, _REFUSAL, required=("build", "code", "reason")))
    ),
    "notes": doc.list_of(lambda value, path: Note(**doc.fields(value, path, _NOTE, required=tuple(_NOTE)))),
    "download_bytes": doc.number,
    "installed_bytes": doc.number,
    "free_bytes_after_prune": doc.number,
    "installed": _installed,
    "pending": doc.truth,
}


def machine_from_json(obj: object) -> Machine:
    """Read a machine document, bare or inside the `--json` envelope around it. Errors: UsageError naming the place."""
    body, path = _without_envelope(obj)
    read = doc.fields(body, path, _MACHINE)
    read.pop("schema", None)
    return Machine(**read)


def plan_from_json(obj: object) -> Plan:
    """Read a plan document, bare or inside its envelope. Errors: UsageError naming the place."""
    body, path = _without_envelope(obj)
    read = doc.fields(body, path, _PLAN, required=("code", "reason"))
    read.pop("schema", None)
    return Plan(**{"build": None, "lock": None, "version": None, "device": None, **read})


def verdict_from_json(obj: object, path: str = "") -> Verdict:
    """Read one verdict. Errors: UsageError naming the place."""
    return Verdict(**doc.fields(obj, path, _VERDICT, required=("build", "result")))


def verdicts_from_json(obj: object) -> tuple[Verdict, ...]:
    """Read the document of recorded verdicts, or a bare list of them. Errors: UsageError naming the place."""
    return tuple(verdict for verdict, _ in partial_verdicts_from_json(obj))


def partial_verdicts_from_json(obj: object) -> tuple[tuple[Verdict, frozenset[str]], ...]:
    """Read verdicts, each with the fingerprint fields that the document names, be it to say that one is null.

    A what-if names only the fields it is about; `fingerprints.complete_verdict` fills in the others.
    """
    body, path = obj, ""
    if isinstance(obj, dict):
        readers: Fields = {"schema": doc.schema(SCHEMA), "verdicts": lambda value, _path: value}
        body, path = doc.fields(obj, "", readers, required=("verdicts",))["verdicts"], "verdicts"
    verdicts: tuple[Verdict, ...] = doc.list_of(verdict_from_json)(body, path)
    return tuple(zip(verdicts, map(_named_fields, body), strict=True))  # type: ignore[call-overload] # a list by now


def _named_fields(entry: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(entry.get("fingerprint") or ())


def _without_envelope(obj: object) -> tuple[object, str]:
    if isinstance(obj, dict) and "data" in obj and "command" in obj:
        return obj["data"], "data"
    return obj, ""
