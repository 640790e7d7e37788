"""Says that the environment a command runs in cannot run it, which the launcher finds when an import fails."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from imprint.causes.errors import error_of, outside_error
from imprint_launch.failure import Failure, report


def tell_unusable(error: Exception, env: Path) -> int:
    """Say what is wrong with the tool environment at `env` and what helps, and return the exit code.

    It is the one that the launcher chose, never what this interpreter takes for its own place: a person is told to
    delete it.
    """
    report(_failure(error, env), sys.argv[1:])
    return 1


def _failure(error: Exception, env: Path) -> Failure:
    if (outside := outside_error(error)) is not None:
        return Failure.of(outside)
    if "failed to map segment" in str(error) or is_noexec(env):
        return noexec(env)
    if isinstance(error, PermissionError):
        return Failure(
            "tool-unreadable", f"the tool environment `{env}` cannot be read: {error}",
            "ask its owner for read access, or set IMPRINT_HOME to a folder of your own",
        )  # fmt: skip
    message = f"the tool environment `{env}` is damaged: {error}"
    return Failure("tool-damaged", message, f"delete `{env}`; the next start rebuilds it")


def is_noexec(place: str | os.PathLike[str]) -> bool:
    """Whether the file system of a folder runs no programs."""
    try:
        return bool(os.statvfs(place).f_flag & os.ST_NOEXEC)
    except (AttributeError, OSError):  # Windows has no statvfs
        return False


def noexec(place: str | os.PathLike[str]) -> Failure:
    """Return the failure of a folder on a file system that runs no programs."""
    return Failure.of(error_of("noexec-disk", f"the disk of {place} is mounted `noexec`", "managed"))
