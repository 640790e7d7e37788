"""The two calls of uv that change somebody's own environment. Each inherits the environment's lock.

A run that is killed frees the mutex while its installer may go on; the inherited lock makes the next run wait for it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from imprint.errors import NoSpaceError
from imprint.runtime.metadata import Held
from imprint.runtime.uv import Uv, classify, environment, install_arguments, replace_offline
from imprint.state.files import raise_for_write


def uninstall(uv: Uv, python: Path, going: Sequence[Held], descriptor: int | None) -> None:
    """Uninstall distributions in one call; those without a RECORD are left to the caller, since uv refuses them all."""
    names = sorted({found.name for found in going})
    unreadable = {found.name for found in going if {"no-record", "no-metadata"} & set(found.problems)}
    if removable := [name for name in names if name not in unreadable]:
        _run(uv, uninstall_arguments(python, removable), python, descriptor)


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
        if isinstance(failure, NoSpaceError):
            failure.hint = "free some space there, then run the same command again: it finishes what this one began"
        raise failure
