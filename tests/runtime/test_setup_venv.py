"""`--venv` end to end: what it says before, does, proves and records; real uv and environments, tiny wheels."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from contracts.shapes import SHAPES, problems
from imprint.context import Context
from imprint.errors import ImprintError
from imprint.operations.check import check
from imprint.operations.doctor import DoctorOptions, diagnose
from imprint.operations.plan import PlanOptions, plan
from imprint.operations.prune import prune
from imprint.operations.setup import Seams, SetupOptions, setup
from imprint.operations.status import status
from imprint.planning.model import Device, Machine
from imprint.results import Result
from imprint.runtime.check.run import CPU, CUDA, CheckResult
from imprint.runtime.distributions import inventory
from imprint.runtime.events import Event
from imprint.runtime.foreign.journal import store_of
from imprint.runtime.managed.generations import Check
from imprint.state import verdicts
from support.foreign import BASE, CUDA13, NVIDIA, Foreign, Wheels, make_wheels
from support.place import MACHINE, no_model
from support.twins import lock


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Wheels:
    made = make_wheels(tmp_path_factory.mktemp("foreign wheels"))
    made.add("tokenizers", "0.23.3", {"tokenizers/__init__.py": ""}, ["huggingface-hub<3", "numpy"])
    lock(made.lock("base"), {"tokenizers==0.23.3": made.made["tokenizers==0.23.3"]})
    return made


@pytest.fixture
def foreign(tmp_path: Path, wheels: Wheels) -> Foreign:
    made = Foreign(tmp_path, wheels)
    made.create(*BASE, "onnxruntime==1.26.0")
    return made


def passing(_python: Path, device: Device | None, _environ: Mapping[str, str]) -> CheckResult:
    """Stand for a check that is passed."""
    return CheckResult("ok", None, CPU if device is None else CUDA, device)


def failing(_python: Path, device: Device | None, environ: Mapping[str, str]) -> CheckResult:
    """Stand for a GPU that does not compute."""
    return passing(_python, None, environ) if device is None else CheckResult("failed", "conv-failed", CUDA, device)


def context_of(foreign: Foreign, device: str = "cpu") -> Context:
    """Return the surroundings of one run."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("UV_", "PIP_", "IMPRINT_"))}
    return Context(foreign.home, environ, {"model.device": device})


def set_up(
    foreign: Foreign,
    device: str = "cpu",
    machine: Machine = MACHINE,
    prove: Check = passing,
    **options: Any,  # noqa: ANN401 - fields of SetupOptions
) -> Result[Any]:
    """Run `setup --venv` offline from the folder of wheels."""
    defaults: dict[str, Any] = {"venv": foreign.prefix, "offline": True, "find_links": foreign.wheels.folder}
    seams = Seams(
        machine=machine,
        check=prove,
        lock_path=lambda name: foreign.wheels.lock(name.removesuffix(".txt")),
        install_model=no_model,
    )
    asked = SetupOptions(**(defaults | {"wait_seconds": 0} | options))
    return setup(context_of(foreign, device), asked, foreign.events.append, seams=seams)


def names(foreign: Foreign) -> set[str]:
    """Return what the environment holds."""
    return set(inventory.inspect(foreign.prefix).versions)


def test_a_dry_run_lists_every_change_and_who_requires_it(foreign: Foreign) -> None:
    before = foreign.tree()
    result = set_up(foreign, "gpu", dry_run=True)
    assert problems(result.data, SHAPES["setup"]) == []
    details = result.data["environment"]
    assert result.data["plan"]["build"] == "cuda13"
    assert {change["name"] for change in result.data["changes"]} == {
        "onnxruntime",
        "onnxruntime-gpu",
        "tokenizers",
        *CUDA13,
    }
    assert all(change["why"] for change in details["changes"])
    (requirer,) = details["requirers"]
    assert (requirer["name"], requirer["gets"]) == ("asks-for-runtime", "onnxruntime-gpu 1.31.1")
    assert details["download_bytes"] > 10**9
    assert details["removed_bytes"] > 0
    assert foreign.tree() == before
    assert not list(foreign.home.root.iterdir())


def test_a_plan_names_a_version_that_is_none_of_our_builds(foreign: Foreign) -> None:
    info = "package_name = 'onnxruntime'\n__version__ = '1.22.7'\n"
    files = {"onnxruntime/__init__.py": "", "onnxruntime/capi/build_and_package_info.py": info}
    foreign.wheels.add("onnxruntime", "1.22.7", files, [])
    foreign.uninstall("onnxruntime")
    foreign.install("onnxruntime==1.22.7")
    result = plan(Context(foreign.home, context_of(foreign).environ, {}), PlanOptions(venv=foreign.prefix))
    assert result.data["installed"] == {"build": None, "version": "1.22.7"}
    assert result.data["pending"]
    assert problems(result.data, SHAPES["plan"]) == []


