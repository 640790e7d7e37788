"""Setup is killed or interrupted at every named point and at random moments: old or new, never a mixture."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from imprint.runtime.checkpoint import NAMES
from imprint.runtime.distributions import inventory
from imprint.runtime.installer import space
from imprint.runtime.installer.uv import find_uv
from imprint.runtime.managed import deferred
from imprint.runtime.managed.generations import damage_of
from imprint.runtime.target import current_target, interpreter_of
from support.kills import end_group
from support.place import Place
from support.twins import Twins, loaded, make_twins

pytestmark = pytest.mark.faults

ROOT = Path(__file__).parents[2]
EXPECTED = {"cpu": "onnxruntime 1.31.1 onnxruntime", "cuda13": "onnxruntime-gpu 1.31.1 onnxruntime-gpu"}
BUILD = {"cpu": "cpu", "gpu": "cuda13"}
SEED = 20261129
COUNTS = os.environ.get("TEST_COUNTS", "fast")
KILLS = {"fast": 5, "tenth": 30, "full": 300}[COUNTS]
ROUNDS = {"fast": 1, "tenth": 2, "full": 20}[COUNTS]


@pytest.fixture(scope="module")
def twins(tmp_path_factory: pytest.TempPathFactory) -> Twins:
    return make_twins(tmp_path_factory.mktemp("twins"))


@pytest.fixture
def place(tmp_path: Path, twins: Twins) -> Place:
    return Place(tmp_path / "home", twins)


def start(place: Place, device: str, *more: str) -> subprocess.Popen[str]:
    argv = [sys.executable, str(Path(__file__).with_name("driver.py"))]
    argv += [str(place.home.root), str(place.twins.root), device, *more]
    environ = {**place.context.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")])}
    return subprocess.Popen(argv, env=environ, stdout=subprocess.PIPE, text=True, start_new_session=True)


def end(process: subprocess.Popen[str]) -> str:
    output, _ = process.communicate(timeout=120)
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
CASES = [("", "cpu", name) for name in CPU_POINTS]
CASES += [("cpu", "gpu", name) for name in NAMES]


@pytest.mark.parametrize(("before", "device", "point"), CASES)
def test_a_kill_at_a_named_point_leaves_the_old_or_the_new(place: Place, before: str, device: str, point: str) -> None:
    if before:
        place.setup(before)
    process = start(place, device, "--point", point)
    end(process)
    assert process.returncode == -signal.SIGKILL
    assert_whole(place)
    if before:
        assert current_target(place.home) is not None
    assert_reaches(place, device)


INTERRUPTS = [("SIGINT", point) for point in NAMES]
INTERRUPTS += [(name, point) for name in ("SIGTERM", "SIGHUP") for point in ("installed", "pointer-flipped")]


@pytest.mark.parametrize(("name", "point"), INTERRUPTS)
def test_an_interrupt_at_a_named_point_is_said_and_leaves_nothing_half_made(
    place: Place, point: str, name: str
) -> None:
    place.setup("cpu")
    process = start(place, "gpu", "--point", point, "--signal", name)
    code = "hangup" if name == "SIGHUP" else "interrupted"
    assert end(process).startswith(f"InterruptedByUserError {code}")
    assert process.returncode == 1
    assert_whole(place)
    if NAMES.index(point) < NAMES.index("manifest-written"):
        assert len(list(place.home.runtimes.iterdir())) == 1
    assert_reaches(place, "gpu")


def durations(place: Place, device: str, log: Path, keep: int) -> dict[str, float]:
    """Return how long each step of an undisturbed setup takes here."""
    log.unlink(missing_ok=True)
    assert end(start(place, device, "--log", str(log), "--keep", str(keep))) == device
    times = [line.split() for line in log.read_text().splitlines()]
    return {name: float(after[1]) - float(at) for (name, at), after in pairwise(times)}


@pytest.mark.timeout(3600)
def test_whenever_it_is_killed_the_old_or_the_new_is_there(
    place: Place, monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]
) -> None:
    """To and fro between the builds, the process group killed on the way.

    As with the real builds, the one for the CPU is small enough to be kept and the GPU set goes in the run that
    leaves it.
    """
    place.setup("cpu")
    cpu = place.prefix
    place.setup("gpu")
    keep = (space.added_by(cpu, (place.prefix,)) + space.added_by(place.prefix, (cpu,))) // 2
    monkeypatch.setattr("imprint.runtime.managed.generations.KEEP_BELOW", keep)
    log = place.home.root / "points"
    steps = {device: durations(place, device, log, keep) for device in ("cpu", "gpu")}
    chance = random.Random(SEED)  # noqa: S311 - reproducible, not secret
    killed: Counter[str] = Counter()
    # Each way has its own points: what was kept is only pointed to.
    orders = {device: chance.sample(sorted(points), len(points)) for device, points in steps.items()}
    now = "gpu"
    for number in range(KILLS):
        now = "cpu" if now == "gpu" else "gpu"
        aim = orders[now][number // 2 % len(orders[now])]
        delay = chance.choice([0.0, chance.uniform(0, steps[now][aim])])
        log.unlink(missing_ok=True)
        kill = ["--group", "--point", aim, "--delay", str(delay)]
        process = start(place, now, *kill, "--log", str(log), "--keep", str(keep))
        end(process)
        reached = log.read_text().split()[-2]
        killed[reached] += 1
        story = f"kill {number}: {delay:.3f} s after {aim} (at {reached}) on the way to the {now}"
        target = current_target(place.home)
        assert target is not None, story
        assert damage_of(target) == (), story
        assert loaded(target.python) == EXPECTED[str(target.build)], story
        place.setup(now)
        assert_tidy(place, now, story)
    histogram = {step: killed[step] for step in ("start", *NAMES)}
    record_property("kills", histogram)
    print(f"\nkills by last point reached: {histogram}")  # noqa: T201 - the figure of docs/reliability.md
    if KILLS >= 30:
        assert sum(1 for step in NAMES if killed[step]) >= len(NAMES) - 3


def assert_tidy(place: Place, device: str, story: str) -> None:
    """Demand exactly what was planned; beside it on the disk the CPU build at most, in the cache nothing."""
    assert place.runs() == EXPECTED[BUILD[device]], story
    others = [folder for folder in place.home.runtimes.iterdir() if folder.name != place.prefix.name]
    assert [loaded(interpreter_of(folder)) for folder in others] in ([], [EXPECTED["cpu"]]), story
    assert not others or device == "gpu", story
    assert not deferred.path_of(place.home).exists(), story
    assert not list(place.home.data.glob(".*.tmp")), story
    libraries = list(place.home.cache.rglob("libcublas*"))
    assert bool(libraries) == (device == "gpu"), story


@pytest.mark.parametrize("count", [2, 5])
def test_opposite_setups_at_once_end_in_one_whole_plan(place: Place, count: int) -> None:
    """Those that wait all get their turn; whichever was last is what is there, whole."""
    for number in range(ROUNDS):
        devices = [("cpu", "gpu")[(number + each) % 2] for each in range(count)]
        processes = [start(place, device, "--wait", "100") for device in devices]
        assert sorted(end(process) for process in processes) == sorted(devices)
        assert_whole(place)
        assert current_target(place.home) is not None


def test_those_that_do_not_wait_are_told_who_is_at_work(place: Place) -> None:
    for _ in range(ROUNDS):
        outputs = [end(process) for process in [start(place, "cpu") for _ in range(5)]]
        assert "cpu" in outputs
        assert [output for output in outputs if output != "cpu" and not output.startswith("BusyError busy")] == []
        assert all(
            "`imprint setup`" in output for output in outputs if output != "cpu" and "unidentified" not in output
        )
        assert_whole(place)


def test_a_holder_that_is_stopped_is_named_and_not_waited_for_without_end(place: Place) -> None:
    holder = start(place, "cpu", "--point", "environment-created", "--signal", "SIGSTOP")
    try:
        _until_stopped(holder.pid)
        began = time.monotonic()
        told = end(start(place, "gpu", "--wait", "1"))
        assert told.startswith("BusyError busy")
        assert f"process {holder.pid}" in told
        assert time.monotonic() - began < 30
    finally:
        os.kill(holder.pid, signal.SIGCONT)
    assert end(holder) == "cpu"
    assert_reaches(place, "gpu")


def _until_stopped(pid: int) -> None:
    deadline = time.monotonic() + 60
    while Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.timeout(600)
def test_plain_uv_in_the_same_harness_is_caught_broken(tmp_path: Path) -> None:
    """Control: uv alone switches a runtime, is killed, does the same again, and what is there is judged as above."""
    twins = make_twins(tmp_path / "twins", parts=300)
    place = Place(tmp_path / "home", twins)
    place.setup("gpu")
    target = current_target(place.home)
    assert target is not None
    uv = find_uv(place.home, place.context.environ)
    options = f"--quiet --python '{target.python}'"
    switch = {}
    for build, others in (("cpu", "onnxruntime-gpu nvidia-cublas nvidia-curand"), ("cuda13", "onnxruntime")):
        locks = " ".join(f"-r '{twins.lock_path(name)}'" for name in (f"{build}.txt", "base.txt"))
        install = f"install {options} --offline --require-hashes --find-links '{twins.wheels}' {locks}"
        command = f"'{uv.executable}' --no-config pip"
        switch[build] = f"{command} uninstall {options} {others}; {command} {install}"
    _by_hand(place, switch["cpu"], 60)
    whole = _by_hand(place, switch["cuda13"], 60) or 60
    chance = random.Random(SEED)  # noqa: S311 - as above
    broken, tries = 0, 0
    while broken < 2 and tries < 150:
        build = ("cpu", "cuda13")[tries % 2]
        tries += 1
        took = _by_hand(place, switch[build], chance.uniform(0.2, 1) * whole)
        # How long a switch takes follows the load of the machine, and most of it is before the files are linked.
        whole = whole * 1.2 if took is None else took
        _by_hand(place, switch[build], 60)
        seen = inventory.inspect(target.prefix)
        if seen.problems or len(seen.runtime_distributions) != 1 or loaded(target.python) != EXPECTED[build]:
            broken += 1
            _by_hand(place, f"{switch[build]} --reinstall", 60)
    print(f"\nplain uv: {broken} of {tries} broken after the same commands again")  # noqa: T201 - as above
    assert broken > 0


def _by_hand(place: Place, command: str, seconds: float) -> float | None:
    environ = {"PATH": os.environ["PATH"], "UV_CACHE_DIR": str(place.home.cache)}
    process = subprocess.Popen(["sh", "-c", command], env=environ, stderr=subprocess.DEVNULL, start_new_session=True)
    return end_group(process, seconds)
