"""Measures a real switch CPU -> cuda13 -> CPU: each step, what is freed, a warm switch against uv's own install.

Run as `python tests/bench/switch.py [HOME]` in the environment that `./cmd/check` built, with network: it downloads
about 1.2 GB and needs 4 GB of disk. The GPU set is provisioned for a described machine, so no GPU is needed. Prints one
JSON document; exits 1 when a bound does not hold.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from imprint import resources  # noqa: E402 - the checkout's own
from imprint.context import Context  # noqa: E402
from imprint.operations.setup import SetupOptions, setup  # noqa: E402
from imprint.paths import Home  # noqa: E402
from imprint.runtime.check.children import child_environment  # noqa: E402
from imprint.runtime.distributions import inventory  # noqa: E402
from imprint.runtime.events import Event  # noqa: E402
from imprint.runtime.installer.uv import find_uv, install_arguments  # noqa: E402
from imprint.runtime.managed.recipe import own_interpreter  # noqa: E402
from imprint.runtime.target import current_target  # noqa: E402
from support.place import machine_like_this  # noqa: E402

_COMMAND = (
    "import sys; sys.path[:0] = sys.argv[1].split('|'); sys.argv[1:2] = []; "
    "from imprint_cli.app import main; sys.exit(main())"
)
ROUNDS = 5
"""Warm switches; the medians count, since anything else on the machine delays some of them."""

TEXT = "the same text again and again"


@dataclass
class Bench:
    """One home, and the runs in it."""

    home: Home
    environ: dict[str, str]
    steps: list[tuple[str, float]] = field(default_factory=list)

    def run(self, device: str, **options: Any) -> dict[str, Any]:  # noqa: ANN401 - fields of SetupOptions
        """Set up once; return the time, the time until each step was done, and what was freed."""
        began = time.monotonic()
        self.steps = []

        def on_event(event: Event) -> None:
            if event.event == "done":
                self.steps.append((event.step, round(time.monotonic() - began, 2)))

        asked = SetupOptions(**options)
        result = setup(Context(self.home, self.environ, {"model.device": device}), asked, on_event)
        seconds = round(time.monotonic() - began, 2)
        freed = result.data["freed_bytes"]
        return {"seconds": seconds, "done_at": self.steps, "freed_bytes": freed, "line": result.data["status"]["line"]}

    def to_the_gpu(self) -> dict[str, Any]:
        """Provision for a machine like this one with a GPU."""
        return self.run("gpu", machine=machine_like_this())

    def nvidia_files(self) -> int:
        """Return how many files of NVIDIA's are anywhere in the home."""
        return sum(1 for path in self.home.root.rglob("*") if "/nvidia/" in str(path) and path.is_file())

    def gpu_bytes(self) -> int:
        """Return the bytes of the current target's distributions that the CPU build does not have."""
        target = current_target(self.home)
        assert target is not None
        seen = inventory.inspect(target.prefix).distributions
        return sum(found.size for found in seen if found.name.startswith(("nvidia-", "onnxruntime-gpu")))

    def uvs_own(self) -> tuple[float, float]:
        """Return the seconds that uv itself takes to make the same environment from the same cache, and of loading it.

        The first load of a new environment compiles its modules.
        """
        uv = find_uv(self.home, self.environ)
        prefix = self.home.root / "own"
        locks = [resources.lock_path("cuda13.txt"), resources.lock_path("base.txt")]
        python = prefix / "bin" / "python"
        environ = {"PATH": os.environ["PATH"], "UV_CACHE_DIR": str(self.home.cache)}
        began = time.monotonic()
        for arguments in (
            ["venv", "--quiet", "--offline", "--python", str(own_interpreter()), str(prefix)],
            install_arguments(locks, python, uv.sources.without_network()),
        ):
            argv = [str(uv.executable), "--no-config", *arguments]
            subprocess.run(argv, check=True, env=environ, capture_output=True)
        made = time.monotonic()
        load = [str(python), "-I", "-c", "import onnxruntime"]
        subprocess.run(load, check=True, env=child_environment(self.environ))
        loaded = time.monotonic()
        shutil.rmtree(prefix)
        return made - began, loaded - made


