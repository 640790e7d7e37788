"""Setup with the real locks and wheels: needs the network, and 1.4 GB for the last test."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from imprint.context import Context
from imprint.operations.check import check
from imprint.operations.prune import prune
from imprint.operations.setup import Seams, SetupOptions, setup
from imprint.paths import Home
from imprint.runtime.distributions import inventory
from imprint.runtime.events import Event
from imprint.runtime.installer.space import used_by
from imprint.runtime.target import current_target
from imprint.state import verdicts
from support.place import MACHINE

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
AGAIN = """
import os, sys, time
from pathlib import Path
from imprint.context import Context
from imprint.operations.setup import SetupOptions, setup
from imprint.paths import Home
started = time.perf_counter()
result = setup(Context(Home(Path(sys.argv[1])), dict(os.environ), {}), SetupOptions(), print)
assert result.data["check"] is None and not result.data["changes"]
print(time.perf_counter() - started)
"""


def _environ() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(("UV_", "PIP_", "IMPRINT_"))}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """Make a home with the real CPU build and the real model."""
    made = Home(tmp_path_factory.mktemp("real") / "home")
    result = setup(Context(made, _environ(), {}), SetupOptions(), lambda _: None)
    assert result.data["status"]["line"] == "embeddings run on the CPU (ONNX Runtime 1.31.1): model.device is cpu"
    assert result.data["check"]["outcome"] == "ok"
    return made


def test_a_second_setup_needs_no_network_and_no_time(home: Home) -> None:
    argv = [sys.executable, "-c", AGAIN, str(home.root)]
    if subprocess.run(["unshare", "-n", "true"], capture_output=True, check=False).returncode == 0:
        argv = ["unshare", "-n", *argv]
    environ: Mapping[str, str] = {**_environ(), "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(argv, env=environ, capture_output=True, text=True, check=True)
    assert float(ended.stdout.splitlines()[-1]) < 0.3


def test_what_is_installed_is_whole_to_the_last_byte(home: Home) -> None:
    target = current_target(home)
    assert target is not None
    seen = inventory.inspect(target.prefix, deep=True)
    assert seen.problems == ()
    started = time.perf_counter()
    inventory.inspect(target.prefix)
    assert time.perf_counter() - started < 0.2
    result = check(Context(home, _environ(), {}))
    assert result.ok
    assert {name: step["ok"] for name, step in result.data["steps"].items()} == {
        "conv": True,
        "matmul": True,
        "ort": True,
    }
    assert result.data["package"] == "onnxruntime"


def test_a_truncated_library_of_the_real_build_is_noticed_and_fetched_again(home: Home) -> None:
    target = current_target(home)
    assert target is not None
    os.truncate(next(target.prefix.rglob("onnxruntime_pybind11_state*.so")), 100_000)
    assert check(Context(home, _environ(), {})).data["outcome"] in {"failed", "crashed"}
    result = setup(Context(home, _environ(), {}), SetupOptions(), lambda _: None)
    assert result.data["check"]["outcome"] == "ok"


def _has_libcuda() -> bool:
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


@pytest.mark.skipif(_has_libcuda(), reason="this machine has an NVIDIA driver")
def test_the_gpu_build_without_a_gpu_fails_its_check_with_the_library_named(home: Home) -> None:
    """A machine that only claims a GPU: the real set is fetched, refused with the cause, and kept for another try."""
    events: list[Event] = []
    context = Context(home, _environ(), {"model.device": "gpu"})
    result = setup(context, SetupOptions(), events.append, seams=Seams(machine=MACHINE))
    assert result.data["check"]["kind"] == "library-missing"
    assert result.data["check"]["library"] == "libcuda.so.1"
    assert result.data["check"]["wanted_by"] == "libonnxruntime_providers_cuda.so"
    assert result.data["status"]["runs_on"] == "cpu"
    assert result.data["plan"]["code"] == "check-failed"
    assert "libcuda.so.1" in result.data["plan"]["reason"]
    assert "which downloads nothing" in (result.warnings[0].hint or "")
    assert max(event.done or 0 for event in events if event.event == "progress") > 1_000_000_000
    assert used_by(home.root) > 1_000_000_000
    # Offline: what was fetched is still there.
    again = setup(context, SetupOptions(offline=True, retry_gpu=True), lambda _: None, seams=Seams(machine=MACHINE))
    assert again.data["check"]["kind"] == "library-missing"
    # What is free on the disk depends on whatever else writes there now; what lies in the home does not.
    assert prune(Context(home, _environ())).data["freed_bytes"] > 0
    assert used_by(home.root) < 400_000_000
    (verdict,) = verdicts.load(home)
    assert (verdict.result, verdict.kind) == ("failed", "library-missing")
