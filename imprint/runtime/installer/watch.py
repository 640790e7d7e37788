"""Runs one call of the installer and watches a download: how far it is, that it goes on, and that it comes to an end.

An index that sends a byte a second, or never stops sending, would otherwise keep the installer at work for ever.
"""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from imprint import touch
from imprint.errors import NetworkError
from imprint.hints import helps
from imprint.paths import Home
from imprint.runtime.installer import space
from imprint.runtime.interrupts import held_back
from imprint.sizes import in_units
from imprint.state.files import raise_for_write

POLL_SECONDS = 0.4

STALL_SECONDS = 180.0
STALL_BYTES = 64 * 1024
"""A download that brings fewer bytes than this in that time has stalled; an installer that only works writes files."""

MOST_OF_UNKNOWN = 8 * 10**9
"""Bytes; no set of wheels of ours comes near it."""


@dataclass(slots=True)
class Watch:
    """What is watched: the folders that grow, the distributions that come, and the bytes they take at most.

    `on_bytes` is told now and then by how much the first folder has grown.
    """

    folders: tuple[Path, ...]
    names: tuple[str, ...] = ()
    needed: int | None = None
    on_bytes: Callable[[int], None] | None = None
    began: list[int] = field(default_factory=list)
    shown: int = 0
    last: int = 0
    moved: float = 0.0

    def begin(self) -> None:
        """Remember how large the folders are."""
        self.began = [space.used_by(folder) for folder in self.folders]
        self.moved = time.monotonic()

    def look(self) -> None:
        """Report growth. Raises NetworkError when there is none for long, or when there is no end of it."""
        grown = [max(0, space.used_by(folder) - began) for folder, began in zip(self.folders, self.began, strict=True)]
        # What is unpacked is moved about in between, so the sum may fall for a moment.
        self.shown = max(self.shown, grown[0])
        if self.on_bytes is not None:
            self.on_bytes(self.shown)
        total, now = sum(grown), time.monotonic()
        most = most_of(self.needed)
        if total > most:
            raise self._stopped(f"more than {in_units(most)} arrived without an end")
        if total >= self.last + STALL_BYTES or total < self.last:
            self.last, self.moved = total, now
        elif now - self.moved > STALL_SECONDS:
            raise self._stopped(f"nothing arrived for {STALL_SECONDS:.0f} s")

    def _stopped(self, why: str) -> NetworkError:
        missing = [name for name in self.names if not _is_cached(self.folders[0], name)] or list(self.names)
        named = ", ".join(f"`{name}`" for name in missing[:4])
        return NetworkError(
            f"packages could not be fetched ({named}): {why}",
            hint=helps("check-the-connection"),
        )


def most_of(needed: int | None) -> int:
    """Return how many bytes a download may bring before it counts as endless."""
    # Twice for files that are copied from the cache, and once more for what is being unpacked.
    return 3 * needed + 200 * 10**6 if needed is not None else MOST_OF_UNKNOWN


def run_installer(
    argv: Sequence[str], environ: Mapping[str, str], home: Home, watch: Watch | None = None
) -> tuple[int, str]:
    """Run the installer and return its exit code and what it wrote to stderr.

    It is ended when this is interrupted or when the watch raises.
    """
    process = None
    try:
        with held_back():
            process = _start(argv, environ, home)
        if watch is not None:
            watch.begin()
        while True:
            try:
                _, stderr = process.communicate(timeout=POLL_SECONDS if watch is not None else None)
            except subprocess.TimeoutExpired:
                if watch is not None:
                    watch.look()
            else:
                return process.returncode, stderr.decode("utf-8", "replace")
    except BaseException:
        # An interrupt, or a listener that failed: no child of ours may go on changing things.
        if process is not None:
            _end(process)
        raise


def _is_cached(cache: Path, name: str) -> bool:
    """Whether the installer's cache holds an unpacked wheel of that name; only used to word an error."""
    return any(cache.glob(f"archive-v*/*/{name.replace('-', '_')}-*.dist-info"))


# The installer stays in our process group, so that whoever kills that takes it along.
def _start(argv: Sequence[str], environ: Mapping[str, str], home: Home) -> subprocess.Popen[bytes]:
    try:
        touch.make_folder(home.cache, within=home.cache)
        return subprocess.Popen(
            list(argv),
            cwd=home.root,
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
    except OSError as error:
        raise_for_write(home.cache, error)


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        process.kill()
    process.wait()
    if process.stderr is not None:
        process.stderr.close()