@contextmanager
def embedding(bench: Bench) -> Iterator[dict[str, int]]:
    """Embed without a pause during the body; yields the counts, complete when the body has ended."""
    argv = [sys.executable, "-P", "-c", _COMMAND, f"{ROOT}|{ROOT / 'cmd'}", "embed", "--input", "-", "--device", "cpu"]
    environ = {**bench.environ, "IMPRINT_HOME": str(bench.home.root)}
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environ)
    into, out = process.stdin, process.stdout
    assert into is not None
    assert out is not None
    counts = {"rows": 0, "different": 0, "exit_code": -1}
    ended = threading.Event()

    def feed() -> None:
        while not ended.is_set():
            into.write(f"{TEXT}\n".encode() * 16)
            into.flush()
            time.sleep(0.05)
        into.close()

    def read() -> None:
        first = None
        for row in out:
            vector = json.loads(row)["embedding"]
            first = first or vector
            counts["rows"] += 1
            counts["different"] += vector != first

    threads = [threading.Thread(target=work) for work in (feed, read)]
    for thread in threads:
        thread.start()
    try:
        yield counts
    finally:
        ended.set()
        for thread in threads:
            thread.join()
        counts["exit_code"] = process.wait()


def measure(root: Path) -> dict[str, Any]:
    """Run everything in a new home below `root` and return the figures."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("UV_", "PIP_", "IMPRINT_"))}
    bench = Bench(Home(root / "home"), environ)
    figures: dict[str, Any] = {"cpu, empty home": bench.run("cpu")}
    saved = root / "saved cache"
    with embedding(bench) as counts:
        time.sleep(2)
        figures["cpu to cuda13, downloaded"] = bench.to_the_gpu()
        figures["bytes that only the GPU set takes"] = bench.gpu_bytes()
        figures["cuda13 to cpu"] = bench.run("cpu")
        figures["files of NVIDIA after the way back"] = bench.nvidia_files()
    figures["embedding throughout"] = counts
    figures["cpu to cuda13, downloaded again"] = bench.to_the_gpu()
    shutil.copytree(bench.home.cache, saved, copy_function=os.link, symlinks=True)
    rounds = []
    for _ in range(ROUNDS):
        bench.run("cpu")
        shutil.rmtree(bench.home.cache)
        shutil.copytree(saved, bench.home.cache, copy_function=os.link, symlinks=True)
        own = bench.uvs_own()
        rounds.append((bench.to_the_gpu()["seconds"], *own))
    switch, own_install, load = (statistics.median(column) for column in zip(*rounds, strict=True))
    figures["cpu to cuda13, warm cache, seconds"] = round(switch, 2)
    figures["uv's own install, seconds"] = round(own_install, 2)
    figures["loading ONNX Runtime once, seconds"] = round(load, 2)
    figures["bound for a warm switch, seconds"] = round(4 * own_install + load, 2)
    figures["nothing to do"] = bench.to_the_gpu()
    return figures


def main() -> int:
    """Measure, print, judge."""
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as root:
        figures = measure(Path(root))
    print(json.dumps(figures, indent=2))  # noqa: T201 - the result
    bounds = {
        "no file of NVIDIA is left": figures["files of NVIDIA after the way back"] == 0,
        "what the set took is free": figures["cuda13 to cpu"]["freed_bytes"]
        >= 0.97 * figures["bytes that only the GPU set takes"],
        "embedding was not disturbed": figures["embedding throughout"]["exit_code"] == 0
        and figures["embedding throughout"]["different"] == 0,
        "a warm switch is quick": figures["cpu to cuda13, warm cache, seconds"]
        <= figures["bound for a warm switch, seconds"],
    }
    for name, holds in bounds.items():
        print(f"{'ok' if holds else 'FAILED'}: {name}")  # noqa: T201 - as above
    return 0 if all(bounds.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
