"""Runs the pinned uv, cut off from the configuration and the variables of whoever calls it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from imprint_dev.layout import LOCKS
from imprint_dev.lockfile import parse_lockfile

_KEPT = re.compile(
    r"PATH|HOME|LANG|TMPDIR|SYSTEMROOT|TEMP|TMP|USERPROFILE|LOCALAPPDATA|UV_CACHE_DIR|.*_PROXY|SSL_.*",
    re.IGNORECASE,
)
"""What uv may see: where to find programs and folders, proxies, certificates, and the cache."""


class UvError(RuntimeError):
    """uv is missing, is another version than the pinned one, or failed; the message carries its last words."""


def pinned_version() -> str:
    """Return the uv version that `locks/uv.txt` pins."""
    return parse_lockfile((LOCKS / "uv.txt").read_text(encoding="utf-8"))[0].version


def find_uv() -> str:
    """Return the path of the pinned uv: beside this interpreter, else on PATH. Errors: UvError."""
    beside = shutil.which("uv", path=str(Path(sys.executable).parent))
    found = beside or shutil.which("uv")
    wanted = pinned_version()
    if found is None:
        raise UvError(f"uv is not here; install uv=={wanted} into this environment")
    answer = subprocess.run([found, "--version"], check=True, capture_output=True, text=True).stdout.split()
    if answer[1] != wanted:
        raise UvError(f"uv is {answer[1]}, but locks are compiled with the pinned {wanted}")
    return found


def run_uv(
    uv: str, arguments: list[str], *, cwd: Path, extra: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run uv with `--no-config` and a scrubbed environment plus `extra`; the caller judges the return code."""
    environment = {name: value for name, value in os.environ.items() if _KEPT.fullmatch(name)}
    environment |= {"UV_PYTHON_DOWNLOADS": "never", "NO_COLOR": "1", **(extra or {})}
    return subprocess.run(
        [uv, "--no-config", *arguments], cwd=cwd, env=environment, check=False, capture_output=True, text=True
    )
