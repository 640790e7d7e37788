"""Setup for another machine, the way back, and what is left for later: real uv and processes, tiny wheels."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from contracts.shapes import SHAPES, problems
from imprint.errors import ImprintError, IntegrityError, InterruptedByUserError, NetworkError, UsageError
from imprint.operations.check import check
from imprint.operations.plan import PlanOptions, plan
from imprint.operations.prune import prune
from imprint.operations.rollback import rollback
from imprint.operations.status import status
from imprint.paths import Home
from imprint.planning.model import Device, Libc, Nvidia, Platform
from imprint.results import Result
from imprint.runtime.check.run import CPU, CUDA, CheckResult
from imprint.runtime.installer import space
from imprint.runtime.managed import deferred
from imprint.runtime.prune import remove_tools
from imprint.runtime.target import read_pointer
from imprint.state import verdicts
from support.place import MACHINE, Place, machine_like_this
from support.twins import VERSION, Twins, make_twins, twin_check

GPU_BUILD = f"onnxruntime-gpu {VERSION} onnxruntime-gpu"
CPU_BUILD = f"onnxruntime {VERSION} onnxruntime"


@pytest.fixture(scope="session")
def twins(tmp_path_factory: pytest.TempPathFactory) -> Twins:
    return make_twins(tmp_path_factory.mktemp("twins"))


@pytest.fixture
def place(tmp_path: Path, twins: Twins) -> Place:
    return Place(tmp_path / "home", twins)


def lenient_check(python: Path, device: Device | None, environ: Mapping[str, str]) -> CheckResult:
    """Stand for a check on the CPU, which every build passes."""
    if device is not None:
        return twin_check(python, device, environ)
    return CheckResult("ok", None, CPU, None)


def failing_check(_python: Path, device: Device | None, _environ: Mapping[str, str]) -> CheckResult:
    """Stand for a GPU that does not compute."""
    return CheckResult("ok", None, CPU, None) if device is None else CheckResult("failed", "conv-failed", CUDA, device)


def on(place: Place, device: str) -> Place:
    """Return the place as `check` and `status` are asked about it there."""
    place.context = replace(place.context, flags={"model.device": device})
    return place


def provision_for_a_gpu(place: Place) -> Result[Any]:
    place.check = lenient_check
    place.machine = replace(MACHINE, nvidia=Nvidia("none"))
    return place.setup("gpu", machine=machine_like_this())


def test_for_another_machine_the_check_is_deferred_and_said_so(place: Place) -> None:
    result = provision_for_a_gpu(place)
    assert result.ok
    assert problems(result.data, SHAPES["setup"]) == []
    assert result.data["plan"]["build"] == "cuda13"
    assert result.data["status"]["check_deferred"] is True
    assert "the check runs there" in result.data["status"]["line"]
    assert [warning.code for warning in result.warnings] == ["device-not-configured"]
    assert place.checks == [None], "the files are proved to load"
    assert place.runs() == GPU_BUILD
    told = status(on(place, "cpu").context)
    assert told.data["check_deferred"] is True


def test_there_the_first_setup_decides(place: Place) -> None:
    provision_for_a_gpu(place)
    prefix = place.prefix
    place.machine = MACHINE
    result = place.setup("gpu")
    assert result.data["status"]["runs_on"] == "gpu"
    assert result.data["status"]["check_deferred"] is False
    assert result.data["changes"] == []
    assert place.prefix == prefix


def test_there_a_gpu_that_does_not_compute_ends_on_the_cpu(place: Place) -> None:
    provision_for_a_gpu(place)
    place.machine = MACHINE
    place.check = failing_check
    result = place.setup("gpu")
    assert result.data["plan"]["code"] == "check-failed"
    assert result.data["status"]["runs_on"] == "cpu"
    assert place.runs() == CPU_BUILD


def test_there_the_first_check_decides(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    provision_for_a_gpu(place)
    place.machine = MACHINE
    monkeypatch.setattr("imprint.situation.inputs.survey_here", lambda *_, **__: MACHINE)
    context = on(place, "gpu").context
    assert status(context, prove=lenient_check).data["runs_on"] == "cpu", "nothing is proved yet"
    assert not check(context, prove=failing_check).ok
    (verdict,) = verdicts.load(place.home)
    assert (verdict.build, verdict.result) == ("cuda13", "failed")
    assert place.setup("gpu").data["plan"]["code"] == "check-failed"
    assert place.runs() == CPU_BUILD


def test_a_check_where_it_was_set_up_leaves_it_deferred(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    provision_for_a_gpu(place)
    monkeypatch.setattr("imprint.situation.inputs.survey_here", lambda *_, **__: place.machine)
    for device in ("cpu", "gpu"):
        told = check(on(place, device).context, prove=lenient_check)
        assert told.ok
        assert told.data["recorded"] is False
        assert [warning.code for warning in told.warnings] == ["not-recorded"]
        assert status(place.context, prove=lenient_check).data["check_deferred"] is True


def test_a_failure_that_cannot_count_is_told_all_the_same(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.machine = replace(MACHINE, nvidia=replace(MACHINE.nvidia, driver=None))
    place.check = failing_check
    line = place.setup("gpu").data["status"]["line"]
    assert "run on the CPU" in line
    assert "the last check of the CUDA 13 build failed" in line
    assert "it does not count, because the driver's version is unknown" in line
    assert "would install" not in line
    monkeypatch.setattr("imprint.situation.inputs.survey_here", lambda *_, **__: place.machine)
    context = on(place, "gpu").context
    assert status(context).data["line"] == line
    told = plan(context, PlanOptions()).data
    assert told["build"] == "cuda13", "it is tried again"
    assert told["reason"] in line


def test_a_deferred_check_on_the_cpu_is_decided_by_check(place: Place) -> None:
    place.setup("cpu", machine=machine_like_this())
    context = on(place, "cpu").context
    assert "run `imprint check`" in status(context, prove=lenient_check).data["line"]
    assert check(context, prove=lenient_check).ok
    assert status(context).data["check_deferred"] is False


@pytest.mark.parametrize(
    "other",
    [
        replace(MACHINE.platform, arch="sparc"),
        replace(MACHINE.platform, os="plan9"),
        replace(MACHINE.platform, libc=Libc("other", "1")),
    ],
    ids=["arch", "os", "libc"],
)
def test_a_machine_that_cannot_run_what_is_made_here_is_refused(place: Place, other: Platform) -> None:
    wrong = replace(machine_like_this(), platform=other)
    with pytest.raises(UsageError):
        place.setup("gpu", machine=wrong)
    assert not place.home.runtimes.exists()


def test_rollback_and_back_again(place: Place) -> None:
    with pytest.raises(ImprintError) as caught:
        rollback(place.context)
    assert caught.value.specific_code == "nothing-kept"
    assert caught.value.hint
    place.setup("cpu")
    cpu = place.prefix
    place.setup("gpu")
    context = on(place, "cpu").context
    result = rollback(context, prove=lenient_check)
    assert problems(result.data, SHAPES["rollback"]) == []
    assert place.prefix == cpu
    assert place.runs() == CPU_BUILD
    assert result.data["status"]["runs_on"] == "cpu"
    assert {"name": "onnxruntime", "from": None, "to": VERSION} in result.data["changes"]
    rollback(context, prove=lenient_check)
    assert place.runs() == GPU_BUILD
    assert place.setup("gpu").data["changes"] == []


def test_a_previous_runtime_that_fails_or_is_damaged_is_not_gone_back_to(place: Place) -> None:
    place.setup("cpu")
    cpu = place.prefix
    place.setup("gpu")
    gpu = place.prefix
    context = on(place, "cpu").context
    with pytest.raises(ImprintError) as caught:
        rollback(context, prove=lambda *_: CheckResult("crashed", "crashed", CPU, None, "it crashed"))
    assert caught.value.specific_code == "check-failed"
    next(cpu.rglob("part7.py")).unlink()
    with pytest.raises(ImprintError) as caught:
        rollback(context, prove=lenient_check)
    assert caught.value.specific_code == "target-damaged"
    assert place.prefix == gpu


def test_a_damaged_runtime_is_a_pending_change_where_that_is_asked(place: Place) -> None:
    """`plan --check || setup` repairs; a plan that is only read does not look at every file."""
    place.setup("cpu")
    context = on(place, "cpu").context
    assert plan(context, PlanOptions(check=True)).data["pending"] is False
    next(place.prefix.rglob("part7.py")).unlink()
    result = plan(context, PlanOptions(check=True))
    assert result.data["pending"] is True
    assert [(remark.code, remark.hint) for remark in result.warnings] == [("target-damaged", "run `imprint setup`")]


def _cached(place: Place, text: str) -> bool:
    return any(text in path.read_text(errors="replace") for path in place.home.cache.rglob("library.so"))


def test_a_deferred_deletion_is_recorded_and_frees_the_cache_later(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("imprint.runtime.managed.generations.KEEP_BELOW", 0)
    place.setup("gpu")
    old = place.prefix
    hold = "import mmap, sys; f = open(sys.argv[1]); m = mmap.mmap(f.fileno(), 0, prot=1); print(flush=True); input()"
    argv = [sys.executable, "-c", hold, str(next(old.rglob("library.so")))]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        result = place.setup("cpu")
        assert [left["pid"] for left in result.data["deferred"]] == [process.pid]
        recorded = json.loads(deferred.path_of(place.home).read_bytes())
        assert [folder["path"] for folder in recorded["folders"]] == [str(old)]
        assert any("in use by process" in event.message for event in place.events)
        assert _cached(place, "onnxruntime-gpu")
        process.communicate(b"\n")
    place.setup("cpu")
    assert not old.exists()
    assert not _cached(place, "onnxruntime-gpu")
    assert not deferred.path_of(place.home).exists()


def test_a_run_killed_on_the_way_back_leaves_its_rest_to_the_next(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The CPU build was kept and is only pointed to, so nothing is fetched that would leave a trace."""
    place.setup("cpu")
    place.setup("gpu")
    gpu = place.prefix

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("imprint.runtime.prune.prune", killed)
        with pytest.raises(InterruptedByUserError):
            place.setup("cpu")
    assert place.runs() == CPU_BUILD
    assert gpu.exists()
    monkeypatch.setattr("imprint.runtime.managed.generations.KEEP_BELOW", 0)
    place.setup("cpu")
    assert not gpu.exists()
    assert not _cached(place, "onnxruntime-gpu")


