"""Each check is a judgement over facts: the right code and status, a fix, and no check stops another."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from imprint.causes.catalogue import catalogue
from imprint.diagnosis import checks
from imprint.diagnosis.checking import check
from imprint.diagnosis.checks.device import proof
from imprint.diagnosis.facts import Damage, Disk, Facts, Interpreter, Loaded, OwnImport, Proof, Runtimes
from imprint.diagnosis.findings import Counts, Observation, counts
from imprint.errors import ImprintError, InvalidValueError, StateError, StateNewerError
from imprint.planning import reasons
from imprint.planning.model import Installed, Nvidia
from imprint.state.findings import Finding as StateFinding
from support.recorded import BASES, CPU_PLAN, ENVIRONMENT, GPU_PLAN, MANAGED, MANAGED_GPU, changed

CODES = {code: cause for code, cause in catalogue().causes.items() if cause.section not in {None, "errors"}}
CASES = Path(__file__).parent / "cases"
TOLD_ELSEWHERE = {"check-crashed", "packages-missing", "startup-file-interferes"}
"""Codes that a test of their own builds, besides those of the cases."""


def judged(facts: Facts, name: str) -> list[tuple[str, str]]:
    chosen = [known for known in checks.CHECKS if known.id == name]
    assert chosen
    return [(finding.code, finding.status) for finding in checks.run(chosen, facts)]


NO_GOMP = "libgomp.so.1: cannot open shared object file: No such file or directory"

State = tuple[str, dict[str, object], list[tuple[str, str]]]

BLOCKED: list[State] = [
    ("target:interpreter", {"interpreter": Interpreter("/v/bin/python", present=True, code=code)}, [(code, "error")])
    for code in ("file-denied", "folder-denied", "noexec-disk", "process-limit")
]
OUTSIDE: list[State] = [
    ("runtime:loads", {"loaded": Loaded(error=error, has_session=False)}, [(code, "error")])
    for error, code in (
        (f"ImportError: {NO_GOMP}", "system-library-missing"),
        ("ImportError: /usr/lib/libstdc++.so.6: version `GLIBCXX_3.4.30' not found (x)", "system-library-old"),
        ("ModuleNotFoundError: No module named '_ctypes'", "python-module-missing"),
        ("ImportError: /v/x.so: failed to map segment from shared object", "noexec-disk"),
        ("ImportError: /v/x.so: cannot enable executable stack as shared object requires: x", "exec-stack-refused"),
        ("RuntimeError: can't start new thread", "process-limit"),
        ("ImportError: x", "runtime-import-failed"),
    )
]
STATES: list[State] = [
    *BLOCKED,
    *OUTSIDE,
    ("state:files", {"home_error": "/x cannot be written"}, [("home-not-writable", "warning")]),
    (
        "state:files",
        {"asides": (StateFinding(Path("x"), "state-damaged", "moved", None),)},
        [("state-damaged", "warning")],
    ),
    ("state:files", {"asides": (StateFinding(Path("x"), "not-ours", "not ours", None),)}, [("not-ours", "warning")]),
    ("state:files", {"home_error": "/x", "provisioned": False}, [("home-not-writable", "error")]),
    ("state:files", {"failures": {"receipt": StateNewerError("newer")}}, [("state-newer", "error")]),
    ("state:files", {"failures": {"interrupted": StateError("no")}}, [("state-unreadable", "error")]),
    ("config:file", {"exposed": ("server.token",)}, [("secret-exposed", "warning")]),
    (
        "model:files",
        {"failures": {"model": ImprintError("x", code="model-unreadable")}},
        [("model-unreadable", "error")],
    ),
    ("target:interpreter", {"refused": ImprintError("x", code="unsafe-home")}, [("unsafe-home", "error")]),
    (
        "target:interpreter",
        {"refused": ImprintError("x", code="folder-denied")},
        [("folder-denied", "error")],
    ),
    ("state:files", {"failures": {"target": StateNewerError("newer")}}, [("state-newer", "error")]),
    ("state:files", {"failures": {"verdicts": StateError("no")}}, [("state-unreadable", "error")]),
    ("config:file", {"failures": {"config": StateError("bad")}}, [("config-unreadable", "error")]),
    ("config:file", {"failures": {"config": InvalidValueError("x is bad")}}, [("config-invalid", "error")]),
    (
        "config:file",
        {"failures": {"config": InvalidValueError("IMPRINT_DEVICE: bad")}},
        [("environment-invalid", "error")],
    ),
    ("environment:names", {"unknown_variables": (("IMPRINT_X", None),)}, [("unknown-variable", "warning")]),
    ("system:access", {"proc": False}, [("no-proc", "warning")]),
    (
        "system:access",
        {"failures": {"nodes": ImprintError("no threads", code="process-limit")}},
        [("process-limit", "error")],
    ),
    ("environment:python", {"own_import": None}, [("skipped", "skipped")]),
    ("environment:python", {"own_import": OwnImport(printed="hello\n")}, [("python-path-interferes", "warning")]),
    ("environment:python", {"own_import": OwnImport(files=("/v/sitecustomize.py",))}, [("ok", "ok")]),
    ("environment:python", {"own_import": OwnImport(error="ImportError: x")}, [("python-path-interferes", "warning")]),
    (
        "environment:python",
        {"own_import": OwnImport(error=f"ImportError: {NO_GOMP}")},
        [("system-library-missing", "warning")],
    ),
    ("gpu:waiting", {"waiting": GPU_PLAN}, [("gpu-waits", "ok")]),
    ("gpu:waiting", {"waiting": CPU_PLAN}, [("ok", "ok")]),
    ("target:embedding", {"runtimes": None}, [("skipped", "skipped")]),
    (
        "target:embedding",
        {"venv": "/v", "runtimes": replace(ENVIRONMENT.target.runtimes, versions={})},  # type: ignore[type-var]
        [("packages-missing", "error")],
    ),
    (
        "runtime:embedding-device",
        {"venv": "/v", "runtimes": replace(ENVIRONMENT.target.runtimes, versions={})},  # type: ignore[type-var]
        [("embedding-failed", "error")],
    ),
    ("target:leftovers", {"runtimes": None}, [("skipped", "skipped")]),
    (
        "target:leftovers",
        {"runtimes": Runtimes(leftovers=(("/x/~nnxruntime", 46_000_000),))},
        [("leftovers", "warning")],
    ),
    ("target:vendor-build", {"runtimes": None}, [("skipped", "skipped")]),
    (
        "target:vendor-build",
        {"venv": "/v", "runtimes": Runtimes(("onnxruntime-openvino 1.24.1",))},
        [("vendor-build-replaced", "ok")],
    ),
    (
        "target:interpreter",
        {
            "provisioned": None,
            "interpreter": None,
            "failures": {"target": ImprintError("x", code="folder-denied")},
        },
        [("folder-denied", "error")],
    ),
    ("runtime:loads", {"loaded": Loaded(cpu_error="Error: can't start new thread")}, [("process-limit", "error")]),
    (
        "runtime:loads",
        {"loaded": Loaded(ended="not started: [Errno 11] Resource temporarily unavailable", stage="import")},
        [("process-limit", "error")],
    ),
    (
        "runtime:loads",
        {
            "loaded": Loaded(error="ImportError: /opt/x/libgomp.so.1: file too short", has_session=False),
            "environ": {"LD_LIBRARY_PATH": "/lib:/opt/x"},
        },
        [("loader-path-interferes", "error")],
    ),
    ("target:interpreter", {"provisioned": False}, [("not-installed", "error")]),
    ("target:interpreter", {"interpreter": None}, [("skipped", "skipped")]),
    ("target:integrity", {"provisioned": False, "runtimes": None}, [("skipped", "skipped")]),
    ("target:integrity", {"runtimes": None}, [("skipped", "skipped")]),
    ("runtime:duplicates", {"runtimes": None}, [("skipped", "skipped")]),
    ("runtime:loads", {"loaded": None}, [("skipped", "skipped")]),
    ("runtime:libraries", {"loaded": None}, [("skipped", "skipped")]),
    ("runtime:session", {"loaded": None}, [("skipped", "skipped")]),
    ("machine:processor", {"machine": None}, [("skipped", "skipped")]),
    ("gpu:driver", {"machine": None}, [("skipped", "skipped")]),
    ("gpu:memory", {"environ": {"IMPRINT_VRAM_GB": "lots"}}, [("environment-invalid", "warning")]),
    ("gpu:nodes", {"nodes": None}, [("skipped", "skipped")]),
    ("runtime:embedding-device", {"plan": None}, [("skipped", "skipped")]),
    ("runtime:embedding-device", {"plan": replace(CPU_PLAN, build=None)}, [("no-build", "error")]),
    (
        "runtime:embedding-device",
        {"plan": replace(CPU_PLAN, pending=True, installed=Installed("cuda13", "1"))},
        [("change-pending", "warning")],
    ),
    (
        "runtime:embedding-device",
        {"plan": replace(CPU_PLAN, code="no-nvidia-gpu"), "device_asked": "gpu"},
        [("gpu-unavailable", "warning")],
    ),
    (
        "runtime:embedding-device",
        {"plan": replace(CPU_PLAN, code="no-nvidia-gpu"), "device_asked": "auto"},
        [("ok-cpu", "ok")],
    ),
    ("model:files", {"failures": {"model": ImprintError("gone")}}, [("model-missing", "error")]),
    ("model:files", {"failures": {"model": ImprintError("cut", code="model-damaged")}}, [("model-damaged", "error")]),
    (
        "embedding:run",
        {"embedded": None, "failures": {"embedded": ImprintError("too new", code="model-too-new")}},
        [("model-too-new", "error")],
    ),
    ("model:files", {"model": None}, [("skipped", "skipped")]),
    ("disk:space", {"disk": Disk(1000, None, "/")}, [("disk-low", "warning")]),
    ("disk:space", {"disk": Disk(10**9, 2 * 10**9, "/")}, [("disk-low", "warning")]),
    ("disk:space", {"disk": None}, [("skipped", "skipped")]),
    ("disk:unused", {"unused": None}, [("skipped", "skipped")]),
    ("disk:links", {"copies": None}, [("skipped", "skipped")]),
    ("embedding:run", {"embedded": None}, [("skipped", "skipped")]),
    (
        "embedding:run",
        {"embedded": None, "failures": {"embedded": ImprintError("late", code="timed-out")}},
        [("embedding-failed", "warning")],
    ),
]


@pytest.mark.parametrize(("check", "change", "expected"), STATES)
def test_each_state_has_its_code(check: str, change: dict[str, object], expected: list[tuple[str, str]]) -> None:
    assert judged(changed(MANAGED, **change), check) == expected


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize(
    "unknown", ["interpreter", "runtimes", "loaded", "machine", "nodes", "plan", "proof", "disk", "unused", "copies"]
)
def test_an_unknown_fact_crashes_no_check(base: str, unknown: str) -> None:
    findings = checks.run(checks.CHECKS, changed(BASES[base], **{unknown: None}))
    assert "check-crashed" not in {finding.code for finding in findings}
    assert {check.id for check in checks.CHECKS} == {finding.id for finding in findings}


def test_every_code_is_told_by_some_state() -> None:
    """A code that no state brings about would be one that nobody has seen."""
    told = {code for _, _, expected in STATES for code, _ in expected}
    told |= {json.loads(path.read_text("utf-8"))["expect"]["finding"] for path in CASES.glob("*.json")}
    assert set(CODES) - told - TOLD_ELSEWHERE - {"ok"} == set()


def test_every_finding_that_is_no_good_news_has_a_fix() -> None:
    assert [code for code, found in CODES.items() if not found.remedies] == ["ok", "ok-gpu", "skipped"]


def test_every_code_of_a_plan_is_explained() -> None:
    causes = catalogue().causes
    assert {*reasons.CODES, *reasons.NOTE_CODES} == {code for code, cause in causes.items() if cause.group}


def test_the_plans_reason_is_told_word_for_word() -> None:
    for plan in (CPU_PLAN, GPU_PLAN, replace(CPU_PLAN, pending=True), replace(CPU_PLAN, code="driver-too-old")):
        for base in (MANAGED, MANAGED_GPU, ENVIRONMENT, changed(MANAGED, loaded=None, runtimes=None)):
            facts = changed(base, plan=plan, device_asked="gpu")
            findings = checks.run(checks.CHECKS, facts)
            assert [finding for finding in findings if finding.id.endswith("-device") and plan.reason in finding.seen]


def test_a_gpu_build_that_setup_would_keep_is_told_how_to_leave() -> None:
    """A GPU may come back, so a plain `setup` changes nothing there."""
    machine = replace(MANAGED_GPU.system.machine, nvidia=Nvidia("none"))  # type: ignore[type-var]
    loaded = replace(MANAGED_GPU.runtime.loaded, session=("CPUExecutionProvider",))  # type: ignore[type-var]
    plan = replace(GPU_PLAN, device=None, code="no-nvidia-gpu", provisional=True)
    facts = changed(MANAGED_GPU, machine=machine, loaded=loaded, plan=plan, device_asked="auto")
    chosen = [known for known in checks.CHECKS if known.id == "runtime:session"]
    for kept, fix in ((plan, "`imprint setup --device cpu`"), (replace(CPU_PLAN, pending=True), "`imprint setup`")):
        (found,) = checks.run(chosen, changed(facts, plan=kept))
        assert found.code == "gpu-build-without-gpu"
        assert found.fix is not None
        assert fix in found.fix


def test_what_is_unreadable_or_concerns_others_is_told_as_such() -> None:
    """Somebody's package that no installer of ours wrote is no reason to warn; one that is damaged is no error."""
    found = replace(ENVIRONMENT.target.runtimes, damages=(Damage("theirs", "no-installer"),))  # type: ignore[type-var]
    assert judged(changed(ENVIRONMENT, runtimes=found), "target:integrity") == [("ok", "ok")]
    assert judged(changed(MANAGED, runtimes=found), "target:integrity") == [("install-incomplete", "error")]


