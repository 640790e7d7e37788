"""The block for a bug report: everything that was found, without names, paths, identifiers and secrets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from imprint.doctor.findings import Finding

_UUID = re.compile(r"\b(?:GPU-|MIG-)?[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b")


def redact_text(text: str, hidden: Mapping[str, str]) -> str:
    """Return `text` with each key of `hidden` replaced by its value, the longest first, and UUIDs shortened away."""
    for secret in sorted((secret for secret in hidden if secret), key=len, reverse=True):
        text = text.replace(secret, hidden[secret])
    return _UUID.sub("<uuid>", text)


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
