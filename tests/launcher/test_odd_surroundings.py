"""A first start where the system forbids something: named, with what helps, and nothing half made stays."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from imprint.errors import ImprintError
from imprint_launch import building, unusable
from imprint_launch.progress import Progress
from support.sandbox import run_in

ROOT = Path(__file__).resolve().parents[2]
LOCK = ROOT / "locks" / "tool.txt"
QUIET = Progress(sys.stderr, quiet=True)
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
NOBODY = 65534

pytestmark = pytest.mark.faults


@pytest.fixture
def open_checkout() -> Iterator[Path]:
    """Copy what a first start needs to where every user may read it."""
    place = Path(f"/tmp/imprint-open-checkout-{os.getpid()}")  # noqa: S108 - tmp_path is the user's own
    for folder in ("cmd", "imprint", "locks", "docs", "data"):
        shutil.copytree(ROOT / folder, place / folder, ignore=shutil.ignore_patterns("__pycache__"))
    subprocess.run(["chmod", "-R", "o+rX", place], check=True)
    yield place
    shutil.rmtree(place)


def launch(script: str, *words: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a shell script with the launcher's words as `$@`, without settings of ours."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("UV_", "IMPRINT_", "PYTHON"))}
    command = ["sh", "-c", script, "sh", *words]
    return subprocess.run(command, capture_output=True, text=True, env=kept, timeout=200, check=False)


@AS_ROOT
def test_a_disk_that_runs_nothing_is_refused_before_anything_is_downloaded(tmp_path: Path) -> None:
    script = 'mount -t tmpfs -o noexec none "$1" && IMPRINT_HOME="$1/home" "$2" status --json; ls -A "$1" >&2'
    done = launch(f"unshare -m sh -c '{script}' sh \"$@\"", tmp_path, ROOT / "cmd" / "imprint")
    answer = json.loads(done.stdout)
    assert answer["errors"][0]["code"] == "noexec-disk"
    assert done.stderr == ""


@AS_ROOT
def test_without_proc_it_works(tmp_path: Path) -> None:
    script = 'umount -l /proc && IMPRINT_HOME="$1" "$2" config path'
    done = launch(f"unshare -mpf sh -c '{script}' sh \"$@\"", tmp_path / "home", ROOT / "cmd" / "imprint")
    assert (done.returncode, done.stdout) == (0, f"{tmp_path / 'home' / 'config.toml'}\n"), done.stderr


@AS_ROOT
@pytest.mark.parametrize("count", [8, 15])
def test_a_limit_on_processes_is_named(open_checkout: Path, count: int) -> None:
    home = open_checkout / "home"
    home.mkdir(mode=0o755)
    os.chown(home, NOBODY, NOBODY)
    script = (
        f'prlimit --nproc={count} setpriv --reuid {NOBODY} --clear-groups env IMPRINT_HOME="$1" PATH=/usr/bin:/bin'
        ' "$2" status --json'
    )
    done = launch(script, home, open_checkout / "cmd" / "imprint")
    assert "Traceback" not in done.stderr
    (error,) = json.loads(done.stdout)["errors"]
    assert error["code"] == "process-limit", error
    assert "limit" in error["hint"]
    assert not list(home.glob("tool/.building*"))


@AS_ROOT
def test_an_interpreter_out_of_reach_is_named_and_the_environment_stays(open_checkout: Path) -> None:
    private, home = open_checkout / "private", open_checkout / "home"
    (private / "bin").mkdir(parents=True)
    (private / "bin" / "python3.12").symlink_to(sys.executable)
    private.chmod(0o700)
    into = home / "tool" / "env-1"
    (into / "bin").mkdir(parents=True)
    (into / "bin" / "python").symlink_to(private / "bin" / "python3.12")
    (home / ".imprint-home").touch()

    def refused() -> tuple[str, str]:
        os.setuid(NOBODY)
        with pytest.raises(ImprintError) as caught:
            building.install(home, LOCK, into, [], QUIET)
        return caught.value.specific_code, caught.value.message

    code, message = run_in(open_checkout, refused)
    assert code == "folder-denied"
    assert f"may not open `{private}`" in message
    assert (into / "bin" / "python").is_symlink()


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ImportError("No module named '_ctypes'", name="_ctypes"), "python-module-missing"),
        (ImportError("No module named '_ssl'", name="_ssl"), "python-module-missing"),
        (ImportError("No module named 'typer'", name="typer"), "tool-damaged"),
        (ImportError("x.so: failed to map segment from shared object"), "noexec-disk"),
        (PermissionError(13, "Permission denied", "/x/typer/__init__.py"), "tool-unreadable"),
        (SyntaxError("source code string cannot contain null bytes"), "tool-damaged"),
    ],
)
def test_what_fails_at_an_import_has_its_cause(
    error: Exception, code: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A module of Python's own that is missing is no damage that building anew would mend."""
    monkeypatch.setattr(sys, "argv", ["imprint", "status", "--json"])
    assert unusable.tell_unusable(error, Path("/no/env")) == 1
    answer = json.loads(capsys.readouterr().out)["errors"][0]
    assert answer["code"] == code
    assert answer["hint"]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 130), (signal.SIGHUP, 129)])
def test_a_signal_ends_it_with_nothing_half_made(tmp_path: Path, number: signal.Signals, code: int) -> None:
    """The index is one that never answers."""
    home = tmp_path / "home"
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        environ = {name: value for name, value in os.environ.items() if not name.startswith(("UV_", "IMPRINT_"))}
        environ |= {
            "IMPRINT_HOME": str(home),
            "UV_DEFAULT_INDEX": f"http://127.0.0.1:{silent.getsockname()[1]}/simple",
        }
        command = [str(ROOT / "cmd" / "imprint"), "status"]
        with subprocess.Popen(
            command, env=environ, stderr=subprocess.PIPE, text=True, start_new_session=True
        ) as process:
            silent.settimeout(60)
            connection, _ = silent.accept()
            os.killpg(process.pid, number)
            _, err = process.communicate(timeout=60)
            connection.close()
    # The shell that started it may have died of the signal itself.
    assert process.returncode in {code, -number}, err
    assert ("the terminal was closed" if code == 129 else "interrupted") in err
    assert "Traceback" not in err
    assert not [path for path in home.glob("tool/*") if path.is_dir()]
