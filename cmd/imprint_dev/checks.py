"""Runs every check of the project in one go: linters, types, import contracts, then one pytest run.

`main` is what `./cmd/check` calls. The groups: without an option the fast tests; `--all` adds slow, faults, packaging
and web with a fixed-seed tenth of the long counts; `--full` the same with the complete counts. Other words go to
pytest.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

PACKAGES = {"gcc": "gcc", "strace": "strace", "unshare": "util-linux", "git": "git"}
"""Programs that tests start, and the Debian package each comes in (the C library's headers come with libc6-dev)."""

GROUPS = {"fast": "not (slow or faults or packaging or web or gpu)", "tenth": "not gpu", "full": "not gpu"}
"""The pytest mark expression for each size of the counts; the tests read the size from TEST_COUNTS."""


WORKERS = ("-n", str(max(2, os.cpu_count() or 2)), "--dist", "loadfile")
"""pytest's processes: most tests wait for children, and files keep what their tests share."""


def parse_words(words: Sequence[str]) -> tuple[str, list[str]]:
    """Return the counts (`fast`, `tenth` or `full`) and the words left for pytest."""
    rest = [word for word in words if word not in {"--all", "--full"}]
    counts = "full" if "--full" in words else "tenth" if "--all" in words else "fast"
    return counts, rest


def missing_packages(which: Callable[[str], str | None]) -> list[str]:
    """Return the Debian packages of those programs that `which` does not find."""
    return sorted({package for program, package in PACKAGES.items() if which(program) is None})


def install_packages() -> None:
    """Install what tests start and this machine lacks, where that is possible; else say what will be missing."""
    missing = missing_packages(shutil.which)
    if missing and os.geteuid() == 0 and shutil.which("apt-get"):
        quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        subprocess.run(["apt-get", "-qq", "update"], check=False, env=quiet)
        wanted = [*missing, "libc6-dev"]
        subprocess.run(["apt-get", "-qq", "install", "-y", "--no-install-recommends", *wanted], check=True, env=quiet)
    elif missing:
        print(f"warning: not installed: {', '.join(missing)}; tests that start them will fail", file=sys.stderr)


def step(name: str, *command: str, counts: str) -> bool:
    """Run one check with this interpreter's environment; say how it went and how long it took."""
    started = time.monotonic()
    environ = {
        **os.environ,
        "TEST_COUNTS": counts,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    # Warnings as errors would reach every child through this; the suite sets its own.
    environ.pop("PYTHONWARNINGS", None)
    done = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, env=environ, check=False)
    verdict = "ok" if done.returncode == 0 else f"FAILED ({done.returncode})"
    print(f"check: {name} {verdict} in {time.monotonic() - started:.0f} s", flush=True)
    return done.returncode == 0


def main(words: Sequence[str]) -> int:
    """Run the checks; 0 when all passed. pytest comes last, so that its closing lines are the last but one."""
    counts, rest = parse_words(words)
    install_packages()
    passed = [
        step("ruff", "ruff", "check", "--no-cache", ".", counts=counts),
        step("format", "ruff", "format", "--check", ".", counts=counts),
        step("types", "mypy", counts=counts),
        step("tests", "pytest", *WORKERS, "-m", GROUPS[counts], *rest, counts=counts),
    ]
    return 0 if all(passed) else 1
