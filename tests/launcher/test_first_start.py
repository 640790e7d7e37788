"""The first start of a bare checkout: what it builds, and what it says when it cannot."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from imprint.paths import find_home
from imprint_launch import __main__ as launch

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ("sh", "sha256sum", "cut", "uname", "readlink", "dirname", "cat")


@pytest.fixture
def bare_path(tmp_path: Path) -> Path:
    """Return a folder to use as PATH that holds the launcher's few tools and no Python."""
    folder = tmp_path / "path"
    folder.mkdir()
    for tool in TOOLS:
        found = shutil.which(tool)
        assert found is not None
        (folder / tool).symlink_to(found)
    return folder


def run_launcher(home: Path, path: str, *words: str, timeout: float = 200) -> subprocess.CompletedProcess[str]:
    """Run cmd/imprint with a home and a PATH of its own."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("UV_", "IMPRINT_", "PYTHON"))}
    environ = {**kept, "PATH": path, "IMPRINT_HOME": str(home)}
    command = [str(ROOT / "cmd" / "imprint"), *words]
    return subprocess.run(command, capture_output=True, text=True, env=environ, timeout=timeout, check=False)


def test_no_python_is_one_error_and_one_hint(tmp_path: Path, bare_path: Path) -> None:
    """Without any Python the launcher names what is missing and how to get it."""
    done = run_launcher(tmp_path / "home", str(bare_path), "setup")
    assert done.returncode == 1
    assert done.stderr.splitlines()[0] == "error: imprint needs Python 3.11 or newer; no `python3` is on PATH"
    assert done.stderr.splitlines()[1].startswith("hint: install Python 3.11")
    assert not (tmp_path / "home").exists()


def test_a_path_without_the_systems_programs_is_one_error_and_one_hint(tmp_path: Path) -> None:
    """Not the shell's own words about some program that the user never heard of."""
    done = run_launcher(tmp_path / "home", str(tmp_path), "status")
    assert done.returncode == 1
    assert done.stderr.splitlines()[0].startswith("error: none of `sha256sum`")
    assert done.stderr.splitlines()[1].startswith("hint: PATH is")
    assert len(done.stderr.splitlines()) == 2


def test_the_home_without_home_is_the_one_that_the_library_finds(bare_path: Path) -> None:
    """A service has no HOME; the launcher must not put its folder at the root of the file system then."""
    shim = bare_path / "python3"
    shim.write_text('#!/bin/sh\necho "$*"\n')
    shim.chmod(0o755)
    (bare_path / "id").symlink_to(shutil.which("id") or "/")
    command = [str(ROOT / "cmd" / "imprint"), "status"]
    done = subprocess.run(command, capture_output=True, text=True, env={"PATH": str(bare_path)}, check=False)
    assert f"--home {find_home({}).root} " in done.stdout


def test_an_environment_that_lost_its_packages_is_named_with_the_way_out(tmp_path: Path) -> None:
    """No traceback: the folder, and that deleting it is enough."""
    digest = hashlib.sha256((ROOT / "locks" / "tool.txt").read_bytes()).hexdigest()
    place = tmp_path / "tool" / f"env-{digest}"
    venv.create(place, symlinks=True)
    done = run_launcher(tmp_path, os.environ["PATH"], "status")
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 2)
    assert f"the tool environment {place} is damaged" in done.stderr
    answer = json.loads(run_launcher(tmp_path, os.environ["PATH"], "status", "--json").stdout)
    assert answer["errors"][0]["code"] == "tool-damaged"


