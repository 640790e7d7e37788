"""Reads what somebody gave us to plan for: documents of machines and verdicts, and the options beside them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import TypeVar

from imprint.errors import UsageError
from imprint.hints import helps
from imprint.planning.model import Installed, Machine, Python, Verdict
from imprint.planning.wire import machine_from_json, partial_verdicts_from_json
from imprint.situation.inputs import load_builds

T = TypeVar("T")


LONGEST = 16 * 1024 * 1024
"""A document larger than this (bytes) is refused unread."""


_PYTHON = re.compile(r"(\d{1,2})\.(\d{1,3})(\.\d+\S*?)?(t?)")


def read_machine(name: str, stdin: Callable[[], bytes]) -> Machine:
    """Return the machine of a document, bare or in an envelope; `-` reads `stdin`. Raises UsageError with the file."""
    if name == "-":
        return _read("standard input", stdin(), machine_from_json, "machine-document")
    return _read(name, _content(name), machine_from_json, "machine-document")


def read_verdicts(name: str) -> tuple[tuple[Verdict, frozenset[str]], ...]:
    """Return the verdicts of a document, each with the fingerprint fields it names. Raises UsageError with the file."""
    return _read(name, _content(name), partial_verdicts_from_json, "verdicts-document")


def _content(name: str) -> bytes:
    try:
        with open(name, "rb") as file:  # noqa: PTH123 - pathlib only adds time
            return file.read(LONGEST + 1)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"{name} cannot be read: {why}", hint=helps("name-a-file")) from None


def _read(source: str, raw: bytes, parse: Callable[[object], T], hint: str) -> T:
    if len(raw) > LONGEST:
        raise UsageError(f"{source} is too large to be such a document", hint=helps(hint))
    try:
        obj = parse_document(raw.decode("utf-8-sig"), source, hint)
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{source} is not UTF-8 (line {line})", hint=helps(hint)) from None
    try:
        return parse(obj)
    except UsageError as error:
        raise UsageError(f"{source}: {error.message}", hint=error.hint or helps(hint)) from None


def parse_python_option(text: str) -> Python:
    """Return the interpreter that `3.12`, `3.12.4` or `3.13t` stands for. Raises UsageError for anything else."""
    match = _PYTHON.fullmatch(text)
    if match is None:
        raise UsageError(f"`{text}` is not a Python version", hint=helps("python-version"))
    major, minor, rest, free = match.groups()
    return Python(f"{major}.{minor}{rest or ''}", f"cp{major}{minor}{free}")


def parse_installed(text: str) -> Installed:
    """Return the installed build that `cuda12` or `cuda12==1.26.0` stands for. Raises UsageError for an unknown one."""
    name, separator, version = text.partition("==")
    builds = load_builds(digests=False)
    if builds.find(name.strip()) is None:
        known = ", ".join(build.name for build in builds.builds)
        raise UsageError(f"`{name}` is not a build", hint=helps("the-builds", builds=known))
    if separator and not version.strip():
        raise UsageError(f"`{text}` names no version", hint=helps("build-version"))
    return Installed(name.strip(), version.strip() or None)


def parse_document(text: str, source: str, hint: str) -> object:
    """Return the JSON value of a document somebody gave us.

    Raises UsageError that names the source and the line, with the hint of the name `hint`.
    """
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        problem = f"{source} is not JSON: {error.msg} (line {error.lineno}, column {error.colno})"
        raise UsageError(problem, hint=helps(hint)) from None
    except RecursionError:
        raise UsageError(f"{source} is nested too deeply", hint=helps(hint)) from None
