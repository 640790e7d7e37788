"""Runs the setup operation for the commands that provision: shows its progress, asks before a large download."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from imprint.errors import UsageError
from imprint.operations.context import Context
from imprint.operations.setup import SetupOptions, setup
from imprint.planning.model import Plan
from imprint_cli.answer import Answer
from imprint_cli.human import size
from imprint_cli.machine import emit_event
from imprint_cli.progress import Progress
from imprint_cli.render import describe_build


def provision(flags: Mapping[str, str], *, as_json: bool, find_links: str | None, **options: Any) -> Answer:  # noqa: ANN401 - the fields of SetupOptions
    """Set up and return the answer; events go to stdout as JSON lines, or to stderr as text."""
    asked = SetupOptions(find_links=Path(find_links) if find_links is not None else None, **options)
    context = Context.of_process(flags)
    if as_json:
        return Answer(setup(context, asked, emit_event), render_setup)
    progress = Progress()
    try:
        return Answer(setup(context, asked, progress), render_setup)
    finally:
        progress.close()


def ask(plan: Plan) -> bool:
    """Ask on the terminal whether a large download may start. Raises UsageError where nobody can be asked."""
    what = f"{describe_build(plan.build, plan.version, None)}, a download of {size(plan.download_bytes)}"
    if not (sys.stdin and sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(f"this would install {what}, and there is no terminal to ask on", hint="add `--yes` to agree")
    sys.stderr.write(f"Install {what}? [Y/n] ")
    sys.stderr.flush()
    answer = sys.stdin.readline()
    # A line without its end is the end of input, which agrees to nothing.
    return answer.endswith("\n") and answer.strip().lower() in {"", "y", "yes"}


def render_setup(data: Mapping[str, Any]) -> str:
    """Render what changed, what was freed, and last the authoritative line."""
    if not data["status"]:
        return ""
    lines = [_change(change) for change in data["changes"]]
    if data["freed_bytes"]:
        lines.append(f"freed: {size(data['freed_bytes'])}")
    lines += [f"in use, freed later: {left['path']} ({size(left['bytes'])})" for left in data["deferred"]]
    return "\n".join([*lines, str(data["status"]["line"])])


def _change(change: Mapping[str, Any]) -> str:
    name, old, new = change["name"], change["from"], change["to"]
    if old is None:
        return f"+ {name} {new}"
    return f"- {name} {old}" if new is None else f"~ {name} {old} -> {new}"
