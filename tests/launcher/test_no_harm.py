"""What the first start must not do to anybody else's files, nor run of anybody else's."""

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

from imprint_launch import building, entering
from imprint_launch.failure import Failure
from imprint_launch.progress import Progress
from support.sandbox import sandboxed

ROOT = Path(__file__).resolve().parents[2]
LOCK = ROOT / "locks" / "tool.txt"
ENV = f"env-{hashlib.sha256(LOCK.read_bytes()).hexdigest()}"
MARKER = ".imprint-home"
BASE = Path(shutil.which("python3", path="/usr/bin:/usr/local/bin") or Path(sys.base_prefix, "bin", "python3")).parent
"""A folder with a Python that other users may enter too, where there is one."""
QUIET = Progress(sys.stderr, quiet=True)
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


def run(home: Path, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run cmd/imprint with a home, and variables besides."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("UV_", "PIP_", "IMPRINT_"))}
    command = [str(ROOT / "cmd" / "imprint"), *words]
    given = {**kept, "IMPRINT_HOME": str(home), **environ}
    return subprocess.run(command, capture_output=True, text=True, env=given, timeout=200, check=False)


def planted(home: Path) -> Path:
    """Put a tool environment into the home whose interpreter says that it ran; return it."""
    env = home / "tool" / ENV
    (env / "bin").mkdir(parents=True)
    (env / "pyvenv.cfg").write_text(f"home = {BASE}\n")
    (home / MARKER).touch()
    (env / "bin" / "python").write_text("#!/bin/sh\necho it ran\n")
    (env / "bin" / "python").chmod(0o755)
    return env


def build_nothing(builder: building.Builder, _lock: Path) -> None:
    """Stand in for pip and uv: an environment with an interpreter."""
    (builder.stage / "bin").mkdir()
    (builder.stage / "bin" / "python").symlink_to(sys.executable)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Build environments without pip and uv."""
    monkeypatch.setattr(building.Builder, "build", build_nothing)


@pytest.mark.faults
@pytest.mark.parametrize("setting", ["target", "prefix", "root", "python"])
@sandboxed
def test_pips_files_of_settings_do_not_count(tmp_path: Path, setting: str) -> None:
    """The installer lands in the environment, wherever a pip.conf would send it."""
    elsewhere, config = tmp_path / "elsewhere", tmp_path / "user" / ".config" / "pip"
    elsewhere.mkdir()
    config.mkdir(parents=True)
    (config / "pip.conf").write_text(f"[global]\n{setting} = {elsewhere}\n")
    folders = os.environ["PATH"].split(os.pathsep)
    path = os.pathsep.join(folder for folder in folders if not (Path(folder) / "uv").exists())
    done = run(tmp_path / "home", "config", "path", HOME=str(tmp_path / "user"), PATH=path)
    assert (done.returncode, done.stdout) == (0, f"{tmp_path / 'home' / 'config.toml'}\n"), done.stderr
    assert list(elsewhere.iterdir()) == []


@pytest.mark.parametrize("words", [("status",), ("status", "--json")])
def test_a_home_with_somebody_elses_files_is_left_alone(tmp_path: Path, words: tuple[str, ...]) -> None:
    (tmp_path / "tool" / "env-mine").mkdir(parents=True)
    (tmp_path / "notes.txt").touch()
    done = run(tmp_path, *words)
    assert done.returncode == 1
    assert "`notes.txt`" in done.stdout + done.stderr
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["env-mine", "notes.txt", "tool"]
    if "--json" in words:
        assert json.loads(done.stdout)["errors"][0]["code"] == "not-ours"


@pytest.mark.parametrize("there", [[], ["config.toml"], ["lost+found"], [".imprint-home", "data", "runtimes"]])
@pytest.mark.usefixtures("quick")
def test_a_home_that_is_empty_prepared_or_marked_is_taken_and_marked(tmp_path: Path, there: list[str]) -> None:
    for name in there:
        (tmp_path / name).touch()
    building.install(tmp_path, LOCK, tmp_path / "tool" / ENV, [], QUIET)
    assert (tmp_path / "tool" / ENV / "bin" / "python").exists()
    assert (tmp_path / MARKER).is_file()


@pytest.mark.usefixtures("quick")
def test_a_home_from_before_homes_were_marked_is_taken(tmp_path: Path) -> None:
    old = tmp_path / "tool" / "env-4242"
    old.mkdir(parents=True)
    (old / "pyvenv.cfg").touch()
    (tmp_path / "data").mkdir()
    building.install(tmp_path, LOCK, tmp_path / "tool" / ENV, [], QUIET)
    assert (tmp_path / MARKER).is_file()


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("inside", [True, False])
@sandboxed
def test_a_link_where_the_environment_belongs_is_replaced_and_never_followed(tmp_path: Path, inside: bool) -> None:
    other, home = tmp_path / "other", tmp_path / "home"
    other.mkdir()
    (other / "precious").touch()
    (home / "tool").mkdir(parents=True)
    (home / MARKER).touch()
    (home / "tool" / ENV).symlink_to(other if inside else tmp_path / "nowhere")
    (home / "tool" / ".building-link").symlink_to(other)
    building.install(home, LOCK, home / "tool" / ENV, [], QUIET)
    assert not (home / "tool" / ENV).is_symlink()
    assert [path.name for path in other.iterdir()] == ["precious"]
    assert sorted(path.name for path in (home / "tool").iterdir()) == ["building.lock", ENV]


@pytest.mark.usefixtures("quick")
def test_what_a_killed_first_start_left_is_swept_whatever_process_has_its_number(tmp_path: Path) -> None:
    """In a container the same numbers come again, even that of the one which was killed."""
    (tmp_path / MARKER).touch()
    for name in (f".building-{os.getpid()}", ".building-1", ".building-1-old", ".building-abc"):
        (tmp_path / "tool" / name / "bin").mkdir(parents=True)
    building.install(tmp_path, LOCK, tmp_path / "tool" / ENV, [], QUIET)
    assert sorted(path.name for path in (tmp_path / "tool").iterdir()) == ["building.lock", ENV]


def test_two_first_starts_build_one_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second waits for the first and finds what it built."""
    script = (
        "import sys, time; sys.path[:0] = sys.argv[1:3]; from pathlib import Path\n"
        "from launcher import test_no_harm as t; "
        "from imprint_launch import building; home = Path(sys.argv[3])\n"
        "def build(builder, lock):\n"
        "    print('building', flush=True); sys.stdin.readline(); t.build_nothing(builder, lock)\n"
        "building.Builder.build = build\n"
        "building.install(home, t.LOCK, home / 'tool' / t.ENV, [], t.QUIET)"
    )
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), str(ROOT / "cmd"), str(ROOT / "tests")]))
    command = [sys.executable, "-c", script, str(ROOT), str(ROOT / "cmd"), str(tmp_path / "home")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "building\n"
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as second:
            first.communicate("\n", timeout=60)
            said, _ = second.communicate("\n", timeout=60)
            assert (first.returncode, second.returncode, said) == (0, 0, "")


def test_nothing_runs_that_everybody_may_change(tmp_path: Path) -> None:
    env = planted(tmp_path)
    for place in (tmp_path, tmp_path / "tool", env, env / "bin", env / "bin" / "python"):
        before = place.stat().st_mode
        place.chmod(before | 0o002)
        done = run(tmp_path, "status")
        assert (done.returncode, done.stdout) == (1, ""), place
        assert f"every user can change `{place}`" in done.stderr
        place.chmod(before)
    assert run(tmp_path, "status").stdout == "it ran\n"


def test_the_remedy_for_an_open_home_works(tmp_path: Path) -> None:
    home = tmp_path / 'a "home" with $SIGNS, isn\'t it'
    planted(home)
    subprocess.run(["chmod", "-R", "o+w", home], check=True)
    answer = json.loads(run(home, "config", "list", "--json").stdout)
    assert answer["errors"][0]["code"] == "unsafe-home"
    remedy = answer["errors"][0]["hint"].split("`")[1]
    subprocess.run(["sh", "-c", remedy], check=True)
    assert run(home, "status").stdout == "it ran\n"


@pytest.mark.parametrize("case", ["not marked", "a newline in its name"])
def test_no_command_is_shown_for_a_folder_that_may_be_anybodys_or_cannot_be_typed(tmp_path: Path, case: str) -> None:
    """Such a command would change the modes of a system's folder, or name a path that is not there."""
    home = tmp_path / ("tmp" if case == "not marked" else "new\nline")
    home.mkdir()
    if case != "not marked":
        planted(home)
    home.chmod(0o1777)
    done = run(home, "status")
    assert (done.returncode, done.stdout) == (1, "")
    shown = str(home).replace("\n", "?")
    assert done.stderr == f"error: every user can change `{shown}`\nhint: set IMPRINT_HOME to another folder\n"


def test_a_home_with_a_newline_in_its_name_is_not_said_to_belong_to_somebody_else(tmp_path: Path) -> None:
    home = tmp_path / "new\nline 1 2 3 4 5 6 7 8"
    planted(home)
    assert run(home, "status").stdout == "it ran\n"


def test_a_link_to_a_home_that_everybody_may_change_does_not_hide_that(tmp_path: Path) -> None:
    planted(tmp_path / "home")
    (tmp_path / "home").chmod(0o777)
    (tmp_path / "link").symlink_to("home")
    done = run(tmp_path / "link", "status")
    assert (done.returncode, done.stdout) == (1, "")
    assert f"every user can change `{tmp_path / 'link'}`" in done.stderr


@pytest.mark.parametrize("words", [("status",), ("status", "--json"), ("setup", "--yes")])
def test_a_home_that_is_no_folder_is_said_to_be_none(tmp_path: Path, words: tuple[str, ...]) -> None:
    (tmp_path / "file").touch()
    for home in (Path("/dev/null"), tmp_path / "file"):
        done = run(home, *words)
        said = done.stdout + done.stderr
        assert done.returncode == 1
        assert f"`{home}` is not a folder" in said
        assert "chmod" not in said


DAMAGE = {
    "gone": None,
    "empty": b"",
    "random": bytes(range(256)),
    "not UTF-8": b"home = " + os.fsencode(Path(sys.base_prefix) / "bin") + b"\nversion = \xff\xfe\x00\n",
    "of a Python that is gone": b"home = /nowhere/bin\n",
    "of a folder without Python": b"home = /\n",
    "a folder": b"folder",
}


@pytest.mark.parametrize("how", DAMAGE)
@pytest.mark.parametrize("words", [("status",), ("status", "--json")])
def test_only_the_environment_itself_is_ever_named_for_deletion(
    tmp_path: Path, how: str, words: tuple[str, ...]
) -> None:
    """Never the Python that it was made from, which runs in its place once `pyvenv.cfg` is not heeded."""
    env = tmp_path / "tool" / ENV
    venv.create(env, symlinks=True)
    content, place = DAMAGE[how], env / "pyvenv.cfg"
    place.unlink()
    if how == "a folder":
        place.mkdir()
    elif content is not None:
        place.write_bytes(content)
    done = run(tmp_path, *words)
    assert done.returncode == 1
    if "--json" in words:
        (error,) = json.loads(done.stdout)["errors"]
        assert error["code"] == "tool-damaged"
        assert error["hint"] == f"delete `{env}`; the next start rebuilds it"
    else:
        assert done.stderr.startswith(f"error: the tool environment `{env}` is damaged: ")
        assert len(done.stderr.splitlines()) == 2
    assert f"`{sys.base_prefix}`" not in done.stdout + done.stderr


@pytest.mark.parametrize("variable", ["PYTHONEXECUTABLE", "__PYVENV_LAUNCHER__"])
@pytest.mark.parametrize("value", ["/bin/false", "/usr/bin/python3"])
def test_what_tells_python_that_it_lies_elsewhere_does_not_count(tmp_path: Path, variable: str, value: str) -> None:
    """Not even `-I` keeps Python from heeding these; macOS's own Python sets one of them for its children."""
    env = tmp_path / "tool" / ENV
    venv.create(env, symlinks=True)
    done = run(tmp_path, "status", **{variable: value})
    assert done.stderr.startswith(f"error: the tool environment `{env}` is damaged: No module named 'typer'\n")


def test_a_python_that_cannot_even_say_what_is_wrong_is_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "imprint_launch.unusable", None)
    monkeypatch.setattr(sys, "argv", ["-c", "status"])
    monkeypatch.setattr("site.main", lambda: None)
    assert entering.enter("/") == 1
    assert [line.partition(":")[0] for line in capsys.readouterr().err.splitlines()] == ["error", "hint"]


