"""What a generation is made from: a build, its locks and their digests, and the interpreter."""

from __future__ import annotations

import hashlib
import os
import sys
import sysconfig
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from imprint.errors import ImprintError
from imprint.hints import helps
from imprint.planning.model import Plan
from imprint.runtime.distributions.embedding_needs import BASE_INSTALLED, BASE_LOCK


@dataclass(frozen=True, slots=True)
class Recipe:
    """Everything that decides what a generation contains.

    `digests` maps each lock's file name to the SHA-256 of its bytes; `python` is the interpreter's version, with a
    final `t` for a free-threaded one; `needed` is what a download takes on disk at most (bytes, None unknown).
    """

    build: str
    version: str
    locks: tuple[Path, ...]
    digests: Mapping[str, str]
    python: str
    executable: Path
    needed: int | None = field(default=None, compare=False)


def recipe_for(plan: Plan, lock_path: Callable[[str], Path], *, build_bytes: int | None = None) -> Recipe:
    """Return the recipe for a plan and the interpreter that runs this.

    `build_bytes` is what the plan's own lock takes when it is installed, None where unknown.

    Raises ImprintError (`lock-missing`) when a lock is not there, and when the plan names no build.
    """
    if plan.build is None or plan.lock is None or plan.version is None:
        raise ImprintError(plan.reason, hint=plan.hint, code=plan.code)
    locks = (lock_path(plan.lock), lock_path(BASE_LOCK))
    return Recipe(
        build=plan.build,
        version=plan.version,
        locks=locks,
        digests={lock.name: _digest(lock) for lock in locks},
        python=own_python(),
        executable=own_interpreter(),
        needed=build_bytes + BASE_INSTALLED if build_bytes is not None else None,
    )


def own_python() -> str:
    """Return the version of the interpreter that runs this, with a final `t` when it is free-threaded."""
    return sys.version.split()[0] + ("t" if sysconfig.get_config_var("Py_GIL_DISABLED") else "")


def own_interpreter() -> Path:
    """Return the interpreter under the environment that runs this: a managed target must outlive that environment."""
    candidates = (getattr(sys, "_base_executable", None), sys.executable)
    for candidate in candidates:
        if candidate and os.access(candidate, os.X_OK):
            return Path(candidate)
    raise ImprintError("this Python does not know its own interpreter", code="interpreter-unknown")


def _digest(lock: Path) -> str:
    try:
        return hashlib.sha256(lock.read_bytes()).hexdigest()
    except OSError as error:
        raise ImprintError(
            f"this version of Imprint has no lock `{lock.name}` ({error.strerror or error})",
            hint=helps("reinstall-imprint"),
            code="lock-missing",
        ) from error
