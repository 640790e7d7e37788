"""Renders what doctor found: every state is a word, so that it reads the same without colour."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from imprint_cli.human import table

if TYPE_CHECKING:
    from imprint.operations.doctor import Checks, Counts, Explanation, Finding, Report

_WORDS = {"ok": "ok", "warning": "warning", "error": "ERROR", "skipped": "skipped"}
_RANK = {"error": 0, "warning": 1}
_OFFERS = frozenset({"gpu-waits", "telemetry-on", "vendor-build-replaced"})
"""States that are right as they are, and that somebody may want to know of all the same."""

_SUM = "runtime:embedding-device"
"""The check that sums up, with the plan's reason."""


def render_findings(found: Report, *, everything: bool = False) -> str:
    """Render what needs attention, the gravest first; of the rest what embeddings run on, and the count.

    With `everything` all of the rest is there too.
    """
    bad = [finding for finding in found.findings if finding.status in _RANK]
    lines = [
        line
        for finding in sorted(bad, key=_rank)
        for line in _in_full(finding, _WORDS[finding.status], embeds=found.embeds)
    ]
    rest = [finding for finding in found.findings if finding.status not in _RANK]
    lines += [
        line for finding in rest if finding.code in _OFFERS for line in _in_full(finding, "note", embeds=found.embeds)
    ]
    for finding in rest:
        if finding.code not in _OFFERS and (everything or finding.id == _SUM):
            lines.append(_line(finding, _WORDS[finding.status]))
            if finding.code == "ok-cpu" and finding.fix and not _gpu_waits(rest):
                lines.append(f"        {finding.fix}")
    lines += [
        _running(found.runs_on, embeds=found.embeds),
        _counted(found.counts, hidden=not everything and bool(rest)),
    ]
    return "\n".join(lines)


def _running(runs_on: str | None, *, embeds: bool | None) -> str:
    """Return the line that says what embeddings run on, or what ONNX Runtime does where embedding lacks something."""
    if runs_on is None:
        return "what embeddings run on is not known"
    if not embeds and runs_on != "none":
        return f"embeddings do not run; ONNX Runtime runs on: {runs_on}"
    return f"embeddings run on: {runs_on}"


def _gpu_waits(findings: Sequence[Finding]) -> bool:
    return any(finding.code == "gpu-waits" for finding in findings)


def rendering(*, everything: bool) -> Callable[[Report], str]:
    """Return the rendering that `--all` chooses."""
    return lambda found: render_findings(found, everything=everything)


def _rank(finding: Finding) -> int:
    return _RANK[finding.status]


def _line(finding: Finding, word: str) -> str:
    return f"{word:<8}{finding.id}: {finding.seen}"


def _in_full(finding: Finding, word: str, *, embeds: bool | None) -> list[str]:
    lines = [_line(finding, word), f"        means: {finding.means} [{finding.code}]"]
    if finding.status in _RANK:
        lines.append(f"        {_running(finding.runs_on, embeds=embeds)}")
    if finding.fix:
        lines.append(f"        {'fix: ' if finding.status in _RANK else ''}{finding.fix}")
    return lines


def _counted(counts: Counts, *, hidden: bool) -> str:
    errors, warnings = counts.error, counts.warning
    told = (
        f"{errors} error{'' if errors == 1 else 's'}, {warnings} warning{'' if warnings == 1 else 's'}, "
        f"{counts.ok} ok, {counts.skipped} skipped"
    )
    return f"{told} (`--all` shows all)" if hidden else told


def render_report(found: Report) -> str:
    """Render the block for a bug report."""
    return str(found.report)


def render_checks(found: Checks) -> str:
    """Render the list of checks."""
    return table(["check", "looks at"], [[check.id, check.about] for check in found.checks])


def render_explanation(found: Explanation) -> str:
    """Render what a code means."""
    told = [remedy.do for remedy in found.remedies]
    lines = [f"{found.code}: {found.means}"]
    lines += [f"what helps: {do}" for do in told] if len(told) < 2 else ["what helps:", *(f"- {do}" for do in told)]
    return "\n".join(lines)
