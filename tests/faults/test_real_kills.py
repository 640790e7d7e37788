"""The real cuda13 set under SIGKILL: provisioned for a machine with a GPU, killed at every step, to and fro."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from imprint.context import Context
from imprint.operations.setup import SetupOptions, setup
from imprint.paths import Home
from imprint.runtime.check.children import child_environment
from imprint.runtime.checkpoint import NAMES
from imprint.runtime.distributions import inventory
from imprint.runtime.managed import deferred
from imprint.runtime.managed.generations import damage_of
from imprint.runtime.target import Target, current_target
from support.place import machine_like_this

pytestmark = [pytest.mark.faults, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
SEED = 20261129
KILLS = {"fast": 1, "tenth": 4, "full": 40}[os.environ.get("TEST_COUNTS", "fast")]
LOAD = """
import sys
from onnxruntime.capi import build_and_package_info as info
import onnxruntime
print(info.package_name, info.__version__, "CUDAExecutionProvider" in onnxruntime.get_available_providers())
"""
EXPECTED = {"cpu": "onnxruntime 1.31.1 False", "cuda13": "onnxruntime-gpu 1.31.1 True"}
DRIVER = """
import os, signal, sys, threading, time
from pathlib import Path
from imprint.context import Context
from imprint.operations.setup import SetupOptions, setup
from imprint.paths import Home
from imprint.runtime import checkpoint
from support.place import machine_like_this
home, device, point, delay, log = sys.argv[1:]
descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
def strike():
    time.sleep(float(delay))
    os.killpg(0, signal.SIGKILL)
def at(reached):
    os.write(descriptor, f"{reached}\\n".encode())
    if reached == point:
        threading.Thread(target=strike, daemon=True).start() if float(delay) else strike()
checkpoint.listener = at
machine = machine_like_this() if device == "gpu" else None
options = SetupOptions(machine=machine, wait_seconds=0)
setup(Context(Home(Path(home)), dict(os.environ), {"model.device": device}), options, lambda _: None)
"""


def environ_of() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(("UV_", "PIP_", "IMPRINT_"))}


def set_up(home: Home, device: str) -> None:
    machine = machine_like_this() if device == "gpu" else None
    context = Context(home, environ_of(), {"model.device": device})
    assert setup(context, SetupOptions(machine=machine, wait_seconds=0), lambda _: None).ok


def loads(target: Target) -> str:
    environ = child_environment(os.environ)
    ended = subprocess.run([target.python, "-I", "-c", LOAD], capture_output=True, text=True, check=False, env=environ)
    return ended.stdout.strip() or ended.stderr


def run(home: Home, device: str, log: Path, point: str = "", delay: float = 0.0) -> subprocess.CompletedProcess[str]:
    """Set up in a process of its own that kills its group after a point; its output is the points it reached."""
    log.unlink(missing_ok=True)
    environ = {**environ_of(), "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")])}
    argv = [sys.executable, "-c", DRIVER, str(home.root), device, point, str(delay), str(log)]
    ended = subprocess.run(argv, env=environ, capture_output=True, text=True, start_new_session=True, check=False)
    ended.stdout = log.read_text()
    return ended


def points_of(ended: subprocess.CompletedProcess[str]) -> list[str]:
    return ended.stdout.split()


@pytest.mark.timeout(3600)
def test_the_real_set_is_old_or_new_whenever_it_is_killed(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """The cache is filled again from hard links after each way back, so that only the first time downloads."""
    home = Home(tmp_path / "home")
    full, log = tmp_path / "full cache", tmp_path / "points"
    set_up(home, "cpu")
    ways = {"gpu": points_of(run(home, "gpu", log))}
    shutil.copytree(home.cache, full, copy_function=os.link, symlinks=True)
    chance = random.Random(SEED)  # noqa: S311 - reproducible, not secret
    ways["cpu"] = points_of(run(home, "cpu", log))
    killed: Counter[str] = Counter()
    now, number = "cpu", -1
    while killed.total() < KILLS:
        number += 1
        assert number < 3 * KILLS
        now = "cpu" if now == "gpu" else "gpu"
        if now == "gpu":
            shutil.rmtree(home.cache)
            shutil.copytree(full, home.cache, copy_function=os.link, symlinks=True)
        aim, delay = chance.choice(ways[now]), chance.choice([0.0, chance.uniform(0, 0.4)])
        ended = run(home, now, log, aim, delay)
        reached = points_of(ended)[-1]
        story = f"run {number}: {delay:.3f} s after {aim} (at {reached}) on the way to the {now}: {ended.stderr}"
        # One that was quicker than its killer does not count.
        killed[reached] += ended.returncode == -signal.SIGKILL
        target = current_target(home)
        assert target is not None, story
        assert damage_of(target) == (), story
        assert loads(target) == EXPECTED[str(target.build)], story
        set_up(home, now)
        target = current_target(home)
        assert target is not None, story
        assert loads(target) == EXPECTED["cpu" if now == "cpu" else "cuda13"], story
        assert not deferred.path_of(home).exists(), story
        if now == "cpu":
            left = [path for path in home.root.rglob("*") if "/nvidia/" in str(path)]
            assert left == [], story
            assert inventory.inspect(target.prefix).problems == (), story
    histogram = {step: killed[step] for step in NAMES}
    record_property("kills", histogram)
    print(f"\nkills of the real set by last point reached: {histogram}")  # noqa: T201 - for docs/reliability.md
