"""What a target's packages can do to the check: each is an answer, in bounded time and memory."""

from __future__ import annotations

import json
import os
import resource
import sys
import time
import tracemalloc
import venv
from pathlib import Path

import pytest

from imprint.planning.model import Device
from imprint.runtime.check.children import enough_memory
from imprint.runtime.check.run import run_check
from support.fake_cuda import FakeDriver, compile_driver, device_line

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the played interpreter is a shell script")
GPU = Device(0, "GPU-1", "NVIDIA L4")

NUMPY = "float64 = float"
RUNTIME = """
import os, signal, sys, time
__version__ = "1.31.1"
def get_available_providers(): return ["CUDAExecutionProvider", "CPUExecutionProvider"]
def preload_dlls(): print("Failed to load libnothing.so: " + "x" * 100000)
class SessionOptions:
    def add_session_config_entry(self, *_): pass
class InferenceSession:
    def __init__(self, content, options, providers, enable_fallback):
        self.operator = next(name for name in (b"Conv", b"MatMul", b"LayerNorm") if name in content)
        self.providers = [name[0] if isinstance(name, tuple) else name for name in providers]
        act(self.operator.decode())
    def get_providers(self): return self.providers
    def disable_fallback(self): pass
    def run(self, *_): raise RuntimeError("played")
"""


@pytest.fixture
def play(tmp_path: Path) -> Path:
    """Return a folder in which `packages/` comes first for the interpreter `python` there."""
    (tmp_path / "packages").mkdir()
    python = tmp_path / "python"
    # -I, which the check is started with, would ignore PYTHONPATH.
    path = tmp_path / "packages"
    python.write_text(f"#!/bin/sh\nshift\nPYTHONPATH='{path}' exec '{sys.executable}' \"$@\"\n")
    python.chmod(0o755)
    return tmp_path


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> FakeDriver:
    return compile_driver(tmp_path_factory.mktemp("driver") / "lib")


def _package(folder: Path, name: str, body: str) -> None:
    (folder / "packages" / name).mkdir(parents=True, exist_ok=True)
    (folder / "packages" / name / "__init__.py").write_text(body)


BODIES = {
    "import os; os.kill(os.getpid(), 11)": ("crashed", "crashed"),
    "import os; os.kill(os.getpid(), 7)": ("crashed", "crashed"),
    "import os; os.kill(os.getpid(), 4)": ("crashed", "crashed"),
    "import os; os.abort()": ("crashed", "crashed"),
    "import os; os.kill(os.getpid(), 9)": ("inconclusive", "killed"),
    "import os; os.kill(os.getpid(), 15)": ("inconclusive", "killed"),
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)": ("inconclusive", "timeout"),
    "raise MemoryError": ("inconclusive", "out-of-memory"),
    "import resource as r; r.setrlimit(r.RLIMIT_AS, (1 << 29,) * 2); x = bytearray(1 << 30)": (
        "inconclusive",
        "out-of-memory",
    ),
    "raise ImportError('libfoo')": ("failed", "import-failed"),
    "import os; os._exit(0)": ("failed", "import-failed"),
    "import os; os._exit(3)": ("failed", "import-failed"),
    "import os\nfor fd in range(3, 20):\n  try: os.write(fd, b'{\"steps\": {')\n  except OSError: pass\nos._exit(0)": (
        "failed",
        "import-failed",
    ),
}


@pytest.mark.parametrize("body", BODIES)
def test_what_a_target_does_to_its_child_is_an_answer(play: Path, body: str) -> None:
    outcome, kind = BODIES[body]
    _package(play, "numpy", NUMPY)
    _package(play, "onnxruntime", body)
    started = time.monotonic()
    result = run_check(play / "python", None, os.environ, deadline=1 if kind == "timeout" else 30)
    assert (result.outcome, result.kind) == (outcome, kind), result.detail
    assert time.monotonic() - started < 10
    assert len(json.dumps(result.report.to_json())) < 4000


