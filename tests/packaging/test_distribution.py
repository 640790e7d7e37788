"""The built distribution: what is in it, and that each way of installing it gives a command that works elsewhere."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = "Scripts" if os.name == "nt" else "bin"
ASK = (
    "import json, imprint, imprint_cli; from imprint.resources import data_path, lock_path;"
    "parts = imprint.__file__, imprint_cli.__file__, lock_path('cpu.txt'), data_path('builds.json');"
    "print(json.dumps([str(part) for part in parts]))"
)

pytestmark = pytest.mark.packaging


@pytest.fixture
def surroundings(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """Give an environment without settings of uv, pip or Python, with its own home and one cache for all tests here."""
    kept = {k: v for k, v in os.environ.items() if not re.match(r"(UV|PIP|PYTHON|VIRTUAL_ENV|IMPRINT)", k)}
    folder = tmp_path / "home"
    folder.mkdir()
    return kept | {
        "HOME": str(folder),
        "IMPRINT_HOME": str(tmp_path / "imprint home"),
        "UV_CACHE_DIR": str(tmp_path_factory.getbasetemp() / "uv-cache"),
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_TOOL_DIR": str(tmp_path / "tools"),
        "UV_TOOL_BIN_DIR": str(tmp_path / "tools-bin"),
    }


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel and the source distribution, without the network, and give their folder."""
    out = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "--directory", str(out)], cwd=ROOT, check=True)
    return out


