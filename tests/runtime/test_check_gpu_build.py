"""The real GPU build with its whole lock, on a machine without a GPU: 1.2 GB are fetched once, and removed at the end.

A driver compiled from C answers what a script says, so that CUDA's own runtime library and ONNX Runtime give their real
messages for states that need no working GPU.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from contracts.runner import run_cli, scrubbed
from imprint.paths import Home
from imprint.planning.model import Device
from imprint.resources import lock_path
from imprint.runtime.check.libraries import supplier_of
from imprint.runtime.check.result import GpuMemory
from imprint.runtime.check.run import CheckResult, run_check
from imprint.runtime.distributions.inventory import inspect
from imprint.runtime.installer.sources import Sources
from imprint.runtime.installer.uv import find_uv
from support.fake_cuda import FakeDriver, compile_driver, device_line


def _has_libcuda() -> bool:
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(sys.platform != "linux", reason="the scripted driver is an ELF library"),
    pytest.mark.skipif(_has_libcuda(), reason="this machine has an NVIDIA driver"),
]
L4 = Device(0, "GPU-00112233-4455-6677-8899-aabbccddeeff", "NVIDIA L4")
PROVIDER = "libonnxruntime_providers_cuda.so"
READY = ("version 13000", "nvml_driver 580.95.05", device_line("NVIDIA L4", "8.9", memory=24 << 30, free=23 << 30))


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Make an environment with what `cuda13.txt` and `base.txt` pin."""
    root = tmp_path_factory.mktemp("gpu-build")
    try:
        uv = find_uv(Home(root), dict(os.environ), Sources())
        environ = {**scrubbed(os.environ), "UV_CACHE_DIR": str(root / "cache"), "UV_PYTHON_DOWNLOADS": "never"}
        command = [str(uv.executable), "--no-config"]
        subprocess.run([*command, "venv", "-q", "--python", sys.executable, root / "env"], check=True, env=environ)
        locks = [option for name in ("cuda13.txt", "base.txt") for option in ("-r", str(lock_path(name)))]
        install = [*command, "pip", "install", "-q", "--require-hashes", "--no-deps", "--python", str(root / "env")]
        subprocess.run([*install, *locks], check=True, env=environ)
        yield root / "env"
    finally:
        shutil.rmtree(root, ignore_errors=True)


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> FakeDriver:
    folder = tmp_path_factory.mktemp("driver") / "lib"
    return compile_driver(folder, defines=("_GNU_SOURCE", "FOR_RUNTIME"))


def check(build: Path, environ: Mapping[str, str] | None = None, deadline: float = 60) -> CheckResult:
    result = run_check(build / "bin" / "python", L4, environ or scrubbed(os.environ), deadline=deadline)
    text = json.dumps(result.report.to_json())
    assert not {word for word in ("onnxruntime_src", "hostname", "Traceback", "\\u001b") if word in text}
    assert len(text) < 8000
    return result


def test_without_a_driver_its_library_is_what_is_missing(build: Path, tmp_path: Path) -> None:
    result = check(build)
    assert (result.outcome, result.kind, result.library, result.wanted_by, result.wheel) == (
        ("failed", "library-missing", "libcuda.so.1", PROVIDER, None)
    )
    assert result.package == "onnxruntime-gpu"
    # What the CUDA toolkit ships for linking does not count as a driver.
    stub = compile_driver(tmp_path / "stubs", defines=("_GNU_SOURCE", "FOR_RUNTIME"))
    assert check(build, stub.environ()).library == "libcuda.so.1"


def test_a_driver_from_before_cuda_12_is_too_old_to_load(build: Path, tmp_path: Path) -> None:
    old = compile_driver(tmp_path / "lib", defines=("OLD_DRIVER",))
    old.play(*READY)
    result = check(build, old.environ())
    assert (result.kind, result.library) == ("provider-failed", PROVIDER)
    assert "undefined symbol: cuTensorMapEncodeTiled; the NVIDIA driver is too old" in str(result.detail)


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("version 12080", ("failed", "provider-failed", "CUDA error 35: CUDA driver version is insufficient")),
        ("init 2", ("inconclusive", "out-of-memory", "CUDA error 2")),
        ("init 46", ("inconclusive", "busy", "CUDA error 46")),
        ("init 100", ("inconclusive", "busy", "CUDA error 100")),
        ("init 101", ("inconclusive", "busy", "CUDA error 101")),
        ("init 803", ("inconclusive", "busy", "CUDA error 803")),
        ("init 999", ("inconclusive", "busy", "CUDA error 999")),
        ("do cuInit segv", ("crashed", "crashed", "SIGSEGV in the step conv")),
        ("do cuInit abort", ("crashed", "crashed", "SIGABRT in the step conv")),
        ("do cuInit exit", ("failed", "conv-failed", "exit code 7")),
        ("do cuInit leave", ("failed", "conv-failed", "no answer in the step conv")),
        ("do cuInit hang", ("inconclusive", "timeout", "in the step conv")),
        ("do cuInit print", ("failed", "provider-failed", "does not start")),
        ("do cuInit flood", ("failed", "conv-failed", "no answer in the step conv")),
    ],
)
def test_what_a_driver_answers_decides(
    build: Path, driver: FakeDriver, line: str, answer: tuple[str, str, str]
) -> None:
    outcome, kind, words = answer
    driver.play(line, *READY)
    result = check(build, driver.environ(), deadline=5 if "hang" in line else 60)
    assert (result.outcome, result.kind) == (outcome, kind), result.detail
    assert words in str(result.detail)
    if kind in {"provider-failed", "busy", "out-of-memory"}:
        used = 1 << 30
        assert result.memory == GpuMemory(24 << 30, used, used)


