"""Takes out of a machine document what identifies the machine or its owner, and keeps what a plan depends on."""

from __future__ import annotations

import re
from collections.abc import Mapping

from imprint.planning.model import Machine
from imprint.values import replace

_PATH = re.compile(r"(?<![\w:…])(?:[A-Za-z]:)?[/\\][^\n:;,'\"()]+")
_UUID = re.compile(r"(?:GPU|MIG)-[0-9a-z/-]{4,}", re.IGNORECASE)


def redact(machine: Machine) -> Machine:
    """Return the machine with UUIDs numbered, folders and host names removed; it still gives the same plan.

    The n-th GPU becomes GPU-00000000-0000-0000-0000-00000000000n (MIG- for a slice), also where the environment names
    it. Of a library's path the folder becomes `…`, except WSL's own folder, which planning tells from others.
    """
    names: dict[str, str] = {}
    gpus = machine.nvidia.gpus
    for number, gpu in enumerate(gpus or ()):
        if gpu.uuid:
            names[gpu.uuid] = f"{'MIG' if gpu.mig else 'GPU'}-00000000-0000-0000-0000-{number:012d}"
    return replace(
        machine,
        nvidia=replace(
            machine.nvidia,
            libcuda=_without_folder(machine.nvidia.libcuda),
            error=_clean(machine.nvidia.error, names),
            gpus=None if gpus is None else tuple(replace(gpu, uuid=names.get(gpu.uuid or "")) for gpu in gpus),
        ),
        vulkan=replace(
            machine.vulkan,
            loader=_without_folder(machine.vulkan.loader),
            error=_clean(machine.vulkan.error, names),
        ),
        environment={name: _clean(value, names) or "" for name, value in machine.environment.items()},
    )


def _without_folder(path: str | None) -> str | None:
    if path is None or path.startswith("/usr/lib/wsl/"):
        return path
    return "…/" + re.split(r"[/\\]", path)[-1]


def _clean(text: str | None, names: Mapping[str, str]) -> str | None:
    """Return a text with its UUIDs numbered (prefixes too, as CUDA_VISIBLE_DEVICES allows) and folders removed."""
    if text is None:
        return None

    def number(found: re.Match[str]) -> str:
        if found[0] in names.values():
            return found[0]
        known = [name for uuid, name in names.items() if uuid.lower().startswith(found[0].lower())]
        return known[0] if known else found[0][:4] + "…"

    text = _UUID.sub(number, text)
    return _PATH.sub(lambda found: _without_folder(found[0]) or "", text)
