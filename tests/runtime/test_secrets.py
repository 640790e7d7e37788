"""What is in addresses that are in use reaches no error, whoever words it, and no process list."""

from __future__ import annotations

from pathlib import Path

import pytest

from imprint.paths import Home
from imprint.runtime.installer.sources import Sources
from imprint.runtime.installer.uv import MIRROR, environment, install_arguments, venv_arguments
from imprint.runtime.installer.uv_failures import classify

SECRET = "s3/cr@et"  # noqa: S105 - for the test
INDEX = f"https://bob:{SECRET}@host.example/t0ken99/simple"
PROXY = "http://carol:pr0xypass@proxy.example:3128"
TEXTS = (
    f"error: Failed to fetch: `{INDEX}/numpy/`\n  Caused by: dns error\n",
    f"error: Request failed after 3 retries\n  Caused by: error sending request for url ({INDEX}/numpy/)\n",
    f"error: proxy {PROXY} refused the connection\n",
    "error: invalid URL `bob:s3` with path `cr@et@host.example/t0ken99/simple`\n",
    f"error: a bad thing happened to {INDEX}\n",
    f"  \u00d7 Failed to download `numpy==2.4.6`\n  ├─▶ Hash-checking of {INDEX}/x.whl: corrupt\n",
)


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("returncode", [1, 2])
def test_no_error_of_the_installer_passes_them_on(text: str, returncode: int) -> None:
    environ = {MIRROR: INDEX, "HTTPS_PROXY": PROXY}
    told = classify(returncode, text, where=Path("/x"), environ=environ)
    whole = f"{told.message} {told.hint}"
    assert not [part for part in ("s3", "cr@et", "bob", "carol", "pr0xypass", "t0ken99") if part in whole], whole


def test_they_reach_the_installer_by_its_environment_alone() -> None:
    sources = Sources(index_url=INDEX)
    environ = environment(Home(Path("/h")), {"HTTPS_PROXY": PROXY}, sources)
    assert environ[MIRROR] == INDEX
    python = Path("/v/bin/python")
    commands = [
        install_arguments([Path("cpu.txt")], python, sources),
        venv_arguments(Path("/v"), python),
    ]
    assert not [word for command in commands for word in command if "://" in word or "bob" in word]
