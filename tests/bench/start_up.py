"""Measures how long each entry point takes to start, against a bare interpreter in the same run.

By hand, after `imprint setup`: `python tests/bench/start_up.py [--rounds 15]`. Prints medians in milliseconds and, for
each, the ratio to `python -c "import json, tomllib"` of the same interpreter. The rounds interleave, so that load from
elsewhere falls on all alike.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BASELINE = "json + tomllib"


def commands(python: str) -> dict[str, list[str]]:
    """Return what is measured: the plumbing with this interpreter, the commands through the launcher."""
    imprint = str(ROOT / "cmd" / "imprint")
    return {
        BASELINE: [python, "-c", "import json, tomllib"],
        "plumbing plan": [python, "-m", "imprint.gpu_runtime", "plan"],
        "imprint --help": [imprint, "--help"],
        "imprint plan --json": [imprint, "plan", "--json"],
        "imprint config get": [imprint, "config", "get", "model.device"],
        "imprint status": [imprint, "status"],
        "imprint setup (nothing to do)": [imprint, "setup"],
        "imprint doctor": [imprint, "doctor"],
    }


def seconds(argv: list[str]) -> float:
    """Run one command to its end, quietly; return its wall time."""
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    started = time.perf_counter()
    subprocess.run(argv, cwd=ROOT, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    return time.perf_counter() - started


def main() -> None:
    """Measure, and print one line for each command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    measured: dict[str, list[float]] = {name: [] for name in commands(sys.executable)}
    for name, argv in commands(sys.executable).items():
        seconds(argv)  # compiles what is not compiled yet
        measured[name].clear()
    for _ in range(rounds):
        for name, argv in commands(sys.executable).items():
            measured[name].append(seconds(argv))
    base = statistics.median(measured[BASELINE])
    for name, times in measured.items():
        middle = statistics.median(times)
        sys.stdout.write(f"{name:32} {middle * 1000:7.1f} ms   {middle / base:5.2f} x\n")


if __name__ == "__main__":
    main()
