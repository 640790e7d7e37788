"""Measures how long an environment holds no whole build of ONNX Runtime while `setup --venv` changes it.

Call: `python tests/bench/window.py [ROUNDS]`, with uv on PATH. The same switch, twin wheels of 250 more files each,
both ways, is made by Imprint and, as the baseline of the same run, by plain uv (one uninstall, one offline install).
Prints the medians and their ratio.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from imprint.runtime import checkpoint  # noqa: E402 - found through the line above
from support.foreign import BASE, CUDA13, Foreign, make_wheels  # noqa: E402 - as above


def by_imprint(foreign: Foreign, build: str) -> float:
    """Switch and return the seconds from the first file of the old build that goes to the last of the new one."""
    times: dict[str, float] = {}

    def note(point: str) -> None:
        times[point] = time.perf_counter()

    checkpoint.listener = note
    foreign.setup(build)
    checkpoint.listener = None
    return times["inplace-switched"] - times["inplace-libraries"]


def by_uv(foreign: Foreign, build: str) -> float:
    """Do the same with uv alone and return the seconds from before the uninstall to after the install."""
    leaving = ["onnxruntime-gpu", *CUDA13] if build == "cpu" else ["onnxruntime"]
    install = ["pip", "install", "--quiet", "--no-deps", "--python", str(foreign.prefix)]
    began = time.perf_counter()
    foreign.uninstall(*leaving)
    foreign.own_uv(*install, "-r", str(foreign.wheels.lock(build)))
    return time.perf_counter() - began


def main() -> None:
    """Measure and print."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    with tempfile.TemporaryDirectory() as folder:
        wheels = make_wheels(Path(folder) / "wheels", parts=250)
        ours, plain = Foreign(Path(folder) / "ours", wheels), Foreign(Path(folder) / "plain", wheels)
        for foreign in (ours, plain):
            foreign.root.mkdir()
            foreign.create(*BASE)
            foreign.setup("cpu")
        times: dict[str, list[float]] = {"imprint": [], "uv": []}
        for number in range(2 * rounds):
            build = ("cuda13", "cpu")[number % 2]
            times["imprint"].append(by_imprint(ours, build))
            times["uv"].append(by_uv(plain, build))
    imprint, uv = (statistics.median(times[name]) for name in ("imprint", "uv"))
    figures = f"Imprint {imprint * 1000:.1f} ms, plain uv {uv * 1000:.1f} ms, ratio {imprint / uv:.2f}"
    print(f"window, medians of {2 * rounds}: {figures}")  # noqa: T201 - a script's result


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:
        sys.exit(error.stderr.decode())
