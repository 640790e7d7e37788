"""The block for a bug report: what was found, as far as it names nobody and nothing of anybody's. Pure.

Facts pass by their kind: versions, words of ours, chips, codes; of a variable's value only what such a value can be.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from imprint import envvars
from imprint.diagnosis.facts import Facts
from imprint.diagnosis.findings import Counts, Finding
from imprint.diagnosis.standing import verdict_of
from imprint.probing.redact import words_of_chips
from imprint.redaction import redact_chip, redact_text

_UUID = re.compile(r"\b(?:GPU-|MIG-)?[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b")
_NEAR = re.compile(r"onnxruntime|nvidia-|numpy$|protobuf$|torch$|tokenizers$")
"""Packages that decide what loads."""

_INDICES = r"\s*(?:-1|NoDevFiles|\d{1,2}(?:\s*,\s*\d{1,2})*)?\s*"
_VALUES: Mapping[str, str] = {
    "CUDA_VISIBLE_DEVICES": _INDICES,
    "NVIDIA_VISIBLE_DEVICES": rf"all|none|void|{_INDICES}",
    "CUDA_DEVICE_ORDER": "PCI_BUS_ID|FASTEST_FIRST",
    "LD_LIBRARY_PATH": "",
    "ORT_DISABLE_TELEMETRY": "[01]|true|false",
    envvars.DEVICE: "cpu|gpu|auto",
    envvars.name_of_key("model.device"): "cpu|gpu|auto",
    envvars.GPU_DEVICE: rf"auto|{_INDICES}",
    envvars.name_of_key("model.gpu_device"): rf"auto|{_INDICES}",
    envvars.VRAM_GB: r"\d{1,4}(?:\.\d{1,3})?",
    envvars.ALLOW_SOFTWARE_GPU: "[01]",
    envvars.name_of_key("model.threads"): r"\d{1,4}",
    envvars.name_of_key("model.max_tokens"): r"\d{1,6}",
    envvars.name_of_key("model.batch_tokens"): r"\d{1,7}",
    envvars.name_of_key("runtime.portable_gpu"): "true|false|0|1",
}
"""The variables that are told, and the values that are; any other value is only said to be set."""


def _word(value: str | bool | None) -> str:
    """Return a fact as people write it; None is what nobody knows."""
    if value is None:
        return "unknown"
    return value if isinstance(value, str) else "yes" if value else "no"


def surroundings(facts: Facts) -> list[tuple[str, str]]:
    """Return what a bug report needs beside the findings, as names and values."""
    about = "an environment that was named" if facts.target.venv is not None else "the managed target"
    plan, machine, environ = facts.planned.plan, facts.system.machine, facts.settings.environ
    verdict = verdict_of(facts)
    runs_on = None if verdict is None else verdict.runs_on if verdict.embeds else "none"
    lines = [("about", about), ("embeddings run on", _word(runs_on))]
    if plan is not None:
        lines.append(("plan", f"{plan.build} {plan.version or ''} [{plan.code}] {plan.reason}"))
    if facts.target.runtimes is not None:
        near = sorted(one for one in facts.target.runtimes.versions.items() if _NEAR.match(one[0]))
        lines.append(("packages", ", ".join(f"{name} {version}" for name, version in near) or "none"))
    if machine is not None:
        platform, nvidia = machine.platform, machine.nvidia
        lines += [
            ("target's python", f"{machine.python.version} {machine.python.abi or ''}".rstrip()),
            ("libc", f"{platform.libc.name} {platform.libc.version}" if platform.libc else "unknown"),
            ("wsl, container", f"{_word(platform.wsl)}, {_word(platform.container)}"),
            ("nvidia", _word(nvidia.status)),
            ("driver, kernel, cuda", ", ".join(map(_word, (nvidia.driver, nvidia.kernel_driver, nvidia.cuda)))),
            ("libcuda", _word(nvidia.libcuda)),
        ]
        for gpu in nvidia.gpus or ():
            lines.append(("gpu", f"{redact_chip(gpu.name)} ({gpu.compute_capability}, {gpu.memory_mib} MiB)"))
        for other in machine.other_gpus or ():
            lines.append(("other gpu", f"{other.vendor} {redact_chip(other.name)} ({other.kind})"))
    lines += [(name, _value_of(name, value)) for name, value in sorted(environ.items()) if name in _VALUES]
    others = [name for name in environ if name.startswith("IMPRINT_") and name not in _VALUES]
    if others:
        lines.append(("other variables of Imprint", str(len(others))))
    return lines


def _value_of(name: str, value: str) -> str:
    if re.fullmatch(_VALUES[name], value):
        return f'"{value}"'
    if name == "LD_LIBRARY_PATH":
        return f"{len([folder for folder in value.split(':') if folder])} folders"
    return "<uuid>" if _UUID.fullmatch(value.strip()) else "(set)"


def chips_of(facts: Facts) -> frozenset[str]:
    """Return the words of the names of the GPUs here that may pass."""
    return frozenset() if facts.system.machine is None else words_of_chips(facts.system.machine)


def compose(
    facts: Iterable[tuple[str, str]],
    findings: Sequence[Finding],
    counted: Counts,
    hidden: Mapping[str, str],
    chips: frozenset[str] = frozenset(),
) -> str:
    """Return the block: `name: value` lines, then one line per finding with its fix, then the counts.

    `hidden` maps what has a name of its own here, such as the home, to that name; `chips` are words of chips' names.
    """

    def told(text: str) -> str:
        for secret in sorted((secret for secret in hidden if secret), key=len, reverse=True):
            text = text.replace(secret, hidden[secret])
        return redact_text(_UUID.sub("<uuid>", text), chips).replace("\n", " ")

    lines = ["--- imprint doctor report"]
    lines += [f"{name}: {told(value)}" for name, value in facts]
    for finding in findings:
        lines.append(f"{finding.status}: {finding.id} [{finding.code}] {told(finding.seen)}")
        if finding.fix and finding.status != "ok":
            lines.append(f"  fix: {told(finding.fix)}")
    lines.append("counts: " + ", ".join(f"{status} {count}" for status, count in counted.to_json().items()))
    lines.append("--- end")
    return "\n".join(lines)