def test_what_a_failed_run_fetched_goes_with_the_next(place: Place, tmp_path: Path) -> None:
    """The GPU set is in the cache when its run fails; nothing but a note remembers it."""
    place.setup("cpu")
    other = make_twins(tmp_path / "other")
    path = other.lock_path("base.txt")
    path.write_text(path.read_text().replace("sha256:", "sha256:0"))
    place.twins = other
    with pytest.raises((IntegrityError, NetworkError, ImprintError)):
        place.setup("gpu")
    place.twins = make_twins(tmp_path / "twins again")
    assert "onnxruntime-gpu" in deferred.read(place.home).names
    place.setup("cpu")
    assert not _cached(place, "onnxruntime-gpu")
    assert not deferred.path_of(place.home).exists()


def test_prune_alone_frees_what_no_target_uses(place: Place) -> None:
    place.setup("gpu")
    pointer = read_pointer(place.home)
    assert pointer is not None
    place.home.current.unlink()
    place.setup("cpu")
    assert len(list(place.home.runtimes.iterdir())) == 1
    (place.home.runtimes / "20200101T000000Z-cpu-1.0-abcd").mkdir()
    (place.home.models / ".staging-x").mkdir(parents=True)
    result = prune(place.context)
    assert result.ok
    assert isinstance(result.data["freed_bytes"], int)
    assert not _cached(place, "onnxruntime-gpu")
    assert not list(place.home.models.glob(".staging-*"))
    assert len(list(place.home.runtimes.iterdir())) == 1
    assert prune(place.context).data["removed"] == []
    assert place.setup("cpu").data["changes"] == []


