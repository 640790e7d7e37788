"""Runs the setup operation for the commands that provision: shows its progress, asks before a large download."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from imprint.context import Context
from imprint.errors import UsageError
from imprint.hints import helps
from imprint.operations.setup import SetupOptions, setup
from imprint.planning.model import Machine, Plan
from imprint.sizes import in_units as size
from imprint.values import ABSENT
from imprint_cli import human
from imprint_cli.answer import Answer
from imprint_cli.machine import emit_event
from imprint_cli.progress import Progress
from imprint_cli.render import describe_build, render_download

if TYPE_CHECKING:
    from imprint.operations.bundle import Bundle
    from imprint.operations.prune import PruneResult
    from imprint.operations.rollback import RollbackResult
    from imprint.operations.setup import Changed, DeferredFolder, EnvironmentChanges, SetupResult


def provision(
    flags: Mapping[str, str],
    *,
    as_json: bool,
    find_links: str | None,
    document: str | None = None,
    **options: Any,  # noqa: ANN401 - the fields of SetupOptions
) -> Answer:
    """Set up and return the answer; events go to stdout as JSON lines, or to stderr as text.

    `document` is the file of another machine's document, `-` for standard input.
    """
    if document is not None and options.get("venv") is not None:
        raise UsageError("`--for` and `--venv` were both given", hint=helps("give-one"))
    machine = _read(document) if document is not None else None
    links = Path(find_links) if find_links is not None else None
    asked = SetupOptions(find_links=links, machine=machine, document=document, **options)
    context = Context.of_process(flags)
    if as_json:
        return Answer(setup(context, asked, emit_event), render_setup)
    progress = Progress()
    try:
        result = setup(context, asked, progress)
        return Answer(result, render_setup, hint=result.payload.status.hint or None)
    finally:
        progress.close()


def _read(document: str) -> Machine:
    from imprint.operations.machine import LONGEST, read_machine  # only for another machine

    return read_machine(document, lambda: sys.stdin.buffer.read(LONGEST + 1))


def ask(plan: Plan) -> bool:
    """Ask on the terminal whether a large download may start. Raises UsageError where nobody can be asked."""
    what = f"{describe_build(plan.build, plan.version)}, a download of {size(plan.download_bytes)}"
    if plan.installed_bytes is not None:
        what += f" ({size(plan.installed_bytes)} on disk)"
    if not (sys.stdin and sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(f"this would install {what}, but there is no terminal to ask on", hint=helps("add-yes"))
    human.ask(f"Install {what}? [Y/n]")
    answer = sys.stdin.readline()
    # A line without its end is the end of input, which agrees to nothing.
    return answer.endswith("\n") and answer.strip().lower() in {"", "y", "yes"}


def render_setup(done: SetupResult) -> str:
    """Render what changed, what was freed, and last the authoritative line."""
    lines = [
        *(_environment(done.environment, done=done.download is ABSENT) if done.environment else ()),
        *(_change(change) for change in done.changes),
    ]
    if done.download:
        lines.append(render_download(done.download))
    if done.freed_bytes:
        lines.append(f"freed: {size(done.freed_bytes)}")
    return "\n".join([*lines, *_deferred(done.deferred), done.status.line])


def render_rollback(done: RollbackResult) -> str:
    """Render what changed, and the authoritative line."""
    return "\n".join([*(_change(change) for change in done.changes), done.status.line])


def _environment(found: EnvironmentChanges, *, done: bool) -> list[str]:
    """Return what a person has to know about their own environment: sizes, who requires ONNX Runtime, what stays.

    `done` says whether it was changed, or would be.
    """
    lines = [f"environment: {found.environment}"]
    if found.changes:
        lines.append(f"{'removed' if done else 'to be removed'}: {size(found.removed_bytes)}")
    for one in found.requirers:
        fits = "as it asks" if one.satisfied and one.same_name else "under another name or version"
        gets = "it has" if done else "it will get"
        lines.append(f"{one.name} {one.version} requires {one.requires}: {gets} {one.gets}, {fits}")
    lines += [f"{one.name} {one.version} stays: {one.why}" for one in found.stays]
    if found.leftovers:
        named = ", ".join(found.leftovers[:3]) + (" …" if len(found.leftovers) > 3 else "")
        what = "removed files that no package owns" if done else "files that no package owns, to be removed"
        lines.append(f"{what}: {len(found.leftovers)} ({named})")
    return lines


def render_bundle(made: Bundle) -> str:
    """Render what is in the bundle, and the command to give there."""
    return (
        f"{made.folder}: {made.files} wheels ({size(made.bytes)}) for {made.platform}, "
        f"Python {made.python}: {', '.join(made.builds)} and the model {made.model}\n"
        f"on that machine, with this folder's path there as DIR: {made.next}"
    )


def render_prune(done: PruneResult) -> str:
    """Render what went, how much became free, and what waits."""
    lines = [_change(change) for change in done.changes]
    return "\n".join([*lines, *_deferred(done.deferred), f"freed: {size(done.freed_bytes)}"])


def _deferred(found: Iterable[DeferredFolder]) -> list[str]:
    return [f"in use by process {one.pid}, freed later: {one.path} ({size(one.bytes)})" for one in found]


def _change(change: Changed) -> str:
    if change.from_ is None:
        return f"+ {change.name} {change.to}"
    if change.from_ == change.to:
        return f"~ {change.name} {change.to} (reinstalled)"
    if change.to is None:
        return f"- {change.name} {change.from_}"
    return f"~ {change.name} {change.from_} -> {change.to}"
