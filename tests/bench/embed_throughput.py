"""Measures `imprint embed` against a plain ONNX Runtime loop: throughput, peak memory, agreement, search quality.

By hand, after `./cmd/imprint setup`, with any Python from 3.11: `python tests/bench/embed_throughput.py [--texts N]
[--rounds N]`. Both embed the docstrings of the standard library with the same weights, in turn, in one run; the ratios
are what counts. Memory is the sum of the peaks of every process of a run (Linux only).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "cmd"), str(ROOT / "tests")]

from bench.stdlib_docstrings import docstrings  # noqa: E402 - a script finds its own checkout
from imprint.context import Context  # noqa: E402
from imprint.embedding.catalogue import load_catalogue  # noqa: E402
from imprint.embedding.models import model_files  # noqa: E402
from imprint.resources import lock_path  # noqa: E402
from imprint.runtime.check.children import child_environment  # noqa: E402
from imprint.runtime.installer.uv import find_uv  # noqa: E402
from imprint.runtime.target import Target, current_target  # noqa: E402

QUERIES = ROOT / "tests" / "embedding" / "queries.json"


@dataclass
class Run:
    """One measured run: seconds of wall and CPU time, and the summed peak memory of its processes in bytes."""

    wall: float
    cpu: float
    peak: int
    stdout: str


def measure(argv: list[str], environ: dict[str, str]) -> Run:
    """Run a command to its end. Raises CalledProcessError when it fails."""
    before = os.times()
    started = time.perf_counter()
    with subprocess.Popen(argv, env=environ, stdout=subprocess.PIPE, text=True) as process:
        peaks: dict[int, int] = {}
        sampler = threading.Thread(target=_sample, args=(process, peaks), daemon=True)
        sampler.start()
        stdout, _ = process.communicate()
    wall = time.perf_counter() - started
    sampler.join()
    after = os.times()
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, argv)
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return Run(wall, cpu, sum(peaks.values()), stdout)


def _sample(process: subprocess.Popen[str], peaks: dict[int, int]) -> None:
    while process.poll() is None:
        tree = [process.pid]
        for pid in tree:
            try:
                for task in Path(f"/proc/{pid}/task").iterdir():
                    tree += map(int, (task / "children").read_text().split())
                status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
            except OSError:
                continue
            if "VmHWM:" in status:
                peaks[pid] = 1024 * int(status.partition("VmHWM:")[2].split()[0])
        time.sleep(0.02)


def python_target(context: Context) -> Target:
    """Return the current target. Exits where there is none."""
    target = current_target(context.home)
    if target is None:
        raise SystemExit("no runtime is set up here: run `imprint setup`")
    return target


def published_model(context: Context, target: Target, folder: Path) -> Path:
    """Return the default model as published, taken from its locked wheels."""
    catalogue = load_catalogue()
    model = catalogue.model(catalogue.default)
    find_uv(context.home, context.environ).install([lock_path(model.lock)], python=target.python, folder=folder)
    return folder / (model.download.source or "")


def write_texts(path: Path, limit: int | None) -> int:
    """Write the corpus (all of it, or `limit` texts spread evenly over it) as jsonl; returns its size."""
    texts = list(docstrings())
    count = min(limit or len(texts), len(texts))
    picked = [texts[index * len(texts) // count] for index in range(count)]
    path.write_text("".join(json.dumps({"text": text, "module": module}) + "\n" for module, text in picked))
    return len(picked)


def imprint_embed(source: Path, output: Path, *options: str) -> list[str]:
    """Return the command line that embeds a jsonl file to npy, as a user of this checkout would."""
    command = [str(ROOT / "cmd" / "imprint"), "embed", "--input", str(source), "--input-format", "jsonl"]
    return [*command, "--format", "npy", "--output", str(output), "--json", *options]


def judge(target: Target, folder: Path, files: dict[str, Any]) -> dict[str, Any]:
    """Return what judge.py says of these files."""
    listed = folder / "files.json"
    listed.write_text(json.dumps(files))
    script = str(ROOT / "tests" / "bench" / "judge.py")
    ended = subprocess.run([target.python, script, listed], check=True, capture_output=True, text=True)
    answer: dict[str, Any] = json.loads(ended.stdout)
    return answer


def embed_queries(context: Context, folder: Path) -> Path:
    """Embed the committed queries; returns the npy file."""
    source, output = folder / "queries.jsonl", folder / "queries.npy"
    queries = json.loads(QUERIES.read_text(encoding="utf-8"))["queries"]
    source.write_text("".join(json.dumps(query["query"]) + "\n" for query in queries))
    command = imprint_embed(source, output, "--query")
    subprocess.run(command, check=True, env=dict(context.environ), stdout=subprocess.DEVNULL)
    return output


def say(text: str) -> None:
    """Write one line at once: a run takes minutes."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> None:
    """Run both in turn, as often as asked, and print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--texts", type=int, help="how many texts, spread evenly (default: all)")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--batch", type=int, default=32, help="the plain loop's batch")
    asked = parser.parse_args()
    context = Context.of_process()
    target = python_target(context)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        texts, rows, plain = folder / "texts.jsonl", folder / "rows.npy", folder / "plain.npy"
        count = write_texts(texts, asked.texts)
        tokenizer = model_files(context.home, load_catalogue().default).tokenizer
        script = str(ROOT / "tests" / "bench" / "plain_loop.py")
        published = published_model(context, target, folder / "wheels")
        loop = [str(target.python), script, str(published), str(tokenizer), str(texts), str(plain), str(asked.batch)]
        for _ in range(asked.rounds):
            ours = measure(imprint_embed(texts, rows), dict(context.environ))
            theirs = measure(loop, child_environment(context.environ))
            for label, run in (("imprint embed", ours), (f"plain loop, {asked.batch} in order", theirs)):
                say(
                    f"{label}: {count / run.wall:.1f} texts/s (wall {run.wall:.1f} s, CPU {run.cpu:.1f} s),"
                    f" peak {run.peak / 2**20:.0f} MiB"
                )
            say(
                f"ratio: {theirs.wall / ours.wall:.2f} x throughput, {theirs.cpu / ours.cpu:.2f} x less CPU time,"
                f" {ours.peak / theirs.peak:.3f} of its peak memory"
            )
        files = {"rows": str(rows), "plain": str(plain), "texts": str(texts), "expected": str(QUERIES)}
        say(json.dumps(judge(target, folder, {**files, "queries": str(embed_queries(context, folder))}), indent=1))


if __name__ == "__main__":
    main()