def test_a_vendors_build_is_named_before_it_is_replaced(foreign: Foreign) -> None:
    """Its provider goes with it, which nobody finds out from a version number."""
    files = {
        "onnxruntime/__init__.py": "",
        "onnxruntime/capi/build_and_package_info.py": "package_name = 'onnxruntime-openvino'\n__version__ = '1.24.1'\n",
    }
    foreign.wheels.add("onnxruntime-openvino", "1.24.1", files, ["numpy"])
    foreign.uninstall("onnxruntime")
    foreign.install("onnxruntime-openvino==1.24.1")
    for dry_run in (True, False):
        result = set_up(foreign, dry_run=dry_run)
        (warned,) = [one for one in result.warnings if one.code == "vendor-build-replaced"]
        assert "onnxruntime-openvino with its OpenVINOExecutionProvider" in warned.message
        assert ("would replace" in warned.message) == dry_run
        assert ("without `--venv`" in (warned.hint or "")) == dry_run
    assert warned.hint == "to have it back, uninstall ONNX Runtime there and install onnxruntime-openvino again"


def test_the_dry_run_the_run_and_its_progress_name_the_same_sizes(foreign: Foreign) -> None:
    dry = set_up(foreign, dry_run=True).data
    foreign.events.clear()
    done = set_up(foreign).data
    assert dry["environment"]["download_bytes"] == done["environment"]["download_bytes"] == dry["download"]["total"]
    totals = {event.total for event in foreign.events if event.step == "download"}
    assert totals - {None} <= {dry["download"]["on_disk"]}


def test_a_failed_retry_of_a_gpu_lists_only_what_is_different_now(foreign: Foreign) -> None:
    set_up(foreign, "gpu", prove=failing)
    result = set_up(foreign, "gpu", prove=failing, retry_gpu=True)
    assert result.data["status"]["runs_on"] == "cpu"
    assert result.data["changes"] == []
    repaired = set_up(foreign, repair=True)
    assert {"name": "onnxruntime", "from": "1.31.1", "to": "1.31.1"} in repaired.data["changes"]


def test_to_the_gpu_and_back(foreign: Foreign) -> None:
    owners = foreign.owned("userlib", "asks-for-runtime", *BASE)
    result = set_up(foreign, "gpu")
    assert result.data["status"]["runs_on"] == "gpu"
    assert {change["name"] for change in result.data["changes"]} >= {"onnxruntime", "onnxruntime-gpu"}
    assert problems(result.data, SHAPES["setup"]) == []
    (verdict,) = verdicts.load(foreign.home)
    assert (verdict.build, verdict.result) == ("cuda13", "ok")
    assert not foreign.home.current.exists(), "the managed target is another matter"
    foreign.events.clear()
    again = set_up(foreign, "gpu")
    assert (again.data["changes"], again.data["check"], again.data["environment"]) == ([], None, None)
    assert again.data["status"] == result.data["status"]
    assert foreign.events == []
    back = set_up(foreign)
    assert back.data["status"]["runs_on"] == "cpu"
    assert back.data["status"]["version"] == "1.31.1"
    assert not any(name.startswith("nvidia") for name in names(foreign))
    assert foreign.owned("userlib", "asks-for-runtime", *BASE) == owners
    assert not any("libcublas" in path.name for path in foreign.home.cache.rglob("*")), "the cache has let go of it"


def test_a_failed_check_ends_in_the_cpu_build_and_is_remembered(foreign: Foreign) -> None:
    result = set_up(foreign, "gpu", prove=failing)
    assert result.ok
    assert [warning.code for warning in result.warnings] == ["check-failed", "requirement-left-out"]
    assert (result.data["check"]["outcome"], result.data["check"]["device"]["kind"]) == ("failed", "gpu")
    assert f"imprint setup --venv {shlex.quote(str(foreign.prefix))} --retry-gpu" in (result.warnings[0].hint or "")
    assert result.data["status"]["runs_on"] == "cpu"
    assert "onnxruntime-gpu" not in names(foreign)
    (verdict,) = verdicts.load(foreign.home)
    assert verdict.result == "failed"


def test_what_pip_will_miss_from_now_on_is_said_once(foreign: Foreign) -> None:
    """The lock leaves out a client for a model hub; a `pip check` among its owner's own tests does not."""
    (warning,) = set_up(foreign).warnings
    assert warning.code == "requirement-left-out"
    assert warning.message.startswith("tokenizers requires huggingface-hub,")
    assert set_up(foreign).warnings == ()