def test_a_check_that_crashes_stops_no_other() -> None:
    @check("broken:check", "what breaks")
    def crashing(_: Facts) -> Observation:
        raise ZeroDivisionError("oh")

    findings = checks.run([crashing, *checks.CHECKS], MANAGED)
    assert findings[0].code == "check-crashed"
    assert "ZeroDivisionError" in findings[0].seen
    assert len(findings) == 1 + len(checks.CHECKS)


def test_ids_and_codes_are_well_formed() -> None:
    ids = [check.id for check in checks.CHECKS]
    assert len(set(ids)) == len(ids)
    assert all(code == code.lower() and " " not in code for code in CODES)
    assert counts([]) == Counts(0, 0, 0, 0)


@pytest.mark.parametrize(
    "error", ["ImportError: /v/x.so: failed to map segment from shared object", f"ImportError: {NO_GOMP}"]
)
def test_a_check_that_failed_for_a_cause_outside_is_not_answered_with_a_repair(error: str) -> None:
    failed = Proof("failed", "2026-12-01T00:00:00Z", "import-failed")
    outside = changed(MANAGED, proof=failed, loaded=Loaded(error=f"ImportError: {error}", has_session=False))
    (told,) = proof(outside)
    assert (told.status, told.fix) == ("skipped", None)
    (other,) = proof(changed(outside, loaded=Loaded(error="ImportError: x", has_session=False)))
    assert "--repair" in str(other.fix)
