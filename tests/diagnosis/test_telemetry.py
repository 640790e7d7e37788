"""Doctor says when an environment's ONNX Runtime sends for the user's own programs, and never calls that a fault."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from imprint.causes.circumstances import here
from imprint.diagnosis.checks.privacy import telemetry
from imprint.diagnosis.facts import Facts
from imprint.diagnosis.findings import counts
from imprint.diagnosis.gathering.loading import try_runtime
from imprint.operations.doctor import Report
from imprint.paths import Home
from imprint.runtime.installer.uv import find_uv
from imprint_cli.render_doctor import render_findings
from support.recorded import BASES, changed

MANAGED, NAMED = BASES["managed"], BASES["environment"]


def sending(facts: Facts, *, sends: bool | None, **environ: str) -> Facts:
    assert facts.runtime.loaded is not None
    return changed(facts, loaded=replace(facts.runtime.loaded, sends=sends), environ=environ)


@pytest.mark.parametrize(
    ("facts", "code", "told"),
    [
        (sending(MANAGED, sends=True), "ok", "off: Imprint sets"),
        (sending(MANAGED, sends=False), "ok", "no telemetry client"),
        (sending(NAMED, sends=True), "telemetry-on", "send usage data to Microsoft"),
        (sending(NAMED, sends=True, ORT_DISABLE_TELEMETRY="1"), "ok", "off where"),
        (sending(NAMED, sends=True, ORT_DISABLE_TELEMETRY="true"), "ok", "off where"),
        (sending(NAMED, sends=True, ORT_DISABLE_TELEMETRY="0"), "telemetry-on", "send usage data"),
        (sending(NAMED, sends=True, ORT_DISABLE_TELEMETRY=""), "telemetry-on", "send usage data"),
        (sending(NAMED, sends=False), "ok", "no telemetry client"),
        (sending(NAMED, sends=None), "skipped", "did not load"),
    ],
)
def test_it_is_a_remark_and_never_a_fault(facts: Facts, code: str, told: str) -> None:
    (found,) = telemetry(facts)
    assert (found.code, found.status) == (code, "skipped" if code == "skipped" else "ok")
    assert told in found.seen
    assert (found.fix is not None) == (code == "telemetry-on")


@pytest.mark.parametrize(
    ("system", "command"), [("linux", "export ORT_DISABLE_TELEMETRY=1"), ("windows", "setx ORT_DISABLE_TELEMETRY 1")]
)
def test_how_to_stop_it_is_said_for_that_system_and_shown_without_being_asked(system: str, command: str) -> None:
    (found,) = telemetry(changed(sending(NAMED, sends=True), around=here({}, system=system)))
    shown = render_findings(Report("cpu", True, (found,), counts([found])))
    assert command in shown
    assert "telemetry-on" in shown


@pytest.mark.slow
@pytest.mark.parametrize(("version", "sends"), [("1.31.1", True), ("1.26.0", False)])
def test_the_real_wheels_are_told_apart(tmp_path: Path, version: str, *, sends: bool) -> None:
    environ = dict(os.environ)
    uv = find_uv(Home(tmp_path), environ).executable
    python = tmp_path / "v" / "bin" / "python"
    for words in (
        ["venv", "--quiet", "--python", sys.executable, str(tmp_path / "v")],
        ["pip", "install", "--quiet", "--python", str(python), f"onnxruntime=={version}", "numpy"],
    ):
        subprocess.run([str(uv), *words], check=True, env=environ)
    assert try_runtime(python, environ, []).sends is sends
