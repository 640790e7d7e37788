"""Setup is killed or interrupted at every named point and at random moments: old or new, never a mixture."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from imprint.runtime.checkpoint import NAMES
from imprint.runtime.generations import damage_of
from imprint.runtime.target import current_target
from support.place import Place
from support.twins import Twins, loaded, make_twins

pytestmark = pytest.mark.faults

ROOT = Path(__file__).parents[2]
EXPECTED = {"cpu": "onnxruntime 1.31.1 onnxruntime", "cuda13": "onnxruntime-gpu 1.31.1 onnxruntime-gpu"}
BUILD = {"cpu": "cpu", "gpu": "cuda13"}
SEED = 20261129


@pytest.fixture(scope="module")
def twins(tmp_path_factory: pytest.TempPathFactory) -> Twins:
    return make_twins(tmp_path_factory.mktemp("twins"))


@pytest.fixture
def place(tmp_path: Path, twins: Twins) -> Place:
    return Place(tmp_path / "home", twins)


def start(place: Place, device: str, action: str = "run", wait: float = 0) -> subprocess.Popen[str]:
    argv = [sys.executable, str(Path(__file__).with_name("driver.py"))]
    argv += [str(place.home.root), str(place.twins.root), device, action, str(wait)]
    environ = {**place.context.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")])}
    return subprocess.Popen(argv, env=environ, stdout=subprocess.PIPE, text=True, start_new_session=True)


def end(process: subprocess.Popen[str]) -> str:
    output, _ = process.communicate(timeout=60)
    return output.strip()


def assert_whole(place: Place) -> None:
    """Demand that what is current, if anything, is undamaged and loads what its manifest says."""
    target = current_target(place.home)
    if target is None:
        return
    assert damage_of(target) == ()
    assert loaded(target.python) == EXPECTED[str(target.build)]


def assert_reaches(place: Place, device: str) -> None:
    """Demand that the next plain setup ends with exactly what was planned and nothing half made beside it."""
    assert end(start(place, device)) == device
    assert loaded(place.prefix / "bin" / "python") == EXPECTED[BUILD[device]]
    assert all((folder / "manifest.json").exists() for folder in place.home.runtimes.iterdir())
    assert not list(place.home.data.glob(".*.tmp"))


CPU_POINTS = [name for name in NAMES if name != "recorded"]
CASES = [("", "cpu", name) for name in CPU_POINTS if name != "model-installed"]
CASES += [("cpu", "gpu", name) for name in NAMES if name != "model-installed"]


@pytest.mark.parametrize(("before", "device", "point"), CASES)
def test_a_kill_at_a_named_point_leaves_the_old_or_the_new(place: Place, before: str, device: str, point: str) -> None:
    if before:
        place.setup(before)
    process = start(place, device, f"{point}=SIGKILL")
    end(process)
    assert process.returncode == -signal.SIGKILL
    assert_whole(place)
    if before:
        assert current_target(place.home) is not None
    assert_reaches(place, device)


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
@pytest.mark.parametrize("point", [point for point in NAMES if point != "model-installed"])
def test_an_interrupt_at_a_named_point_is_said_and_leaves_nothing_half_made(
    place: Place, point: str, name: str
) -> None:
    place.setup("cpu")
    process = start(place, "gpu", f"{point}={name}")
    assert end(process).startswith("InterruptedByUserError interrupted")
    assert process.returncode == 1
    assert_whole(place)
    if NAMES.index(point) < NAMES.index("manifest-written"):
        assert len(list(place.home.runtimes.iterdir())) == 1
    assert_reaches(place, "gpu")


@pytest.mark.parametrize("number", range(16))
def test_a_kill_at_a_random_moment_leaves_the_old_or_the_new(place: Place, number: int) -> None:
    chance = random.Random(f"{SEED}-{number}")  # noqa: S311 - reproducible, not secret
    before, device = chance.choice([("cpu", "gpu"), ("gpu", "cpu"), ("", "cpu"), ("", "gpu")])
    if before:
        place.setup(before)
    process = start(place, device)
    time.sleep(chance.uniform(0.15, 0.75))
    os.killpg(process.pid, signal.SIGKILL)
    end(process)
    assert_whole(place)
    assert_reaches(place, device)


@pytest.mark.parametrize("number", range(4))
def test_two_opposite_setups_at_once_end_in_one_whole_plan(place: Place, number: int) -> None:
    del number
    processes = [start(place, device, wait=30) for device in ("cpu", "gpu")]
    assert sorted(end(process) for process in processes) == ["cpu", "gpu"]
    assert_whole(place)
    assert current_target(place.home) is not None


def test_the_loser_of_five_at_once_says_whom_it_waits_for(place: Place) -> None:
    processes = [start(place, "cpu") for _ in range(5)]
    outputs = [end(process) for process in processes]
    assert "cpu" in outputs
    assert all(output == "cpu" or output.startswith("BusyError busy") for output in outputs)
    assert_whole(place)


def test_the_plain_way_would_be_caught(place: Place) -> None:
    """The control: what uv alone leaves after a kill while it links is seen as damage, so these tests can fail."""
    place.setup("cpu")
    target = current_target(place.home)
    assert target is not None
    (next(target.prefix.rglob("onnxruntime*.dist-info")) / "INSTALLER").unlink()
    next(target.prefix.rglob("part9.py")).unlink()
    assert damage_of(target) != ()
