"""What pip and uv get to see of the user's settings, and what about the home forbids building anything in it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from imprint.certificates import certificate_settings
from imprint.paths import require_utf8
from imprint_launch.failure import Failure
from imprint_launch.unusable import is_noexec, noexec

OLDEST_UV = (0, 8, 0)
"""The oldest uv that builds this environment as meant (`--no-config`, `--require-hashes`, `pip install --no-deps`)."""

PASSED = re.compile(
    r"(?i)^(uv_default_index|uv_system_certs|uv_native_tls|uv_http_timeout"
    r"|pip_(proxy|cert|client_cert|trusted_host|timeout|default_timeout|retries))$"
)
"""Settings of the user's network that uv and pip still get; everything else that begins with UV_ or PIP_ is dropped."""


def clean_environment(environ: Mapping[str, str], cache: Path, index: str | None = None) -> dict[str, str]:
    """Return an environment without what would change where uv and pip put things; their own files do not count either.

    `index` is the index named on the command line. It is no argument of theirs: it may carry a password, and arguments
    are for everyone to see.
    """
    kept = {
        name: value
        for name, value in environ.items()
        if (not name.upper().startswith(("UV_", "PIP_")) or PASSED.match(name))
        and name not in {"VIRTUAL_ENV", "PYTHONHOME", "PYTHONPATH"}
    }
    kept |= certificate_settings(environ)
    if "SSL_CERT_FILE" in kept:
        kept.setdefault("PIP_CERT", kept["SSL_CERT_FILE"])
    if index := index or kept.get("UV_DEFAULT_INDEX"):
        kept |= {"UV_DEFAULT_INDEX": index, "PIP_INDEX_URL": index}
    return kept | {
        "UV_CACHE_DIR": str(cache),
        "UV_PYTHON_DOWNLOADS": "never",
        "NO_COLOR": "1",
        "PIP_CONFIG_FILE": os.devnull,  # pip then reads none of its files
    }


def suitable_uv(environ: Mapping[str, str]) -> str | None:
    """Return the uv on PATH when it answers and is new enough."""
    found = shutil.which("uv", path=environ.get("PATH"))
    if found is None:
        return None
    try:
        answer = subprocess.run(
            [found, "--version"], capture_output=True, text=True, timeout=10, env=environ, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    version = parse_uv_version(answer.stdout)
    return found if version is not None and version >= OLDEST_UV else None


def parse_uv_version(text: str) -> tuple[int, ...] | None:
    """Return the version in the line `uv --version` prints, or None."""
    match = re.match(r"uv (\d+)\.(\d+)\.(\d+)", text)
    return tuple(int(part) for part in match.groups()) if match else None


def check_home(home: Path, environ: Mapping[str, str]) -> None:
    """Raise Failure or UsageError where no environment can be built in `home`, before anything is made there."""
    if not home.is_absolute():
        if environ.get("IMPRINT_HOME"):
            raise Failure("usage", f"IMPRINT_HOME is a relative path: {home}", "set IMPRINT_HOME to an absolute path")
        raise Failure(
            "usage", "no home folder is known for this user",
            "set HOME, or set IMPRINT_HOME to a folder for Imprint's files",
        )  # fmt: skip
    require_utf8(home)
    there = next(folder for folder in (home, *home.parents) if os.path.lexists(folder))
    if is_noexec(there):
        raise noexec(home)
