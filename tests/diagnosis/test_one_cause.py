"""One cause is told once, by one name and with one remedy that can work there."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from imprint.context import Context
from imprint.diagnosis.checks import CHECKS, run
from imprint.diagnosis.facts import Facts, Library, OwnImport
from imprint.diagnosis.findings import Finding
from imprint.diagnosis.gathering import target as gathering_target
from imprint.diagnosis.standing import seen_of, verdict_of
from imprint.errors import ImprintError
from imprint.operations.doctor import DoctorOptions, diagnose
from imprint.operations.embed import blamed
from imprint.paths import Home
from imprint.planning.model import Installed, Nvidia, Request
from imprint.planning.rule import decide as plan_for
from imprint.probing.interpreter import CHILD
from imprint.probing.once import OnceHost
from imprint.probing.this_machine import RealHost
from imprint.runtime.check.proof import Proof
from imprint.runtime.check.reads import Needs
from imprint.runtime.verdict import STARTUP, TOO_NEW, Seen, decide
from imprint.situation.inputs import advised, load_builds
from imprint.situation.verdict import notices_of_verdict
from imprint.values import replace as replace_value
from imprint.words import AskedDevice, NvidiaStatus
from support.recorded import CPU_MACHINE, CPU_PLAN, ENVIRONMENT, GPU_ENVIRONMENT, MANAGED, changed, facts_from_json


def told(facts: Facts) -> dict[str, Finding]:
    return {found.code: found for found in run(CHECKS, facts) if found.status in {"warning", "error"}}


def failed(detail: str, **seen: Any) -> Seen:  # noqa: ANN401 - fields of Seen
    """Return an environment whose check failed with this."""
    proof = Proof("failed", "import-failed", detail)
    return replace_value(seen_of(ENVIRONMENT), proof=proof, changed=(), mendable=False, **seen)


# --- the model and the runtime ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("needs", "word"), [(Needs(11, 17), "IR version 11"), (Needs(8, 24), "opset 24"), (Needs(10, 21), None)]
)
def test_a_model_that_the_runtime_cannot_read_is_known_before_it_is_tried(needs: Needs, word: str | None) -> None:
    """By what the check saw the runtime read: nothing of it is in a table, or in /proc."""
    seen = replace_value(seen_of(ENVIRONMENT), needs=needs, proof=Proof("ok", reads=Needs(10, 21)), version="1.20.1")
    verdict = decide(seen)
    assert (verdict.runs_on, verdict.embeds) == ("cpu", word is None)
    if word is not None:
        (remark,) = notices_of_verdict(verdict)
        assert (remark.code, word in remark.message) == (TOO_NEW, True)
        assert remark.hint == "run `imprint setup --venv /srv/app/.venv`"
        found = told(changed(ENVIRONMENT, seen=seen))
        assert found[TOO_NEW].seen in verdict.line


def test_where_another_runtime_is_not_to_be_had_another_model_is_advised() -> None:
    seen = replace_value(seen_of(MANAGED), needs=Needs(40, 17), proof=Proof("ok", reads=Needs(13, 25)))
    problem = decide(seen).problem
    assert problem is not None
    assert (problem.fix, problem.advice) == (
        None,
        "use another model: `imprint model list` shows the models that run here",
    )


# --- outside of the environment --------------------------------------------------------------------------------------


def test_a_bad_loader_path_is_not_mended_by_setup(tmp_path: Path) -> None:
    (tmp_path / "libstdc++.so.6").write_text("not a library", "utf-8")
    environ = {"LD_LIBRARY_PATH": str(tmp_path)}
    verdict = decide(
        replace_value(failed("ImportError: libstdc++.so.6: file too short", environ=environ), mendable=True)
    )
    assert verdict.problem is not None
    assert verdict.problem.code == "loader-path-interferes"
    assert "setup" not in (verdict.problem.hint or "")
    assert "LD_LIBRARY_PATH" in (verdict.problem.hint or "")
    assert not verdict.pending


def test_a_file_that_runs_at_every_start_is_named_by_all() -> None:
    verdict = decide(failed("SystemExit: no", startup=("/v/sitecustomize.py",)))
    assert verdict.problem is not None
    assert (verdict.problem.code, verdict.problem.hint) == (STARTUP, "remove or correct the named file")
    assert "/v/sitecustomize.py" in verdict.line
    error = blamed(verdict, ImprintError("the embedding worker ended early", code="worker-failed"))
    assert "/v/sitecustomize.py" in error.message
    broken = replace(ENVIRONMENT.runtime.loaded, error="SystemExit: no", has_session=False)  # type: ignore[type-var]
    found = told(changed(ENVIRONMENT, seen=verdict.seen, loaded=broken))
    assert STARTUP in found
    assert "--repair" not in (found[STARTUP].fix or "")


def test_another_onnx_runtime_that_the_path_brings_is_named() -> None:
    own = OwnImport(file="/elsewhere/onnxruntime/__init__.py")
    (found,) = told(changed(ENVIRONMENT, own_import=own, environ={"PYTHONPATH": "/elsewhere"})).values()
    assert found.code == "python-path-interferes"
    assert "/elsewhere/onnxruntime/__init__.py" in found.seen
    assert "PYTHONPATH is `/elsewhere`" in found.seen
    assert "PYTHONPATH" in (found.fix or "")


def test_each_missing_library_is_named_once() -> None:
    names = ("libcublasLt.so.12", "libcudnn.so.9", "libcublas.so.12")
    absent = tuple(Library(name, "missing") for name in names)
    loaded, runtimes = GPU_ENVIRONMENT.runtime.loaded, GPU_ENVIRONMENT.target.runtimes
    assert loaded is not None
    assert runtimes is not None
    loaded = replace(loaded, missing=names[0], libraries=absent, session=None)
    bare = replace(runtimes, versions={})
    found = told(changed(GPU_ENVIRONMENT, device_asked="gpu", loaded=loaded, runtimes=bare))
    seen = next(one.seen for one in found.values() if names[0] in one.seen)
    assert [seen.count(name) for name in names] == [1, 1, 1]


def test_output_without_a_known_file_is_answered_with_how_to_find_it() -> None:
    (found,) = told(changed(ENVIRONMENT, own_import=OwnImport(printed="hello"))).values()
    assert "named file" not in (found.fix or "")
    assert "`.pth`" in (found.fix or "")


# --- one remedy, and one that works ----------------------------------------------------------------------------------


def test_a_missing_dependency_has_the_remedy_that_status_names() -> None:
    loaded = replace(ENVIRONMENT.runtime.loaded, error="ImportError: import numpy failed", has_session=False)  # type: ignore[type-var]
    seen = replace_value(failed("ModuleNotFoundError: No module named 'numpy'"), mendable=True)
    facts = changed(ENVIRONMENT, loaded=loaded, seen=seen)
    (found,) = told(facts).values()
    assert (found.code, found.fix) == ("dependency-missing", "`imprint setup --venv /srv/app/.venv`")
    verdict = verdict_of(facts)
    assert verdict is not None
    assert verdict.problem is not None
    assert f"`{verdict.problem.fix}`" == found.fix


NO_GPU = Nvidia("none", gpus=())


@pytest.mark.parametrize(
    ("device", "container", "hinted"), [("gpu", True, True), ("gpu", False, False), ("auto", True, False)]
)
def test_a_container_without_its_gpu_is_told_how_to_get_it(
    device: AskedDevice, *, container: bool, hinted: bool
) -> None:
    machine = replace_value(
        CPU_MACHINE, platform=replace_value(CPU_MACHINE.platform, container=container), nvidia=NO_GPU
    )
    request, builds = Request(device), load_builds(digests=False)
    plan = plan_for(request, machine, builds, (), Installed("cpu", "1.31.1"))
    plan = advised(plan, request, machine, builds, environ={})
    assert plan.code == "no-nvidia-gpu"
    assert ("--gpus all" in (plan.hint or "")) is hinted
    found = told(changed(MANAGED, machine=machine, device_asked=device, device_set=True, plan=plan))
    assert ("container-no-gpu-runtime" in found) is hinted
    assert ("gpu-unavailable" in found) is (device == "gpu" and not hinted)


@pytest.mark.parametrize(
    "case", ["d17-forward-compat", "d19-wsl", "d20-container", "d22-reboot", "s19-driver-missing", "s26-no-device"]
)
def test_beside_a_cause_that_can_be_removed_nothing_is_said_to_be_unavailable(case: str) -> None:
    assert "gpu-unavailable" not in told(recorded(case))


def recorded(case: str) -> Facts:
    path = Path(__file__).parent / "cases" / f"{case}.json"
    return facts_from_json(json.loads(path.read_text("utf-8"))["facts"])


def test_what_cannot_be_changed_is_not_to_be_changed() -> None:
    found = told(recorded("d39-read-only"))
    assert set(found) == {"install-tree-read-only"}


def test_an_installed_package_is_not_to_be_installed() -> None:
    found = told(recorded("d34-shared-files"))
    assert "runtime-libs-missing" not in found
    assert "--repair" in (found["shared-files-removed"].fix or "")


def test_all_packages_that_are_missing_are_named_where_nobody_could_look_for_each() -> None:
    fix = told(recorded("d07-windows-no-libraries"))["runtime-libs-missing"].fix or ""
    for package in ("nvidia-cublas", "nvidia-cuda-runtime", "nvidia-curand"):
        assert package in fix


@pytest.mark.parametrize("status", ["driver-mismatch", "compat-unsupported", "uvm-unavailable", "timeout", "error"])
def test_a_driver_of_which_nothing_is_known_is_not_called_none(status: NvidiaStatus) -> None:
    machine = replace_value(CPU_MACHINE, nvidia=Nvidia(status, gpus=()))
    for found in run(CHECKS, changed(GPU_ENVIRONMENT, machine=machine, device_asked="gpu")):
        assert "None" not in found.seen


# --- time ------------------------------------------------------------------------------------------------------------


def test_an_interpreter_is_asked_once_and_in_a_time_of_its_own() -> None:
    class Counting(RealHost):
        asked = 0

        def run(self, argv: Any, *, deadline: float, environ: Mapping[str, str] | None = None, limit: int = 9) -> Any:  # noqa: ANN401
            self.asked += 1
            return super().run(argv, deadline=deadline, environ=environ, limit=limit)

    host = Counting()
    once = OnceHost(host, 0.2)
    argv = ["/bin/sleep", "20", str(CHILD)]
    started = time.monotonic()
    assert [once.run(argv, deadline=20).stdout for _ in range(3)] == ["", "", ""]
    assert time.monotonic() - started < 5
    assert host.asked == 1
    assert once.run(["/bin/true"], deadline=5).returncode == once.run(["/bin/true"], deadline=5).returncode == 0
    assert host.asked == 3


def test_an_interpreter_that_hangs_costs_its_time_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathering_target, "START_SECONDS", 1.0)
    prefix = tmp_path / "env"
    (prefix / "bin").mkdir(parents=True)
    (prefix / "pyvenv.cfg").write_text("home = /usr/bin\n", "utf-8")
    python = prefix / "bin" / "python"
    python.write_text("#!/bin/sh\nexec sleep 300\n", "utf-8")
    python.chmod(0o755)
    started = time.monotonic()
    found = diagnose(Context(Home(tmp_path / "home"), {"PATH": "/usr/bin:/bin"}), DoctorOptions(venv=prefix))
    assert time.monotonic() - started < 8
    assert found.data["runs_on"] == "none"
    (one,) = (one for one in found.data["findings"] if one["id"] == "target:interpreter")
    assert (one["code"], "within 1 s" in one["seen"]) == ("interpreter-unusable", True)


# --- what setup would do ---------------------------------------------------------------------------------------------


def test_where_there_is_no_build_nothing_is_pending() -> None:
    none = replace_value(CPU_PLAN, build=None, lock=None, version=None, code="python-no-wheel", reason="no wheel")
    verdict = decide(replace_value(seen_of(MANAGED), plan=none))
    assert (verdict.pending, verdict.embeds) == (False, True)
    assert verdict.line.startswith("embeddings run on the CPU")