def test_a_gpu_that_is_required_and_not_planned_changes_nothing(foreign: Foreign) -> None:
    before = foreign.tree()
    result = set_up(
        foreign, "gpu", replace(MACHINE, nvidia=replace(MACHINE.nvidia, driver="470.1", cuda="11.4")), require_gpu=True
    )
    assert not result.ok
    assert foreign.tree() == before


def test_status_plan_check_and_prune_speak_of_the_environment(foreign: Foreign) -> None:
    context = context_of(foreign)
    told = status(context, foreign.prefix, prove=passing).data
    assert (told["build"], told["version"], told["pending"]) == (None, "1.26.0", True)
    assert f"imprint setup --venv {shlex.quote(str(foreign.prefix))}" in told["line"]
    assert plan(context, PlanOptions(venv=foreign.prefix)).data["pending"] is True
    set_up(foreign)
    told = status(context, foreign.prefix).data
    assert (told["build"], told["runs_on"], told["pending"]) == ("cpu", "cpu", False)
    assert told["since"] is not None
    assert plan(context, PlanOptions(venv=foreign.prefix)).data["pending"] is False
    seen: list[Path] = []

    def prove(python: Path, device: Device | None, environ: Mapping[str, str]) -> CheckResult:
        seen.append(python)
        return passing(python, device, environ)

    assert check(context, foreign.prefix, prove=prove).ok
    assert seen == [foreign.prefix / "bin" / "python"]
    foreign.install(f"nvidia-cublas=={NVIDIA['nvidia-cublas'][0]}")
    result = prune(context, foreign.prefix)
    assert problems(result.data, SHAPES["prune"]) == []
    assert [change["name"] for change in result.data["changes"]] == ["nvidia-cublas"]
    assert "nvidia-cublas" not in names(foreign)
    assert status(context, foreign.prefix).data["pending"] is False, "what was proved is as it was"


def test_two_builds_over_one_folder_are_damage(foreign: Foreign) -> None:
    foreign.install("onnxruntime-gpu==1.31.1")
    told = status(context_of(foreign), foreign.prefix).data
    assert told["runs_on"] == "none"
    assert "in the same folder" in told["line"]
    set_up(foreign)
    assert status(context_of(foreign), foreign.prefix).data["runs_on"] == "cpu"


@pytest.mark.parametrize("what", ["nowhere", "file", "empty"])
def test_what_is_no_environment_is_refused_by_all(foreign: Foreign, tmp_path: Path, what: str) -> None:
    path = tmp_path / what
    if what == "file":
        path.write_text("")
    elif what == "empty":
        path.mkdir()
    context = context_of(foreign)
    calls: tuple[Callable[[], Result[Any]], ...] = (
        lambda: status(context, path),
        lambda: check(context, path),
        lambda: prune(context, path),
        lambda: plan(context, PlanOptions(venv=path)),
        lambda: setup(context, SetupOptions(venv=path), _ignore),
    )
    for call in calls:
        with pytest.raises(ImprintError) as caught:
            call()
        assert caught.value.specific_code == "not-an-environment"
        assert caught.value.hint


def _ignore(_event: Event) -> None:
    pass


def test_rows_that_are_not_its_own_are_said_and_left_alone(foreign: Foreign) -> None:
    record = next(foreign.packages.glob("onnxruntime-1*.dist-info")) / "RECORD"
    (foreign.packages / "own").mkdir()
    content = record.read_text()
    record.unlink()
    record.write_text(f"{content}own,,\n../../../bin,,\n")
    found = [remark for remark in set_up(foreign).warnings if remark.code == "rows-skipped"]
    assert ["`own`" in remark.message and "`../../../bin`" in remark.message for remark in found] == [True]
    assert (foreign.packages / "own").is_dir()


def test_what_to_type_for_a_gpu_names_the_environment(foreign: Foreign) -> None:
    context = replace(context_of(foreign), flags={})
    foreign.setup("cpu")
    hint = status(context, foreign.prefix, prove=passing).data["hint"]
    assert hint.endswith(f"then `imprint setup --venv {shlex.quote(str(foreign.prefix))}`")


def test_a_proof_of_a_newer_imprint_stays_and_doctor_names_it(foreign: Foreign) -> None:
    context = context_of(foreign)
    set_up(foreign)
    kept = store_of(context.home, foreign.prefix).proof
    kept.write_text('{"schema": 99}', "utf-8")
    told = check(context, foreign.prefix, prove=passing)
    assert (told.ok, told.data["recorded"], [one.code for one in told.warnings]) == (True, False, ["not-recorded"])
    assert kept.read_text("utf-8") == '{"schema": 99}'
    found = diagnose(context, DoctorOptions(("state:files",), venv=foreign.prefix), prove=passing)
    assert [one["code"] for one in found.data["findings"]] == ["state-newer"]
