"""The block for a bug report: everything that was found, without names, paths, identifiers and secrets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from imprint.doctor.facts import Facts
from imprint.doctor.findings import Finding
from imprint.doctor.judging import what_embeddings_run_on

_USER = re.compile(r"((?:/home/|/Users/|\\Users\\))[^/\\\s:\"'`]+")
"""What names a person in the path of somebody's own folder."""

_UUID = re.compile(r"\b(?:GPU-|MIG-)?[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b")

_NEAR = re.compile(r"onnxruntime|nvidia-|numpy$|protobuf$|torch$|tokenizers$")
_TOLD = frozenset({"CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "LD_LIBRARY_PATH", "NVIDIA_VISIBLE_DEVICES"})
"""Packages and variables that decide what loads."""


def redact_text(text: str, hidden: Mapping[str, str]) -> str:
    """Return `text` with each key of `hidden` replaced by its value, and without users' names and UUIDs."""
    for secret in sorted((secret for secret in hidden if secret), key=len, reverse=True):
        text = text.replace(secret, hidden[secret])
    return _UUID.sub("<uuid>", _USER.sub(r"\1<user>", text))


def _word(value: str | bool | None) -> str:
    """Return a fact as people write it; None is what nobody knows."""
    if value is None:
        return "unknown"
    return value if isinstance(value, str) else "yes" if value else "no"


def surroundings(facts: Facts) -> list[tuple[str, str]]:
    """Return what a bug report needs beside the findings, as names and values."""
    lines = [("home", facts.home), ("embeddings run on", what_embeddings_run_on(facts))]
    if facts.venv is not None:
        lines.append(("environment", facts.venv))
    if facts.plan is not None:
        plan = facts.plan
        lines.append(("plan", f"{plan.build} {plan.version or ''} [{plan.code}] {plan.reason}"))
    if facts.runtimes is not None:
        near = {name: version for name, version in facts.runtimes.versions.items() if _NEAR.match(name)}
        lines.append(("packages", ", ".join(f"{name} {version}" for name, version in sorted(near.items())) or "none"))
    if facts.machine is not None:
        platform, nvidia = facts.machine.platform, facts.machine.nvidia
        lines += [
            ("target's python", f"{facts.machine.python.version} {facts.machine.python.abi or ''}".rstrip()),
            ("libc", f"{platform.libc.name} {platform.libc.version}" if platform.libc else "unknown"),
            ("wsl, container", f"{_word(platform.wsl)}, {_word(platform.container)}"),
            ("nvidia", _word(nvidia.status)),
            ("driver, kernel, cuda", ", ".join(map(_word, (nvidia.driver, nvidia.kernel_driver, nvidia.cuda)))),
            ("libcuda", _word(nvidia.libcuda)),
        ]
        lines += [("gpu", f"{gpu.name} ({gpu.compute_capability}, {gpu.memory_mib} MiB)") for gpu in nvidia.gpus or ()]
        lines += [("other gpu", f"{gpu.vendor} {gpu.name} ({gpu.kind})") for gpu in facts.machine.other_gpus or ()]
    lines += [
        (name, "(set)" if "TOKEN" in name or "KEY" in name else value)
        for name, value in sorted(facts.environ.items())
        if name.startswith("IMPRINT_") or name in _TOLD
    ]
    return lines


def compose(
    facts: Iterable[tuple[str, str]], findings: Sequence[Finding], counted: Mapping[str, int], hidden: Mapping[str, str]
) -> str:
    """Return the block: `name: value` lines, then one line per finding with its fix, then the counts."""
    lines = ["--- imprint doctor report"]
    lines += [f"{name}: {value}" for name, value in facts]
    for finding in findings:
        lines.append(f"{finding.status}: {finding.id} [{finding.code}] {finding.seen}")
        if finding.fix and finding.status != "ok":
            lines.append(f"  fix: {finding.fix}")
    lines.append("counts: " + ", ".join(f"{status} {count}" for status, count in counted.items()))
    lines.append("--- end")
    return redact_text("\n".join(lines), hidden)