@pytest.mark.parametrize(
    ("library", "wheel"),
    [
        ("libcublasLt.so.13", "nvidia-cublas"),
        ("libcublas.so.13", "nvidia-cublas"),
        ("libcurand.so.10", "nvidia-curand"),
        ("libcudart.so.13", "nvidia-cuda-runtime"),
        ("libnvrtc.so.13", None),
        ("libcudnn.so.9", None),
    ],
)
def test_each_library_that_is_taken_away_is_named_with_its_wheel(
    build: Path, driver: FakeDriver, library: str, wheel: str | None
) -> None:
    """Without NVRTC or cuDNN the provider comes up all the same: operations ask for them later."""
    driver.play(*READY)
    path = next(build.rglob(library))
    aside = path.rename(path.with_name("aside"))
    try:
        result = check(build, driver.environ())
    finally:
        aside.rename(path)
    if wheel is None or library in result.libraries:
        # The system's own toolkit may stand in for the runtime library; then that is what is told.
        assert "aside" not in result.libraries.get(library, "")
        assert result.kind == "provider-failed"
        assert "CUDA error" in str(result.detail)
        return
    assert (result.outcome, result.kind, result.library) == ("failed", "library-missing", library)
    assert (result.wanted_by, result.wheel) == (PROVIDER, wheel)


def test_a_truncated_library_is_damaged_and_not_missing(build: Path, driver: FakeDriver) -> None:
    driver.play(*READY)
    path = next(build.rglob("libcurand.so.10"))
    aside = path.rename(path.with_name("aside"))
    try:
        path.write_bytes(aside.read_bytes()[:100])
        result = check(build, driver.environ())
    finally:
        aside.replace(path)
    assert (result.kind, result.library, result.wheel) == ("provider-failed", "libcurand.so.10", "nvidia-curand")
    assert "cannot be loaded: " in str(result.detail)


def test_every_library_in_the_wheels_is_known_by_its_supplier(build: Path) -> None:
    seen = 0
    for found in inspect(build).distributions:
        if not found.name.startswith("nvidia-"):
            continue
        for line in (found.folder / "RECORD").read_text("utf-8").splitlines():
            name = Path(line.split(",")[0]).name
            if ".so" in name:
                supplier = supplier_of(name, "13.0")
                assert supplier is not None, name
                assert supplier.wheel == found.name, name
                seen += 1
    assert seen > 12


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Set up a home with the CPU build, for the model."""
    root = tmp_path_factory.mktemp("place") / "home"
    ran = run_cli(root, ["setup", "--yes"], timeout=900)
    assert ran.code == 0, ran.err
    return root


def test_the_command_says_what_fails_and_that_the_model_would_not_run_either(
    build: Path, driver: FakeDriver, home: Path
) -> None:
    driver.play(*READY)
    library = next(build.rglob("libcurand.so.10"))
    aside = library.rename(library.with_name("aside"))
    environ = {**driver.environ(), "IMPRINT_DEVICE": "gpu"}
    try:
        ran = run_cli(home, ["check", "--venv", str(build), "--placement", "--json"], environ=environ, timeout=120)
        embedded = run_cli(home, ["embed", "--venv", str(build), "one text"], environ=environ, timeout=120)
    finally:
        aside.rename(library)
    assert ran.code == 1
    document = json.loads(ran.out)
    assert document["data"]["device"]["name"] == "NVIDIA L4"
    assert (document["data"]["kind"], document["data"]["library"]) == ("library-missing", "libcurand.so.10")
    placement = document["data"]["placement"]
    assert (placement["runs"], placement["provider"]) == (False, "CPUExecutionProvider")
    assert [error["code"] for error in document["errors"]] == ["check-failed", "gpu-not-used"]
    assert not document["data"]["recorded"]
    assert not ran.err or "onnxruntime" not in ran.err
    assert embedded.code == 0
    assert embedded.err.startswith("warning: you asked for a GPU, but embeddings run on the CPU"), embedded.err
    assert embedded.err.count("warning: ") == 1
    assert f"imprint setup --venv {build}" in embedded.err, "what proves it is told with it"
    assert "onnxruntime" not in embedded.err


def test_the_placement_on_the_cpu_build(home: Path) -> None:
    ran = run_cli(home, ["check", "--placement", "--json"], timeout=120)
    assert ran.code == 0, ran.err
    placement = json.loads(ran.out)["data"]["placement"]
    assert placement["runs"]
    assert placement["providers"]["CPUExecutionProvider"]["share_of_nodes"] == 1.0
    assert sum(row["nodes"] for row in placement["on_cpu"]) == placement["providers"]["CPUExecutionProvider"]["nodes"]
    assert all(row["normal"] for row in placement["on_cpu"])
