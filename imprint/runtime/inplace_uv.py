"""The two calls of uv that change somebody's own environment. Each inherits the environment's lock.

A run that is killed frees the mutex while its installer may go on; the inherited lock makes the next run wait for it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from imprint.errors import ImprintError
from imprint.runtime.metadata import Held
from imprint.runtime.uv import Uv, classify, environment, install_arguments, replace_offline
from imprint.state.files import raise_for_write

FINISH = "run the same command again: it finishes what this one began"
"""What helps after any failure while an environment is being changed."""


def uninstall(uv: Uv, python: Path, going: Sequence[Held], descriptor: int | None) -> None:
    """Uninstall distributions in one call. What uv refuses or leaves is left to the caller, who removes it by file.

    uv refuses all of them for one without a RECORD, and stops midway at one that is there twice over the same files.
    """
    names = sorted({found.name for found in going})
    unreadable = {found.name for found in going if {"no-record", "no-metadata"} & set(found.problems)}
    if removable := [name for name in names if name not in unreadable]:
        try:
            _run(uv, uninstall_arguments(python, removable), python, descriptor)
        except ImprintError as error:
            if error.specific_code not in {"integrity", "installer-failed"}:
                raise


def install(uv: Uv, python: Path, lock: Path, descriptor: int | None) -> None:
    """Install exactly what `lock` pins, from the cache alone; what is there of it is replaced."""
    _run(uv, install_arguments([lock], python, replace_offline(uv.sources), reinstall=True), python, descriptor)


def uninstall_arguments(python: Path, names: Sequence[str]) -> list[str]:
    """Return uv's arguments to uninstall distributions."""
    return ["pip", "uninstall", "--python", os.fspath(python), *names]


def _run(uv: Uv, arguments: Sequence[str], python: Path, descriptor: int | None) -> None:
    argv = [os.fspath(uv.executable), "--no-config", "--no-progress", "--color", "never", *arguments]
    inherited = (descriptor,) if descriptor is not None and sys.platform != "win32" else ()
    try:
        uv.home.cache.mkdir(parents=True, exist_ok=True)
        process = subprocess.Popen(
            argv,
            cwd=uv.home.root,
            env=environment(uv.home, uv.environ, uv.sources),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            pass_fds=inherited,
        )
    except OSError as error:
        raise_for_write(uv.home.cache, error)
    try:
        _, stderr = process.communicate()
    except BaseException:
        process.kill()
        process.communicate()
        raise
    if process.returncode:
        failure = classify(process.returncode, stderr.decode("utf-8", "replace"), where=python.parent.parent)
        first = "free some space there, then " if failure.specific_code == "no-space" else ""
        failure.hint = f"{first}{FINISH}"
        raise failure