def test_an_old_python_is_named_with_its_version(tmp_path: Path, bare_path: Path) -> None:
    """A `python3` that is too old is answered with its version, not with a syntax error."""
    shim = bare_path / "python3"
    shim.write_text('#!/bin/sh\n[ "$1" = -I ] && exit 1\necho 3.9.2\n')
    shim.chmod(0o755)
    done = run_launcher(tmp_path / "home", str(bare_path), "setup")
    assert done.returncode == 1
    assert "`python3` here is 3.9.2" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_python_without_venv_is_told_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where neither uv nor the venv module is there, the hint names the package that brings it."""
    monkeypatch.setattr(launch, "suitable_uv", lambda _environ: None)
    monkeypatch.setattr(launch, "_is_missing", lambda _module: True)
    with pytest.raises(launch.Failure) as caught:
        launch.install(tmp_path / "home", ROOT / "locks" / "tool.txt", tmp_path / "home" / "tool" / "env-x")
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert "has no venv module" in caught.value.message
    assert caught.value.hint is not None
    assert f"python{version}-venv" in caught.value.hint
    assert list((tmp_path / "home" / "tool").iterdir()) == []


@pytest.mark.parametrize(
    ("output", "code", "exit_code"),
    [
        ("error: Failed to fetch: `x`\n  Caused by: dns error", "network", 5),
        ("WARNING: Retrying ...\nERROR: No matching distribution found for uv==0.13.9", "network", 5),
        ("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.", "integrity", 6),
        ("error: Hash mismatch for `typer==0.29.2`", "integrity", 6),
        ("OSError: [Errno 28] No space left on device", "no-space", 7),
        ("error: failed to create file: Permission denied (os error 13)", "home-not-writable", 1),
        ("something nobody foresaw", "failed", 1),
        ("", "failed", 1),
    ],
)
def test_an_installers_last_words_become_a_code(output: str, code: str, exit_code: int) -> None:
    """Network, hash, space and permission are told apart; the rest stays a plain failure."""
    failure = launch.classify(output, 5 * 2**20, Path("/somewhere"))
    assert (failure.code, failure.exit_code) == (code, exit_code)


@pytest.mark.parametrize(
    ("text", "version"),
    [("uv 0.13.9 (x86_64-unknown-linux-gnu)\n", (0, 13, 9)), ("uv 0.4.0", (0, 4, 0)), ("", None), ("uvx 1.2.3", None)],
)
def test_uv_version(text: str, version: tuple[int, ...] | None) -> None:
    """Only a real answer of uv counts as a version."""
    assert launch.parse_uv_version(text) == version


@pytest.mark.parametrize(
    ("words", "value"),
    [
        (["setup", "--index-url", "u"], "u"),
        (["setup", "--index-url=u"], "u"),
        (["setup", "--index-url"], None),
        (["setup"], None),
        ([], None),
    ],
)
def test_options_for_the_network_are_read_from_the_command(words: list[str], value: str | None) -> None:
    """A mirror named for setup is the one the tool environment comes from as well."""
    assert launch.value_of("--index-url", words) == value


def test_settings_that_move_files_do_not_reach_the_installers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Proxies and certificates pass; targets, constraints and uv's other settings do not."""
    hostile = {"UV_INDEX": "x", "UV_NO_VERIFY_HASHES": "1", "PIP_TARGET": "/x", "PYTHONPATH": "/x", "VIRTUAL_ENV": "/x"}
    for name, value in {**hostile, "HTTPS_PROXY": "p", "SSL_CERT_FILE": "c"}.items():
        monkeypatch.setenv(name, value)
    environ = launch.clean_environment(tmp_path)
    assert not hostile.keys() & environ.keys()
    assert (environ["HTTPS_PROXY"], environ["SSL_CERT_FILE"]) == ("p", "c")
    assert environ["UV_CACHE_DIR"] == str(tmp_path)


def test_what_a_killed_start_left_is_swept(tmp_path: Path) -> None:
    """Staging folders of dead processes go, those of living ones stay."""
    dead = subprocess.Popen(["true"])
    dead.wait()
    for pid in (dead.pid, os.getpid()):
        (tmp_path / f".building-{pid}").mkdir()
    launch.sweep(tmp_path)
    assert [entry.name for entry in tmp_path.iterdir()] == [f".building-{os.getpid()}"]


def test_a_relative_home_is_refused_as_json(tmp_path: Path) -> None:
    """With `--json` even the launcher's own refusal is one envelope on stdout."""
    environ = {**os.environ, "IMPRINT_HOME": "relative"}
    command = [str(ROOT / "cmd" / "imprint"), "plan", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, env=environ, cwd=tmp_path, check=False)
    answer = json.loads(done.stdout)
    assert (done.returncode, answer["ok"], answer["command"]) == (2, False, "plan")
    assert answer["errors"][0]["code"] == "usage"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.faults
def test_no_network_leaves_nothing_and_the_next_start_works(tmp_path: Path) -> None:
    """With the network cut off the first start exits 5 and leaves no half environment; later it succeeds."""
    home = tmp_path / "h\u00f6me with spaces"
    environ = {**os.environ, "IMPRINT_HOME": str(home), "PATH": _path_without_uv()}
    command = ["unshare", "-rn", str(ROOT / "cmd" / "imprint"), "--version"]
    done = subprocess.run(command, capture_output=True, text=True, env=environ, check=False, timeout=200)
    assert done.returncode == 5, done.stderr
    assert "hint:" in done.stderr
    assert "Traceback" not in done.stderr
    assert list((home / "tool").iterdir()) == []
    again = run_launcher(home, _path_without_uv(), "--version")
    assert again.returncode == 0, again.stderr
    assert again.stdout.startswith("imprint ")


def _path_without_uv() -> str:
    """Return PATH without the folders that hold a uv, so that the launcher has to make one."""
    folders = os.environ["PATH"].split(os.pathsep)
    return os.pathsep.join(folder for folder in folders if not (Path(folder) / "uv").exists())
