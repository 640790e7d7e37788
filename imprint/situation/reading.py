"""How a command that writes reads: what it finds damaged is set aside, under the mutex, before it goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from imprint.context import Context
from imprint.errors import ImprintError
from imprint.results import Notice
from imprint.state import mutex
from imprint.state.findings import Findings

T = TypeVar("T")


def read_as_writer(
    context: Context, read: Callable[[Findings], T], command: str, *, wait_seconds: float
) -> tuple[T, Findings]:
    """Return what `read` returns and what it met; where something is damaged, read again and set it aside.

    When the mutex is busy, or the home cannot be written, the damage is only told. Raises what `read` raises.
    """
    findings = Findings()
    answer = read(findings)
    if not findings:
        return answer, findings
    writing = Findings(writing_in=context.home)
    try:
        with mutex.hold(context.home, wait_seconds, command=command):
            return read(writing), writing
    except ImprintError:
        return answer, findings


def notices_of(findings: Findings) -> list[Notice]:
    """Return the notices on state files that could not be used."""
    return [Notice(found.code, found.message, found.hint) for found in findings]
