"""Renders what doctor found: every state is a word, so that it reads the same without colour."""

from collections.abc import Mapping
from typing import Any

from imprint_cli.human import table

Data = Mapping[str, Any]

_WORDS = {"ok": "ok", "warning": "warning", "error": "ERROR", "skipped": "skipped"}


def render_findings(data: Data) -> str:
    """Render each finding on a line with its id, details below what is not ok, and the counts last."""
    lines: list[str] = []
    for finding in data["findings"]:
        lines.append(f"{_WORDS[finding['status']]:<8}{finding['id']}: {finding['seen']}")
        if finding["status"] in {"warning", "error"}:
            lines.append(f"        means: {finding['means']} [{finding['code']}]")
            lines.append(f"        embeddings run on: {finding['runs_on']}")
            if finding["fix"]:
                lines.append(f"        fix: {finding['fix']}")
        elif finding["status"] == "ok" and finding["fix"]:
            # Nothing is wrong, and there is a choice that one may want to know of.
            lines.append(f"        {finding['fix']} [{finding['code']}]")
    return "\n".join([*lines, f"embeddings run on: {data['runs_on']}", _counted(data["counts"])])


def _counted(counts: Data) -> str:
    errors, warnings = counts["error"], counts["warning"]
    return (
        f"{counts['ok']} ok, {warnings} warning{'' if warnings == 1 else 's'}, "
        f"{errors} error{'' if errors == 1 else 's'}, {counts['skipped']} skipped"
    )


def render_report(data: Data) -> str:
    """Render the block for a bug report."""
    return str(data["report"])


def render_checks(data: Data) -> str:
    """Render the list of checks."""
    return table(["check", "looks at"], [[check["id"], check["about"]] for check in data["checks"]])


def render_explanation(data: Data) -> str:
    """Render what a code means."""
    lines = [f"{data['code']}: {data['means']}"]
    if data["fix"]:
        lines.append(f"fix: {data['fix']}")
    return "\n".join(lines)
