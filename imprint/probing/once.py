"""A host that asks each interpreter once, whoever wants to know and how often: what hangs, hangs once."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from imprint.probing.host import OUTPUT_LIMIT, TEXT_LIMIT, ChildResult, Host
from imprint.probing.interpreter import CHILD


class OnceHost:
    """Another host, on which an interpreter has at most `seconds` to say what it is. See Host for the rest."""

    def __init__(self, host: Host, seconds: float) -> None:
        self._host = host
        self._seconds = seconds
        self._lock = threading.Lock()
        self._turns: dict[tuple[str, ...], threading.Lock] = {}
        self._ended: dict[tuple[str, ...], ChildResult] = {}

    @property
    def environ(self) -> Mapping[str, str]:
        """See Host."""
        return self._host.environ

    @property
    def executable(self) -> str:
        """See Host."""
        return self._host.executable

    def interpreter(self) -> Mapping[str, Any]:
        """See Host."""
        return self._host.interpreter()

    def read_text(self, path: str, limit: int = TEXT_LIMIT) -> str | None:
        """See Host."""
        return self._host.read_text(path, limit)

    def list_dir(self, path: str) -> tuple[str, ...] | None:
        """See Host."""
        return self._host.list_dir(path)

    def exists(self, path: str) -> bool:
        """See Host."""
        return self._host.exists(path)

    def is_link(self, path: str) -> bool:
        """See Host."""
        return self._host.is_link(path)

    def resolve(self, path: str) -> str | None:
        """See Host."""
        return self._host.resolve(path)

    def can_open(self, path: str) -> bool:
        """See Host."""
        return self._host.can_open(path)

    def memory(self) -> tuple[int, int] | None:
        """See Host."""
        return self._host.memory()

    def cpu_affinity(self) -> frozenset[int] | None:
        """See Host."""
        return self._host.cpu_affinity()

    def run(
        self,
        argv: Sequence[str],
        *,
        deadline: float,
        environ: Mapping[str, str] | None = None,
        limit: int = OUTPUT_LIMIT,
    ) -> ChildResult:
        """Run a child, or return how it ended when it was asked for before; who comes meanwhile waits for that one."""
        if argv[-1] != str(CHILD):
            return self._host.run(argv, deadline=deadline, environ=environ, limit=limit)
        key = tuple(argv)
        with self._lock:
            turn = self._turns.setdefault(key, threading.Lock())
        with turn:
            if key not in self._ended:
                seconds = min(deadline, self._seconds)
                self._ended[key] = self._host.run(argv, deadline=seconds, environ=environ, limit=limit)
            return self._ended[key]
