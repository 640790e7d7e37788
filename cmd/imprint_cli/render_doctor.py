"""Renders what doctor found: every state is a word, so that it reads the same without colour."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from imprint_cli.human import table

Data = Mapping[str, Any]

_WORDS = {"ok": "ok", "warning": "warning", "error": "ERROR", "skipped": "skipped"}
_RANK = {"error": 0, "warning": 1}
_OFFERS = frozenset({"gpu-waits", "telemetry-on", "vendor-build-replaced"})
"""States that are right as they are, and that somebody may want to know of all the same."""

_SUM = "runtime:embedding-device"
"""The check that sums up, with the plan's reason."""


def render_findings(data: Data, *, everything: bool = False) -> str:
    """Render what needs attention, the gravest first; of the rest what embeddings run on, and the count.

    With `everything` all of the rest is there too.
    """
    bad = [finding for finding in data["findings"] if finding["status"] in _RANK]
    lines = [
        line
        for finding in sorted(bad, key=_rank)
        for line in _in_full(finding, _WORDS[finding["status"]], embeds=data["embeds"])
    ]
    rest = [finding for finding in data["findings"] if finding["status"] not in _RANK]
    lines += [
        line
        for finding in rest
        if finding["code"] in _OFFERS
        for line in _in_full(finding, "note", embeds=data["embeds"])
    ]
    for finding in rest:
        if finding["code"] not in _OFFERS and (everything or finding["id"] == _SUM):
            lines.append(_line(finding, _WORDS[finding["status"]]))
            if finding["code"] == "ok-cpu" and finding["fix"] and not _gpu_waits(rest):
                lines.append(f"        {finding['fix']}")
    lines += [
        _running(data["runs_on"], embeds=data["embeds"]),
        _counted(data["counts"], hidden=not everything and bool(rest)),
    ]
    return "\n".join(lines)


def _running(runs_on: str | None, *, embeds: bool | None) -> str:
    """Return the line that says what embeddings run on, or what ONNX Runtime does where embedding lacks something."""
    if runs_on is None:
        return "what embeddings run on is not known"
    if not embeds and runs_on != "none":
        return f"embeddings do not run; ONNX Runtime runs on: {runs_on}"
    return f"embeddings run on: {runs_on}"


def _gpu_waits(findings: Sequence[Data]) -> bool:
    return any(finding["code"] == "gpu-waits" for finding in findings)


def rendering(*, everything: bool) -> Callable[[Data], str]:
    """Return the rendering that `--all` chooses."""
    return lambda data: render_findings(data, everything=everything)


def _rank(finding: Data) -> int:
    return _RANK[finding["status"]]


def _line(finding: Data, word: str) -> str:
    return f"{word:<8}{finding['id']}: {finding['seen']}"


def _in_full(finding: Data, word: str, *, embeds: bool | None) -> list[str]:
    lines = [_line(finding, word), f"        means: {finding['means']} [{finding['code']}]"]
    if finding["status"] in _RANK:
        lines.append(f"        {_running(finding['runs_on'], embeds=embeds)}")
    if finding["fix"]:
        lines.append(f"        {'fix: ' if finding['status'] in _RANK else ''}{finding['fix']}")
    return lines


def _counted(counts: Data, *, hidden: bool) -> str:
    errors, warnings = counts["error"], counts["warning"]
    told = (
        f"{errors} error{'' if errors == 1 else 's'}, {warnings} warning{'' if warnings == 1 else 's'}, "
        f"{counts['ok']} ok, {counts['skipped']} skipped"
    )
    return f"{told} (`--all` shows all)" if hidden else told


def render_report(data: Data) -> str:
    """Render the block for a bug report."""
    return str(data["report"])


def render_checks(data: Data) -> str:
    """Render the list of checks."""
    return table(["check", "looks at"], [[check["id"], check["about"]] for check in data["checks"]])


def render_explanation(data: Data) -> str:
    """Render what a code means."""
    told = [remedy["do"] for remedy in data["remedies"]]
    lines = [f"{data['code']}: {data['means']}"]
    lines += [f"what helps: {do}" for do in told] if len(told) < 2 else ["what helps:", *(f"- {do}" for do in told)]
    return "\n".join(lines)
