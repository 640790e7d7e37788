"""A machine made of dictionaries, behind the same seam as the real one."""

# ruff: noqa: D102 - the contract of every method is Host's
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from imprint.probing.host import OUTPUT_LIMIT, TEXT_LIMIT, ChildResult

LINUX: Mapping[str, Any] = {
    "version": "3.12.4",
    "implementation": "cpython",
    "free_threaded": False,
    "platform": "linux",
    "machine": "x86_64",
    "release": "6.8.0-45-generic",
    "os_version": None,
    "glibc": "2.35",
    "loader": "/lib64/ld-linux-x86-64.so.2",
    "executable": None,
    "base_prefix": None,
}
"""What the interpreter of an ordinary Linux machine says about itself."""

Program = Callable[[Sequence[str], Mapping[str, str]], ChildResult]


@dataclass
class FakeHost:
    """`files` maps paths to text, `links` paths to targets, `programs` the first word of a command to its behaviour.

    Folders exist where a path runs through them. `touched` records every path that was asked for, `started` every
    command.
    """

    environ: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)
    programs: Mapping[str, Program] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=lambda: LINUX)
    openable: frozenset[str] = frozenset()
    executable: str = "/usr/bin/python3"
    main_memory: tuple[int, int] | None = None
    affinity: frozenset[int] | None = None
    touched: list[str] = field(default_factory=list)
    started: list[tuple[str, ...]] = field(default_factory=list)

    def interpreter(self) -> Mapping[str, Any]:
        return self.facts

    def read_text(self, path: str, limit: int = TEXT_LIMIT) -> str | None:
        real = self.resolve(path)
        text = None if real is None else self.files.get(real)
        return None if text is None else text.encode()[:limit].decode("utf-8", "replace")

    def list_dir(self, path: str) -> tuple[str, ...] | None:
        real = self.resolve(path)
        if real is None or real in self.files:
            return None
        below = [name[len(real) + 1 :] for name in (*self.files, *self.links) if name.startswith(real + "/")]
        return tuple(sorted({name.split("/")[0] for name in below}))

    def exists(self, path: str) -> bool:
        return self.resolve(path) is not None

    def is_link(self, path: str) -> bool:
        self.touched.append(path)
        return path in self.links

    def resolve(self, path: str) -> str | None:
        self.touched.append(path)
        return self._resolve(path, 0)

    def _resolve(self, path: str, depth: int) -> str | None:
        for link, target in self.links.items():
            if depth < 8 and (path == link or path.startswith(link + "/")):
                return self._resolve(target + path[len(link) :], depth + 1)
        there = path in self.files or any(name.startswith(path + "/") for name in (*self.files, *self.links))
        return path if there else None

    def can_open(self, path: str) -> bool:
        self.touched.append(path)
        return path in self.openable

    def memory(self) -> tuple[int, int] | None:
        return self.main_memory

    def cpu_affinity(self) -> frozenset[int] | None:
        return self.affinity

    def run(
        self,
        argv: Sequence[str],
        *,
        deadline: float,
        environ: Mapping[str, str] | None = None,
        limit: int = OUTPUT_LIMIT,
    ) -> ChildResult:
        del deadline
        self.started.append(tuple(argv))
        program = self.programs.get(argv[0])
        if program is None:
            return ChildResult(None, not_started=f"no such file: {argv[0]}")
        result = program(argv, self.environ if environ is None else environ)
        if len(result.stdout) <= limit:
            return result
        return ChildResult(result.returncode, result.stdout[:limit], result.stderr, truncated=True)
