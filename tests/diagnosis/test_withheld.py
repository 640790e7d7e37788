"""What the system does not let run any more, although no file changed: all six commands say so, and what helps."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from contracts.runner import Ran, run_cli
from imprint.paths import Home
from imprint.runtime.target import current_target

pytestmark = pytest.mark.slow
BIND = 'mount --bind "$0" "$0" && mount -o remount,bind,noexec "$0" && exec "$@"'
COMMANDS = {
    "status": ["status"],
    "setup": ["setup", "--offline"],
    "plan": ["plan", "--check"],
    "check": ["check"],
    "embed": ["embed", "a text", "--output", os.devnull],
    "doctor": ["doctor"],
}


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    """Yield a home that was set up."""
    with tempfile.TemporaryDirectory(prefix="imprint-withheld-") as folder:
        root = Path(folder, "home")
        ran = run_cli(root, ["setup", "--yes"], timeout=900)
        assert ran.code == 0, ran.err
        yield root


@pytest.fixture(scope="module")
def venv(home: Path) -> Path:
    prefix = home.parent / "env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", prefix], check=True)
    ran = run_cli(home, ["setup", "--yes", "--venv", str(prefix)], timeout=900)
    assert ran.code == 0, ran.err
    return prefix


def told(home: Path, venv: Path | None, within: tuple[str, ...] = ()) -> dict[str, tuple[int, str, str]]:
    """Return the exit code, the code of what is wrong, and what helps, of each of the six."""
    place = [] if venv is None else ["--venv", str(venv)]
    ran = {name: run_cli(home, [*words, *place, "--json"], within=within) for name, words in COMMANDS.items()}
    return {name: (one.code, *_problem(name, one)) for name, one in ran.items()}


def _problem(name: str, ran: Ran) -> tuple[str, str]:
    last: dict[str, Any] = json.loads(ran.out if name != "setup" else ran.out.splitlines()[-1])
    if name == "doctor" and last["data"]:
        found = [one for one in last["data"]["findings"] if one["status"] == "error"]
        return (found[0]["code"], found[0]["fix"]) if found else ("", "")
    wrong = [*last["errors"], *last["warnings"]]
    return (wrong[0]["code"], str(wrong[0]["hint"])) if wrong else ("", "")


@pytest.mark.parametrize("named", [False, True])
def test_a_disk_that_was_mounted_again_without_exec(home: Path, venv: Path, *, named: bool) -> None:
    within = ("unshare", "--mount", "sh", "-c", BIND, str(venv if named else home))
    if os.geteuid() or subprocess.run([*within, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no mount namespace here")
    said = told(home, venv if named else None, within)
    assert {name: (code, problem) for name, (code, problem, _) in said.items()} == dict.fromkeys(
        COMMANDS, (1, "noexec-disk")
    )
    assert all("remount this one with `exec`" in hint for *_, hint in said.values()), said


@pytest.fixture
def interpreter(home: Path) -> Iterator[Path]:
    """Yield the managed interpreter as a program of its own, since other tests share the one it leads to."""
    target = current_target(Home(home))
    assert target is not None
    link = os.readlink(target.python)  # noqa: PTH115 - the text
    target.python.unlink()
    target.python.write_bytes(Path(sys.executable).resolve().read_bytes())
    target.python.chmod(0o755)
    yield target.python
    target.python.unlink()
    target.python.symlink_to(link)


def test_an_interpreter_that_may_not_be_executed_any_more(home: Path, interpreter: Path) -> None:
    assert run_cli(home, ["check"]).code == 0
    interpreter.chmod(0o644)
    said = told(home, None)
    assert {(code, problem) for code, problem, _ in said.values()} == {(1, "file-denied")}, said
    remedy = said["status"][2]
    assert f"chmod a+x {interpreter}" in remedy
    subprocess.run(["chmod", "a+x", interpreter], check=True)
    assert {code for code, *_ in told(home, None).values()} == {0}


def test_libraries_that_may_not_be_read_any_more(home: Path) -> None:
    """Root reads whatever it likes, so it is root without that privilege who looks."""
    target = current_target(Home(home))
    assert target is not None
    library = next(target.prefix.glob("lib/python3*/site-packages/onnxruntime/capi/onnxruntime_pybind11_state*"))
    within = ("setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-all")
    if not os.geteuid() and subprocess.run([*within, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no way to give up the privilege here")
    library.chmod(0)
    said = told(home, None, () if os.geteuid() else within)
    assert {(code, problem) for code, problem, _ in said.values()} == {(1, "file-denied")}, said
    assert all(f"chmod -R a+rX {library.parent}" in hint for *_, hint in said.values()), said
    subprocess.run(["chmod", "-R", "a+rX", library.parent], check=True)
    assert {code for code, *_ in told(home, None).values()} == {0}