@AS_ROOT
def test_an_environment_that_this_user_may_not_read_is_not_called_damaged() -> None:
    shared = Path(f"/tmp/imprint-launcher-read-{os.getpid()}")  # noqa: S108 - a parent that others may enter
    env = planted(shared)
    try:
        subprocess.run(["chmod", "-R", "o+rX", shared], check=True)
        (env / "pyvenv.cfg").chmod(0o600)
        done = as_another_user(shared)
        assert done.stderr.startswith(f"error: the tool environment `{env}` cannot be read\n")
        assert "delete" not in done.stderr
    finally:
        shutil.rmtree(shared)


def as_another_user(shared: Path) -> subprocess.CompletedProcess[str]:
    """Run `status` with a home that others may read, from a checkout that lies in it, as a user who owns nothing."""
    code = "import os, sys; os.setgid(4321); os.setuid(4321); os.execv(sys.argv[1], sys.argv[1:])"
    kept = {"PATH": os.environ["PATH"], "IMPRINT_HOME": str(shared)}
    launcher = shutil.copytree(ROOT / "cmd", shared / "cmd") / "imprint"
    shutil.copytree(ROOT / "locks", shared / "locks")
    command = [sys.executable, "-c", code, str(launcher), "status"]
    return subprocess.run(command, capture_output=True, text=True, env=kept, cwd="/", check=False)


