"""Each check is a judgement over facts: the right code, status and fix, and no check stops another."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from imprint.doctor import checks, report
from imprint.doctor.facts import Aside, Damage, Disk, Facts, Interpreter, Runtimes
from imprint.doctor.findings import CODES, STATUSES, Finding
from imprint.errors import ImprintError, InvalidValueError, StateError, StateNewerError
from imprint.planning.model import Device, Installed, Plan

PLAN = Plan("cpu", "cpu.txt", "1.31.1", None, "device-cpu", "the configuration asks for the CPU")
GPU_PLAN = Plan("cuda13", "cuda13.txt", "1.31.1", Device(0, "GPU-1", "A4000"), "gpu-native", "it runs natively")
HEALTHY = Facts(
    home="/home/x/imprint",
    device_asked="cpu",
    provisioned=True,
    runs_on="cpu",
    interpreter=Interpreter("/home/x/imprint/runtimes/1/bin/python", present=True, version="3.12.4"),
    runtimes=Runtimes(("onnxruntime 1.31.1",), 12),
    plan=PLAN,
    model="all-minilm-l6-v2",
    disk=Disk(50_000_000_000, None, "/home/x"),
)


def judged(facts: Facts, check: str) -> list[tuple[str, str]]:
    chosen = [known for known in checks.CHECKS if known.id == check]
    assert chosen
    return [(finding.code, finding.status) for finding in checks.run(chosen, facts)]


def test_a_healthy_set_up_has_neither_errors_nor_warnings() -> None:
    findings = checks.run(checks.CHECKS, HEALTHY)
    assert {finding.status for finding in findings} == {"ok"}
    assert checks.counts(findings) == {"ok": len(checks.CHECKS), "warning": 0, "error": 0, "skipped": 0}


@pytest.mark.parametrize(
    ("check", "change", "expected"),
    [
        ("state:files", {"home_error": "/x cannot be written"}, [("home-not-writable", "error")]),
        ("state:files", {"asides": (Aside("moved"),)}, [("state-set-aside", "warning")]),
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
        ("target:interpreter", {"provisioned": False}, [("not-installed", "error")]),
        ("target:interpreter", {"interpreter": Interpreter("/p", present=False)}, [("interpreter-gone", "error")]),
        (
            "target:interpreter",
            {"interpreter": Interpreter("/p", present=True, error="exit 127")},
            [("interpreter-gone", "error")],
        ),
        ("target:interpreter", {"interpreter": None}, [("skipped", "skipped")]),
        ("target:integrity", {"provisioned": False}, [("skipped", "skipped")]),
        ("target:integrity", {"runtimes": None}, [("skipped", "skipped")]),
        (
            "target:integrity",
            {
                "runtimes": Runtimes(
                    ("onnxruntime 1",),
                    3,
                    (
                        Damage("onnxruntime", "hollow"),
                        Damage("numpy", "missing", 3, "numpy/x.so"),
                        Damage("numpy", "size"),
                        Damage("numpy", "hash"),
                        Damage("numpy", "no-installer"),
                        Damage("numpy", "no-record"),
                        Damage("numpy", "no-metadata"),
                    ),
                )
            },
            [
                ("runtime-hollow", "error"),
                ("install-incomplete", "error"),
                ("install-incomplete", "error"),
                ("install-incomplete", "error"),
                ("install-incomplete", "error"),
                ("metadata-damaged", "error"),
                ("metadata-damaged", "error"),
            ],
        ),
        (
            "runtime:duplicates",
            {"runtimes": Runtimes(("onnxruntime 1", "onnxruntime-gpu 1"), 2)},
            [("duplicate-runtimes", "error")],
        ),
        ("runtime:duplicates", {"runtimes": Runtimes((), 2)}, [("install-incomplete", "error")]),
        ("runtime:duplicates", {"provisioned": False}, [("skipped", "skipped")]),
        ("runtime:duplicates", {"runtimes": None}, [("skipped", "skipped")]),
        ("runtime:embedding-device", {"plan": None}, [("skipped", "skipped")]),
        ("runtime:embedding-device", {"plan": replace(PLAN, build=None)}, [("no-build", "error")]),
        ("runtime:embedding-device", {"plan": GPU_PLAN, "device_asked": "gpu"}, [("ok-gpu", "ok")]),
        (
            "runtime:embedding-device",
            {"plan": replace(PLAN, pending=True, installed=Installed("cuda13", "1"))},
            [("change-pending", "warning")],
        ),
        (
            "runtime:embedding-device",
            {"plan": replace(PLAN, code="driver-too-old"), "device_asked": "auto"},
            [("gpu-unavailable", "warning")],
        ),
        (
            "runtime:embedding-device",
            {"plan": replace(PLAN, code="no-nvidia-gpu"), "device_asked": "gpu"},
            [("gpu-unavailable", "warning")],
        ),
        (
            "runtime:embedding-device",
            {"plan": replace(PLAN, code="no-nvidia-gpu"), "device_asked": "auto"},
            [("ok-cpu", "ok")],
        ),
        ("model:files", {"failures": {"model": ImprintError("gone")}}, [("model-missing", "error")]),
        (
            "model:files",
            {"failures": {"model": ImprintError("cut", code="model-damaged")}},
            [("model-damaged", "error")],
        ),
        ("model:files", {"model": None}, [("skipped", "skipped")]),
        ("disk:space", {"disk": Disk(1000, None, "/")}, [("disk-low", "warning")]),
        ("disk:space", {"disk": Disk(10**9, 2 * 10**9, "/")}, [("disk-low", "warning")]),
        ("disk:space", {"disk": None}, [("skipped", "skipped")]),
    ],
)
def test_each_state_has_its_code(check: str, change: dict[str, object], expected: list[tuple[str, str]]) -> None:
    assert judged(replace(HEALTHY, **change), check) == expected  # type: ignore[arg-type]


def test_the_plans_reason_is_told_word_for_word() -> None:
    for plan in (PLAN, GPU_PLAN, replace(PLAN, pending=True), replace(PLAN, code="driver-too-old")):
        facts = replace(HEALTHY, plan=plan, device_asked="gpu")
        assert any(plan.reason in finding.seen for finding in checks.run(checks.CHECKS, facts))


def test_a_check_that_crashes_stops_no_other() -> None:
    def broken(_: Facts) -> Iterable[Finding]:
        raise ZeroDivisionError("oh")

    crashing = checks.Check("broken:check", "", broken)
    findings = checks.run([crashing, *checks.CHECKS], HEALTHY)
    assert findings[0].code == "check-crashed"
    assert "ZeroDivisionError" in findings[0].seen
    assert len(findings) == 1 + len(checks.CHECKS)


def test_ids_and_codes_are_well_formed() -> None:
    ids = [check.id for check in checks.CHECKS]
    assert len(set(ids)) == len(ids)
    assert all(code == code.lower() and " " not in code for code in CODES)
    assert set(checks.counts([])) == set(STATUSES)


def test_a_report_hides_what_names_a_person_or_a_machine() -> None:
    finding = Finding(
        "a:b", "ok", "warning", "/home/jane/x on GPU-8d3a5c1e-1111-2222-3333-444455556666", "m", "cpu", "f"
    )
    text = report.compose([("token", "s3cret")], [finding], {"ok": 1}, {"/home/jane": "<user>", "s3cret": "<token>"})
    assert "jane" not in text
    assert "8d3a5c1e" not in text
    assert "s3cret" not in text
    assert "<user>/x" in text