def test_files_that_a_killed_run_tried_links_with_go_with_the_next(place: Place) -> None:
    place.setup("cpu")
    left = [folder / ".link-x1y2z3" for folder in (place.home.cache, place.home.runtimes)]
    for path in left:
        path.touch()
    place.setup("cpu")
    assert not any(path.exists() for path in left)


def test_prune_removes_tool_environments_of_other_locks(tmp_path: Path) -> None:
    """Those of other launchers go, the one that runs and what is named otherwise stay; from elsewhere, none goes."""
    home = Home(tmp_path)
    old, own = f"env-{'a' * 64}", f"env-{'b' * 64}"
    for name in (old, own, "env-mine", "mine"):
        (home.tool / name).mkdir(parents=True)
    assert remove_tools(home, tmp_path / "elsewhere") == ()
    assert remove_tools(home, home.tool / own) == (old,)
    assert sorted(folder.name for folder in home.tool.iterdir()) == [own, "env-mine", "mine"]


def test_steps_are_told_once_and_a_second_run_is_quiet(place: Place) -> None:
    place.setup("gpu")
    done = [(event.step, event.message) for event in place.events if event.event == "done"]
    assert [step for step, _ in done][:2] == ["survey", "plan"]
    assert {"install", "check", "switch"} <= {step for step, _ in done}
    assert "NVIDIA L4" in dict(done)["survey"]
    place.events.clear()
    place.setup("gpu")
    assert place.events == []


def test_without_hard_links_twice_the_space_is_asked_for(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(space, "can_link", lambda *_: False)
    place.setup("cpu")
    assert [event.message for event in place.events if event.event == "warning"] == [
        "the runtime cannot hard-link files from the cache: they are copied"
    ]
    monkeypatch.setattr(space, "free_at", lambda _: 1)
    with pytest.raises(ImprintError) as caught:
        place.setup("gpu")
    assert caught.value.code == "no-space"
    assert place.runs() == CPU_BUILD


def test_a_newer_record_of_an_environment_keeps_nobody_from_pruning(place: Place) -> None:
    """What it names is not known, so the cache keeps everything until it is."""
    place.setup()
    record = place.home.data / "inplace" / "somebodys" / "receipt.json"
    record.parent.mkdir(parents=True)
    record.write_text('{"schema": 99, "prefix": "/somebodys"}')
    before = deferred.read(place.home).names
    assert place.setup(repair=True).errors == ()
    assert record.read_text() == '{"schema": 99, "prefix": "/somebodys"}'
    assert deferred.read(place.home).names >= before
