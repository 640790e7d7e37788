"""Runs the real command line as a process of its own, away from this machine's settings."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]

_LAUNCH = (
    "import sys; sys.path[:0] = sys.argv[1].split('|'); sys.argv[1:2] = []; "
    "from imprint_cli.app import main; sys.exit(main())"
)
_SCRUBBED = ("IMPRINT_", "UV_", "PIP_", "CUDA_", "NVIDIA_", "PYTHON", "XDG_")


@dataclass(frozen=True, slots=True)
class Ran:
    """How one run ended."""

    code: int
    out: str
    err: str

    def document(self) -> dict[str, Any]:
        """Return stdout as the one JSON document it must be."""
        loaded = json.loads(self.out)
        assert isinstance(loaded, dict)
        return loaded

    def lines(self) -> list[dict[str, Any]]:
        """Return stdout as the JSON lines they must be."""
        return [json.loads(line) for line in self.out.splitlines()]


def scrubbed(environ: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without anything that changes how Imprint, uv, pip or Python behave."""
    return {name: value for name, value in environ.items() if not name.startswith(_SCRUBBED)}


def run_cli(
    home: Path,
    arguments: Sequence[str],
    *,
    stdin: bytes = b"",
    environ: Mapping[str, str] | None = None,
    timeout: float = 60,
    within: Sequence[str] = (),
) -> Ran:
    """Run `imprint ARGUMENTS` with that home, started by the command `within`, and return how it ended."""
    done = subprocess.run(
        [*within, sys.executable, "-P", "-c", _LAUNCH, f"{ROOT}|{ROOT / 'cmd'}", *arguments],
        input=stdin,
        capture_output=True,
        env=scrubbed(os.environ) | {"IMPRINT_HOME": str(home), "NO_COLOR": "1"} | dict(environ or {}),
        cwd=home.parent,
        timeout=timeout,
        check=False,
    )
    return Ran(done.returncode, done.stdout.decode("utf-8"), done.stderr.decode("utf-8"))