def run(command: list[str | Path], env: Mapping[str, str], cwd: Path) -> str:
    """Run a command that has to succeed, and return its stdout; both streams show when it does not."""
    done = subprocess.run(command, env=dict(env), cwd=cwd, check=False, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def uv() -> str:
    return str(Path(sys.executable).parent / "uv")


def names_in(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def sources() -> set[str]:
    """Return the names under which the tracked files have to be in the wheel."""
    listed = subprocess.run(
        ["git", "-c", "safe.directory=*", "ls-files", "imprint", "cmd/imprint_cli", "locks", "data"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    moved = {"cmd/imprint_cli/": "imprint_cli/", "locks/": "imprint/_locks/", "data/": "imprint/_data/"}
    names = set()
    for name in listed:
        start = next((start for start in moved if name.startswith(start)), "")
        names.add(moved.get(start, "") + name.removeprefix(start))
    return names


def assert_works(python: Path, script: Path, env: Mapping[str, str], elsewhere: Path) -> list[str]:
    """Start the command from another folder and decide something with it; return where its parts lie."""
    version = run([script, "--version"], env, elsewhere)
    assert version.startswith("imprint ")
    for same in ([script.with_name("imprint-runtime")], [python, "-P", "-m", "imprint"]):
        assert run([*same, "--version"], env, elsewhere) == version
    machine = {"schema": 1, "platform": {"os": "linux", "arch": "x86_64"}, "python": {"version": "3.12"}}
    (elsewhere / "machine.json").write_text(json.dumps(machine), encoding="utf-8")
    answer = json.loads(run([script, "plan", "--machine", "machine.json", "--json"], env, elsewhere))
    assert answer["ok"] is True
    assert answer["data"]["lock"] == "cpu.txt"
    parts: list[str] = json.loads(run([python, "-P", "-c", ASK], env, elsewhere))
    assert all(Path(part).is_file() for part in parts), parts
    return parts


def test_the_wheel_holds_the_code_the_locks_and_the_data_and_nothing_else(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    found = {name for name in names_in(wheel) if ".dist-info/" not in name}
    assert sources() <= found
    assert {name.split("/")[0] for name in found} == {"imprint", "imprint_cli"}
    assert not [name for name in found if "imprint_dev" in name or "__pycache__" in name]
    assert not [name for name in found if name.startswith(("imprint/_locks", "imprint/_data")) and name.endswith(".py")]


def test_the_wheel_declares_the_command_and_the_licence(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        info = {name.split("/", 1)[1]: name for name in archive.namelist() if ".dist-info/" in name}
        entries = archive.read(info["entry_points.txt"]).decode()
        metadata = archive.read(info["METADATA"]).decode()
    assert {"imprint = imprint_cli.__main__:main", "imprint-runtime = imprint_cli.__main__:main"} <= set(
        entries.splitlines()
    )
    assert "licenses/LICENSE" in info
    assert "License-Expression: Apache-2.0" in metadata
    assert "Name: imprint-runtime" in metadata
    for version in ("3.11", "3.12", "3.13", "3.14"):
        assert f"Classifier: Programming Language :: Python :: {version}\n" in metadata
    assert "Classifier: Typing :: Typed" in metadata


def test_the_wheel_tells_type_checkers_that_it_is_typed(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    assert "imprint/py.typed" in names_in(wheel)


def test_the_source_distribution_is_minimal_and_builds_the_same_wheel(built: Path, tmp_path: Path) -> None:
    (source,) = built.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        archive.extractall(tmp_path, filter="data")
    (unpacked,) = tmp_path.iterdir()
    assert not (unpacked / "tests").exists()
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path / "again")],
        cwd=unpacked,
        check=True,
    )
    (again,) = (tmp_path / "again").glob("*.whl")
    (wheel,) = built.glob("*.whl")
    assert names_in(again) == names_in(wheel)


def test_the_wheel_installs_and_runs_from_another_folder(
    built: Path, surroundings: Mapping[str, str], tmp_path: Path
) -> None:
    (wheel,) = built.glob("*.whl")
    env = tmp_path / "env"
    run([uv(), "venv", "--python", sys.executable, env], surroundings, tmp_path)
    python = env / SCRIPTS / "python"
    tool = ["--require-hashes", "--only-binary", ":all:", "-r", str(ROOT / "locks" / "tool.txt")]
    run([uv(), "pip", "install", "--python", python, *tool], surroundings, tmp_path)
    run([uv(), "pip", "install", "--python", python, "--no-deps", "--offline", wheel], surroundings, tmp_path)
    run([uv(), "pip", "check", "--python", python], surroundings, tmp_path)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    parts = assert_works(python, env / SCRIPTS / "imprint", surroundings, elsewhere)
    assert all(Path(part).is_relative_to(env) for part in parts)


def test_an_editable_install_uses_the_checkout(surroundings: Mapping[str, str], tmp_path: Path) -> None:
    env = tmp_path / "env"
    run([uv(), "venv", "--python", sys.executable, env], surroundings, tmp_path)
    python = env / SCRIPTS / "python"
    run([uv(), "pip", "install", "--python", python, "--editable", ROOT], surroundings, tmp_path)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    parts = assert_works(python, env / SCRIPTS / "imprint", surroundings, elsewhere)
    assert all(Path(part).is_relative_to(ROOT) for part in parts)


def test_uv_tool_install_gives_the_command(surroundings: Mapping[str, str], tmp_path: Path) -> None:
    run([uv(), "tool", "install", "--python", sys.executable, ROOT], surroundings, tmp_path)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    tool = tmp_path / "tools" / "imprint-runtime"
    parts = assert_works(tool / SCRIPTS / "python", tmp_path / "tools-bin" / "imprint", surroundings, elsewhere)
    assert all(Path(part).is_relative_to(tool) for part in parts)


def test_pip_install_gives_the_command(surroundings: Mapping[str, str], tmp_path: Path) -> None:
    env = tmp_path / "env"
    run([sys.executable, "-m", "venv", env], surroundings, tmp_path)
    python = env / SCRIPTS / "python"
    run([python, "-m", "pip", "install", "--disable-pip-version-check", ROOT], surroundings, tmp_path)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    parts = assert_works(python, env / SCRIPTS / "imprint", surroundings, elsewhere)
    assert all(Path(part).is_relative_to(env) for part in parts)
