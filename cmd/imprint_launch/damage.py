"""Says that the environment a command runs in cannot run it, which the launcher finds when an import fails."""

from __future__ import annotations

import os
import sys

from imprint.causes.errors import error_of, outside_error
from imprint_launch.failure import Failure, report


def tell_damage(error: Exception) -> int:
    """Say what is wrong with the tool environment and what helps, and return the exit code."""
    report(_failure(error, sys.prefix), sys.argv[1:])
    return 1


def _failure(error: Exception, prefix: str) -> Failure:
    if (outside := outside_error(error)) is not None:
        return Failure.of(outside)
    if "failed to map segment" in str(error) or is_noexec(prefix):
        return noexec(prefix)
    if isinstance(error, PermissionError):
        return Failure(
            "tool-unreadable", 1, f"the tool environment {prefix} cannot be read: {error}",
            "ask its owner for the right to read it, or set IMPRINT_HOME to a folder of your own",
        )  # fmt: skip
    message = f"the tool environment {prefix} is damaged: {error}"
    return Failure("tool-damaged", 1, message, "delete that folder; the next start builds it anew")


def is_noexec(place: str | os.PathLike[str]) -> bool:
    """Whether the file system of a folder runs no programs."""
    try:
        return bool(os.statvfs(place).f_flag & os.ST_NOEXEC)
    except (AttributeError, OSError):  # Windows has no statvfs
        return False


def noexec(place: str | os.PathLike[str]) -> Failure:
    """Return the failure of a folder on a file system that runs no programs."""
    return Failure.of(error_of("noexec-disk", f"the disk of {place} is mounted `noexec`", "managed"))
