"""The one seam between probing and the outside world: `Host`. `this_machine` has the real one.

Probing asks for environment, files, folders, links and children through here and nowhere else, so that
any machine can be played from recorded facts. Reading never raises: what cannot be read is None.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from imprint.values import Record

TEXT_LIMIT = 256 * 1024
"""Bytes read of a text file unless the caller says more; files of /proc and /sys are far smaller."""

OUTPUT_LIMIT = 256 * 1024
"""Bytes kept of each output stream of a child; what comes after is thrown away."""


class ChildResult(Record):
    """How a child ended. `returncode` is negative for a signal, None when it did not start or could not be reaped.

    `timed_out` is true only when our own deadline ended it; `truncated` when an output stream exceeded its limit;
    `not_started` holds the operating system's reason when there was no child at all.
    """

    returncode: int | None
    stdout: str = ""
    stderr: str = ""
    timed_out: bool = False
    truncated: bool = False
    not_started: str | None = None


class Host(Protocol):
    """What probing may ask of a machine. Paths are strings, as the machine itself writes them."""

    @property
    def environ(self) -> Mapping[str, str]:
        """The environment variables of this process."""

    @property
    def executable(self) -> str:
        """The interpreter that runs this process, for children; empty when unknown."""

    def interpreter(self) -> Mapping[str, Any]:
        """Return what this process's interpreter says about itself; the keys are those of `interpreter_child`."""

    def read_text(self, path: str, limit: int = TEXT_LIMIT) -> str | None:
        """Return the first `limit` bytes of a file as text (undecodable bytes replaced), or None."""

    def list_dir(self, path: str) -> tuple[str, ...] | None:
        """Return the sorted names in a folder, or None."""

    def exists(self, path: str) -> bool:
        """Tell whether the path leads to something, links followed."""

    def is_link(self, path: str) -> bool:
        """Tell whether the path itself is a symbolic link, dangling or not."""

    def resolve(self, path: str) -> str | None:
        """Return the absolute path with all links followed, or None when nothing is there."""

    def can_open(self, path: str) -> bool:
        """Tell whether this process may read and write the path, without opening it."""

    def memory(self) -> tuple[int, int] | None:
        """Return (total, available) main memory in bytes where the system tells without a file or a child."""

    def cpu_affinity(self) -> frozenset[int] | None:
        """Return the logical processors this process may run on, or None where the system has no such thing."""

    def run(
        self,
        argv: Sequence[str],
        *,
        deadline: float,
        environ: Mapping[str, str] | None = None,
        limit: int = OUTPUT_LIMIT,
    ) -> ChildResult:
        """Run a child to its end or for `deadline` seconds, with no input; never raises for what the child does.

        `environ` replaces the whole environment (None: inherited). Each output stream is kept up to `limit` bytes.
        """
