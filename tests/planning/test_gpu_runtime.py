"""The plumbing plans with the standard library alone, from a bare checkout, and exactly as the library does."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from architecture.test_planning import interpreters
from architecture.tree import ROOT
from planning.conftest import TABLE
from planning.test_golden import FILES, case_of, planned

ISOLATED = """
import sys
sys.path.insert(0, sys.argv.pop(1))
from imprint.gpu_runtime import main
code = main(sys.argv[1:])
foreign = {name.partition(".")[0] for name in sys.modules} - set(sys.stdlib_module_names) - {"imprint", "__main__"}
sys.exit(f"imported {foreign}" if foreign else code)
"""


def run(
    home: Path, *arguments: str, environ: Mapping[str, str] | None = None, python: str = sys.executable, stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    keep = {name: os.environ[name] for name in ("PATH", "HOME", "SYSTEMROOT") if name in os.environ}
    return subprocess.run(
        [python, "-I", "-S", "-c", ISOLATED, str(ROOT), *arguments],
        env={**keep, "IMPRINT_HOME": str(home), **(environ or {})},
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("python", interpreters(), ids=lambda python: Path(python).name)
def test_it_plans_here_without_any_package(tmp_path: Path, python: str) -> None:
    done = run(tmp_path / "home", "plan", python=python)
    assert done.returncode == 0, done.stderr
    plan = json.loads(done.stdout)
    assert (plan["code"], plan["provisional"]) == ("device-cpu", False)
    assert not (tmp_path / "home").exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_behind_stdout_is_one_error(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "imprint.gpu_runtime", "plan"]
    environ = {**os.environ, "IMPRINT_HOME": str(tmp_path), "PYTHONUNBUFFERED": ""}
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, env=environ, cwd=ROOT, check=False)
    assert (done.returncode, done.stderr.decode().count("\n")) == (7, 1)


def test_the_environment_and_the_file_configure_it(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("[model]\ndevice = 'auto'\n")
    by_file = json.loads(run(tmp_path, "plan").stdout)
    by_variable = json.loads(run(tmp_path, "plan", environ={"IMPRINT_DEVICE": "cpu"}).stdout)
    assert by_file["code"] != "device-cpu"
    assert by_variable["code"] == "device-cpu"


@pytest.mark.parametrize("path", FILES[::20], ids=lambda path: path.stem)
def test_any_machine_gets_the_plan_that_the_library_makes(tmp_path: Path, path: Path) -> None:
    case = case_of(path)
    case.pop("verdicts", None)
    case.pop("installed", None)
    machine = tmp_path / "machine.json"
    machine.write_text(json.dumps(case["machine"]))
    request = case["request"]
    environ = {"IMPRINT_DEVICE": request["device"], "IMPRINT_GPU_DEVICE": request.get("gpu_device", "auto")}
    done = run(tmp_path / "home", "plan", "--retry", f"--machine={machine}", environ=environ)
    _, plan = planned(case, TABLE)
    found = json.loads(done.stdout)
    assert (found["build"], found["code"], found["reason"]) == (plan.build, plan.code, plan.reason)


def test_a_machine_on_standard_input(tmp_path: Path) -> None:
    done = run(tmp_path, "plan", "--machine", "-", stdin='{"platform": {"os": "freebsd"}}')
    assert json.loads(done.stdout)["code"] == "os-no-wheel"


@pytest.mark.parametrize(
    ("arguments", "stdin", "said"),
    [
        ((), "", "expected the word `plan` or `check`"),
        (("plan", "--fast"), "", "unknown option: --fast"),
        (("plan", "--machine"), "", "--machine needs a file"),
        (("plan", "--machine="), "", "--machine needs a file"),
        (("plan", "--machine", "no such file"), "", "no such file cannot be read"),
        (("plan", "--machine", "-"), "{", "standard input is not JSON"),
        (("plan", "--machine", "-"), '{"gpu": 1}', "gpu: unknown key"),
        (("plan", "--machine", "-"), "[" * 100_000, "standard input is nested too deeply"),
    ],
)
def test_a_wrong_call_is_refused(tmp_path: Path, arguments: tuple[str, ...], stdin: str, said: str) -> None:
    done = run(tmp_path, *arguments, stdin=stdin)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_broken_configuration_is_the_exit_code_of_state(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("model = [")
    assert run(tmp_path, "plan").returncode == 3


def test_an_installed_target_and_a_verdict_count(tmp_path: Path) -> None:
    generation = tmp_path / "runtimes" / "one"
    generation.mkdir(parents=True)
    (tmp_path / "data").mkdir()
    pointer = {"schema": 1, "generation": "one", "since": "2026-11-01T00:00:00Z", "previous": None}
    (tmp_path / "data" / "current.json").write_text(json.dumps(pointer))
    manifest = {
        "schema": 1,
        "id": "one",
        "build": "cpu",
        "version": "1.0",
        "locks": [],
        "python": {"version": "3.12.4", "executable": "python"},
        "uv": None,
        "created": "2026-11-01T00:00:00Z",
        "distributions": {},
        "bytes": 1,
        "check": None,
    }
    (generation / "manifest.json").write_text(json.dumps(manifest))
    (tmp_path / "data" / "gpu_state.json").write_text('{"schema": 1, "verdicts": []}')
    plan = json.loads(run(tmp_path, "plan").stdout)
    assert plan["installed"] == {"build": "cpu", "version": "1.0"}
    assert plan["pending"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_check_is_130(tmp_path: Path, number: signal.Signals) -> None:
    """A target whose interpreter hangs, so that the check is at work when the signal comes."""
    generation, started = tmp_path / "runtimes" / "one", tmp_path / "started"
    (tmp_path / "data").mkdir()
    (generation / "bin").mkdir(parents=True)
    (tmp_path / "data" / "current.json").write_text(
        json.dumps({"schema": 1, "generation": "one", "since": "2026-11-01T00:00:00Z"})
    )
    facts = {"id": "one", "build": "cpu", "version": "1.0", "created": "2026-11-01T00:00:00Z", "bytes": 1, "uv": None}
    python = {"version": "3.12.4", "executable": "python"}
    (generation / "manifest.json").write_text(
        json.dumps({"schema": 1, **facts, "python": python, "locks": [], "distributions": {}, "check": None})
    )
    (generation / "pyvenv.cfg").write_text("home = /usr/bin\n")
    interpreter = generation / "bin" / "python"
    interpreter.write_text(f"#!/bin/sh\n: >{started}\nexec sleep 60\n")
    interpreter.chmod(0o755)
    command = [sys.executable, "-m", "imprint.gpu_runtime", "check"]
    environ = {**os.environ, "IMPRINT_HOME": str(tmp_path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environ, cwd=ROOT) as process:
        while not started.exists():
            assert process.poll() is None, process.communicate()
            time.sleep(0.01)
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, b""), err
    assert b"interrupted" in err
    assert b"Traceback" not in err


def test_the_check_runs_without_any_package_too(tmp_path: Path) -> None:
    done = run(tmp_path, "check")
    assert (done.returncode, done.stdout) == (1, "")
    assert "nothing is installed" in done.stderr