@AS_ROOT
def test_root_runs_nothing_that_another_user_owns(tmp_path: Path) -> None:
    env = planted(tmp_path)
    os.chown(env / "bin" / "python", 4321, -1)
    done = run(tmp_path, "status")
    assert (done.returncode, done.stdout) == (1, "")
    assert f"`{env / 'bin' / 'python'}` belongs to another user (number 4321)" in done.stderr
    assert "chown -R root" in done.stderr


@AS_ROOT
def test_a_home_of_roots_serves_others_and_a_group_may_share_one() -> None:
    """Neither root's own home, read by a service, nor one that a group writes to is refused."""
    shared = Path(f"/tmp/imprint-launcher-{os.getpid()}")  # noqa: S108 - a parent that others may enter
    planted(shared)
    try:
        subprocess.run(["chmod", "-R", "g+w,o+rX", shared], check=True)
        done = as_another_user(shared)
        assert done.stdout == "it ran\n", done.stderr
    finally:
        shutil.rmtree(shared)


@pytest.mark.parametrize("uv", [True, False])
def test_a_colon_in_the_home_works_or_is_refused_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uv: bool
) -> None:
    """Uv makes environments in such a folder, Python's venv does not."""
    home = tmp_path / "a:b"
    if uv:
        monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
        done = run(home, "config", "path")
        assert (done.returncode, done.stdout) == (0, f"{home / 'config.toml'}\n"), done.stderr
        return
    monkeypatch.setattr(building, "suitable_uv", lambda _environ: None)
    with pytest.raises(Failure, match="venv cannot work in a folder whose name contains `:`"):
        building.install(home, LOCK, home / "tool" / ENV, [], QUIET)
    assert sorted(path.name for path in (home / "tool").iterdir()) == ["building.lock"]
