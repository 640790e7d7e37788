"""The host that this machine is: environment, files, folders and children as they really are."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from imprint.probing.host import OUTPUT_LIMIT, TEXT_LIMIT, ChildResult


class RealHost:
    """This machine."""

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        self._environ = dict(os.environ) if environ is None else dict(environ)

    @property
    def environ(self) -> Mapping[str, str]:
        """See Host."""
        return self._environ

    @property
    def executable(self) -> str:
        """See Host."""
        return sys.executable or ""

    def interpreter(self) -> Mapping[str, Any]:
        """See Host."""
        from imprint.probing.interpreter_child import describe

        return describe()

    def read_text(self, path: str, limit: int = TEXT_LIMIT) -> str | None:
        """See Host."""
        try:
            with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - plain strings; pathlib only adds time
                parts = []
                while limit > 0 and (part := file.read(min(limit, 65536))):
                    parts.append(part)
                    limit -= len(part)
        except (OSError, ValueError):
            return None
        return b"".join(parts).decode("utf-8", "replace")

    def list_dir(self, path: str) -> tuple[str, ...] | None:
        """See Host."""
        try:
            return tuple(sorted(os.listdir(path)))  # noqa: PTH208 - see read_text
        except (OSError, ValueError):
            return None

    def exists(self, path: str) -> bool:
        """See Host."""
        return os.path.exists(path)  # noqa: PTH110 - see read_text

    def is_link(self, path: str) -> bool:
        """See Host."""
        return os.path.islink(path)  # noqa: PTH114 - see read_text

    def resolve(self, path: str) -> str | None:
        """See Host."""
        try:
            return os.path.realpath(path, strict=True)
        except (OSError, ValueError):
            return None

    def can_open(self, path: str) -> bool:
        """See Host."""
        return os.access(path, os.R_OK | os.W_OK)

    def memory(self) -> tuple[int, int] | None:
        """See Host."""
        if sys.platform == "win32":
            return _windows_memory()
        return None

    def cpu_affinity(self) -> frozenset[int] | None:
        """See Host."""
        ask = getattr(os, "sched_getaffinity", None)
        return frozenset(ask(0)) if ask else None

    def run(
        self,
        argv: Sequence[str],
        *,
        deadline: float,
        environ: Mapping[str, str] | None = None,
        limit: int = OUTPUT_LIMIT,
    ) -> ChildResult:
        """See Host."""
        from imprint.probing.children import run_child  # most surveys start no child and need not pay for this

        return run_child(argv, deadline=deadline, environ=self._environ if environ is None else environ, limit=limit)


def _windows_memory() -> tuple[int, int] | None:
    import ctypes

    class _Status(ctypes.Structure):
        # The structure MEMORYSTATUSEX of Windows, as its sysinfoapi reference lists it (2026-11).
        _fields_ = (
            ("length", ctypes.c_uint32),
            ("load", ctypes.c_uint32),
            ("total", ctypes.c_uint64),
            ("available", ctypes.c_uint64),
            ("others", ctypes.c_uint64 * 5),
        )

    status = _Status()
    status.length = ctypes.sizeof(_Status)
    loader: Any = getattr(ctypes, "windll", None)
    if loader is None or not loader.kernel32.GlobalMemoryStatusEx(ctypes.byref(status)):
        return None
    return int(status.total), int(status.available)
