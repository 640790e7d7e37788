"""Checks of what surrounds the environment: the system's folders, and variables that change what Python loads. Pure."""

from __future__ import annotations

from imprint.diagnosis.facts import Facts, OwnImport
from imprint.diagnosis.findings import ERROR, OK, WARNING, Finding
from imprint.diagnosis.judging import finding, skipped
from imprint.runtime.check.causes import plain
from imprint.runtime.check.outside import outside_cause

_SHOWN = 60
"""Characters of what a start prints that are shown."""


def system(facts: Facts) -> list[Finding]:
    """Judge whether the system shows what is read from it."""
    check = "system:access"
    limit = next((error for error in facts.failures.values() if error.specific_code == "process-limit"), None)
    if limit is not None:
        return [finding(facts, check, "process-limit", ERROR, limit.message, told=limit.hint)]
    if not facts.proc:
        return [finding(facts, check, "no-proc", WARNING, "/proc is not mounted here")]
    return [finding(facts, check, "ok", OK, "Imprint can read the processor, the limits and the devices")]


def own_import(facts: Facts) -> list[Finding]:
    """Judge Python as the user starts it: Imprint's own children are isolated, and the user's programs are not."""
    check = "environment:python"
    found = facts.own_import
    if found is None:
        return skipped(facts, check, "the target's interpreter does not start, or was not checked")
    loads = facts.loaded is not None and facts.loaded.error is None and facts.loaded.has_session
    if found.error is not None and loads:
        outside = outside_cause(found.error, facts.environ)
        if outside is not None:
            return [finding(facts, check, outside.code, WARNING, outside.seen, words=outside.words)]
        seen = f"your own `import onnxruntime` fails, but Imprint's works: {plain(found.error)}{_by(facts, found)}"
        return [_interferes(facts, check, seen, found)]
    if found.printed.strip():
        said = " ".join(found.printed.split())[:_SHOWN]
        seen = f"Python prints `{said}` before any of your programs run{_by(facts, found)}"
        return [_interferes(facts, check, seen, found)]
    other, ours = found.file, facts.loaded.file if facts.loaded is not None else None
    if other is not None and ours is not None and other != ours:
        seen = f"your own programs load another ONNX Runtime, {other}, instead of {ours}{_by(facts, found)}"
        return [finding(facts, check, "python-path-interferes", WARNING, seen, traits=["python-path"])]
    return [finding(facts, check, "ok", OK, "Python starts there as it should, also outside Imprint")]


def _interferes(facts: Facts, check: str, seen: str, found: OwnImport) -> Finding:
    words = {"file": found.files[0] if found.files else None}
    return finding(facts, check, "python-path-interferes", WARNING, seen, traits=_traits(facts, found), words=words)


def _traits(facts: Facts, found: OwnImport) -> list[str]:
    # What prints is a file that every start loads; what hides a package is most often the path.
    path = facts.environ.get("PYTHONPATH") and (found.error is not None or not found.files)
    return ["python-path"] if path else []


def _by(facts: Facts, found: OwnImport) -> str:
    told = [f"`{file}` is loaded at every start" for file in found.files]
    path = facts.environ.get("PYTHONPATH")
    told += [f"PYTHONPATH is `{path}`"] if path else []
    return f" ({'; '.join(told)})" if told else ""