@pytest.mark.parametrize(
    ("act", "outcome", "kind", "words"),
    [
        ("os.kill(os.getpid(), 11) if step == 'MatMul' else None", "crashed", "crashed", "SIGSEGV in the step matmul"),
        ("time.sleep(60)", "inconclusive", "timeout", "in the step conv"),
        ("os._exit(0) if step == 'LayerNorm' else None", "failed", "ort-failed", "no answer in the step ort"),
    ],
)
def test_the_step_that_ended_the_child_is_named(play: Path, act: str, outcome: str, kind: str, words: str) -> None:
    numpy = Path(__file__).parents[1] / "support" / "played_numpy.py"
    _package(play, "numpy", numpy.read_text())
    _package(play, "onnxruntime", RUNTIME + f"\ndef act(step): {act}\n")
    result = run_check(play / "python", GPU, os.environ, deadline=2)
    assert (result.outcome, result.kind) == (outcome, kind), result.detail
    assert words in str(result.detail)
    assert result.version in {None, "1.31.1"}


@pytest.mark.parametrize(
    ("free", "outcome", "kind"), [(9 << 30, "failed", "conv-failed"), (100 << 20, "inconclusive", "out-of-memory")]
)
def test_the_gpu_s_memory_is_told_and_a_full_one_explains_the_failure(
    play: Path, driver: FakeDriver, free: int, outcome: str, kind: str
) -> None:
    _package(play, "numpy", (Path(__file__).parents[1] / "support" / "played_numpy.py").read_text())
    _package(play, "onnxruntime", RUNTIME + "\ndef act(step): pass\n")
    driver.play(device_line(memory=16 << 30, free=free))
    pinned = Device(0, "GPU-00112233-4455-6677-8899-aabbccddeeff", "NVIDIA L4")
    result = run_check(play / "python", pinned, driver.environ(), deadline=30)
    assert result.memory is not None
    assert result.memory.total_bytes - result.memory.used_before_bytes == free
    assert (result.outcome, result.kind) == (outcome, kind), result.detail


def test_a_flood_on_every_stream_hides_no_answer_and_fills_no_memory(play: Path) -> None:
    """Packages that run at start-up print to stdout before the child can claim it; the answer has a way of its own."""
    _package(play, "numpy", NUMPY)
    flood = "import os\nfor fd in (1, 2):\n  for _ in range(160):\n    os.write(fd, b'x' * 65536 + b'\\n')\n"
    (play / "packages" / "sitecustomize.py").write_text(flood)
    _package(play, "onnxruntime", flood + "raise ImportError('told in the end')")
    tracemalloc.start()
    try:
        result = run_check(play / "python", None, os.environ, deadline=30)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (result.kind, result.detail) == ("import-failed", "ImportError: told in the end")
    assert peak < 8 * 1024 * 1024


def test_where_no_file_can_be_made_the_answer_comes_on_stdout(play: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _package(play, "numpy", NUMPY)
    _package(play, "onnxruntime", "raise ImportError('told')")

    def refuse(**_: object) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.TemporaryDirectory", refuse)
    assert run_check(play / "python", None, os.environ, deadline=30).detail == "ImportError: told"


def test_an_interpreter_that_is_gone_or_no_program_is_an_answer(tmp_path: Path) -> None:
    assert run_check(tmp_path / "nowhere", None, os.environ).kind == "not-started"
    (tmp_path / "python").write_bytes(b"\x7fELF no program")
    (tmp_path / "python").chmod(0o755)
    assert run_check(tmp_path / "python", None, os.environ).kind == "not-started"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux bounds what a process holds")
def test_a_start_file_that_is_endless_takes_a_bounded_amount_of_memory(tmp_path: Path) -> None:
    """As where a `.pth` was linked to a device: it is said, and the machine does not run out of memory for it."""
    venv.create(tmp_path / "env", symlinks=True)
    (packages,) = (tmp_path / "env").glob("lib/python3*/site-packages")
    (packages / "start.pth").symlink_to("/dev/zero")
    result = run_check(tmp_path / "env" / "bin" / "python", None, os.environ)
    assert (result.outcome, result.kind) == ("inconclusive", "out-of-memory")
    assert "a file of the environment that leads to a device takes all" in str(result.detail)
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024 < enough_memory() * 1.1
