"""Asks sources of facts at the same time, each within its own limit, so that none keeps the others from answering."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from imprint.causes.errors import outside_error
from imprint.context import Context
from imprint.diagnosis.facts import Embedded
from imprint.errors import ImprintError
from imprint.probing.host import Host
from imprint.situation.verdict import Prove
from imprint.state.findings import Findings

T = TypeVar("T")

QUICK_SECONDS = 15.0
"""For what only reads files. A network disk that hangs costs this much, and the other checks still answer."""

TRY_SECONDS = 75.0
"""For loading ONNX Runtime, one embedding and a walk over the disk; the first two end their children before."""


@dataclass(slots=True)
class Sources:
    """Facts under way, and what each source raised, by the name of the fact."""

    failures: dict[str, ImprintError] = field(default_factory=dict)

    def ask(self, name: str, source: Callable[[], T] | None, seconds: float = QUICK_SECONDS) -> Callable[[], T | None]:
        """Start a source and return what waits for it, until `seconds` from now; that gives None where it failed.

        One that is late goes on by itself and is not waited for; its failure has the code `timed-out`. `source` None:
        there is nothing to ask.
        """
        given: list[T] = []
        if source is None:
            return lambda: None

        def run() -> None:
            try:
                given.append(source())
            except ImprintError as error:
                self.failures[name] = error
            except Exception as error:
                self.failures[name] = ImprintError(f"{type(error).__name__}: {error}", code="bug")
                self._name_the_cause(name, error)

        thread = threading.Thread(target=run, name=name, daemon=True)
        end = time.monotonic() + seconds
        try:
            thread.start()
        except RuntimeError as error:
            self.failures[name] = ImprintError(str(error), code="bug")
            self._name_the_cause(name, error)
            return lambda: None

        def answer() -> T | None:
            thread.join(max(0.0, end - time.monotonic()))
            if thread.is_alive():
                late = ImprintError(f"it did not finish within {seconds:.0f} seconds", code="timed-out")
                self.failures.setdefault(name, late)
            return given[0] if given and name not in self.failures else None

        return answer

    def _name_the_cause(self, name: str, error: Exception) -> None:
        with contextlib.suppress(OSError):  # the catalogue may be what cannot be opened
            self.failures[name] = outside_error(error) or self.failures[name]


@dataclass(slots=True)
class Look:
    """One run of doctor: what it looks at and how, what each source raised, and what was wrong with state files."""

    context: Context
    host: Host
    prove: Prove
    venv: Path | None = None
    deep: bool = False
    slow: frozenset[str] = frozenset()
    embed: Callable[[], Embedded] | None = None
    sources: Sources = field(default_factory=Sources)
    findings: Findings = field(default_factory=Findings)
