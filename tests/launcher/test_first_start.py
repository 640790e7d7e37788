"""The first start of a bare checkout: what it builds, and what it says when it cannot."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from imprint import __version__
from imprint.errors import ImprintError, UsageError
from imprint.paths import find_home
from imprint_cli.registry import COMMANDS
from imprint_launch import __main__ as launch
from imprint_launch import brief, building, failure, surroundings, words
from imprint_launch.progress import Progress

ROOT = Path(__file__).resolve().parents[2]
LOCK = ROOT / "locks" / "tool.txt"
TOOLS = ("sh", "sha256sum", "ls", "uname", "readlink", "dirname")
QUIET = Progress(sys.stderr, quiet=True)


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


def test_the_home_without_home_is_the_one_that_the_library_finds(tmp_path: Path, bare_path: Path) -> None:
    """A service has no HOME; the launcher must not put its folder at the root of the file system then.

    A checkout with a lock of its own, so that no tool environment is there already.
    """
    shim = bare_path / "python3"
    shim.write_text('#!/bin/sh\necho "$*"\n')
    shim.chmod(0o755)
    (bare_path / "id").symlink_to(shutil.which("id") or "/")
    for folder in ("cmd", "locks"):
        (tmp_path / "checkout" / folder).mkdir(parents=True)
    shutil.copy(ROOT / "cmd" / "imprint", tmp_path / "checkout" / "cmd")
    (tmp_path / "checkout" / "locks" / "tool.txt").write_text("# of no checkout\n")
    command = [str(tmp_path / "checkout" / "cmd" / "imprint"), "status"]
    done = subprocess.run(command, capture_output=True, text=True, env={"PATH": str(bare_path)}, check=False)
    assert f"--home {find_home({}).root} " in done.stdout


def test_an_environment_that_lost_its_packages_is_named_with_the_way_out(tmp_path: Path) -> None:
    """No traceback: the folder, and that deleting it is enough."""
    digest = hashlib.sha256(LOCK.read_bytes()).hexdigest()
    place = tmp_path / "tool" / f"env-{digest}"
    venv.create(place, symlinks=True)
    done = run_launcher(tmp_path, os.environ["PATH"], "status")
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 2)
    assert f"the tool environment `{place}` is damaged" in done.stderr
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


@pytest.mark.parametrize(
    ("missing", "words_of_message", "hint"),
    [
        ({"venv"}, "lacks the venv module", f"python{sys.version_info.major}.{sys.version_info.minor}-venv"),
        ({"_ssl"}, "lacks the module `_ssl`", "install a complete Python"),
    ],
)
def test_a_python_without_a_module_is_told_what_brings_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: set[str], words_of_message: str, hint: str
) -> None:
    """Where neither uv nor a module that fetching it takes is there."""
    monkeypatch.setattr(building, "suitable_uv", lambda _environ: None)
    monkeypatch.setattr(building, "is_missing", missing.__contains__)
    with pytest.raises((failure.Failure, ImprintError), match=words_of_message) as caught:
        building.install(tmp_path / "home", LOCK, tmp_path / "home" / "tool" / "env-1", [], QUIET)
    assert hint in (getattr(caught.value, "hint", None) or "")
    assert list((tmp_path / "home" / "tool").glob(".*")) == []


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
    told = failure.classify(output, 5 * 2**20, Path("/somewhere"), command="uv pip install", returncode=2)
    assert (told.code, told.exit_code) == (code, exit_code)


@pytest.mark.parametrize(
    "output",
    [
        "error: Failed to create it\n  cause: of this\n  cause: not valid UTF-8: `x`",
        "error: Failed to create it\n  Caused by: not valid UTF-8: `x`",
        "  \u00d7 Failed to create it\n  ├─▶ of this\n  ╰─▶ not valid UTF-8: `x`",
    ],
)
def test_the_last_of_a_chain_of_causes_is_told(output: str) -> None:
    told = failure.classify(output, 0, Path("/x"), command="uv venv", returncode=2).message
    assert told.endswith("Failed to create it: not valid UTF-8: `x`")


def test_a_child_that_says_nothing_is_named_with_how_it_ended() -> None:
    for returncode, ended in ((2, "failed with exit code 2"), (-9, "was ended by signal 9")):
        told = failure.classify("", 0, Path("/x"), command="uv pip install", returncode=returncode)
        assert f"`uv pip install` {ended}" in told.message


def test_of_an_address_only_the_host_is_shown() -> None:
    """Wherever in it the secret is."""
    for login in ("bob:c@ret", "bob:se/c@ret", "bob:c ret"):
        address = f"https://{login}@host.example:8443/token/simple/?key=secret"
        output = f"error: Failed to fetch: `{address}`"
        told = failure.classify(output, 0, Path("/x"), command="uv", returncode=2, addresses=[address]).message
        # Where a slash comes before the last @, nobody can tell the host from a part of the password.
        assert ("https://…`" if "/" in login else "https://host.example:8443`") in told
        assert not [part for part in ("bob", "c@", "ret", "token", "secret") if part in told]


@pytest.mark.parametrize("links", [None, "/wheels"])
def test_without_a_network_the_hint_is_where_else_packages_come_from(links: str | None) -> None:
    """Not to look at a network that `--offline` forbids."""
    for output in (
        "  x No solution found:\n  Packages were unavailable because the network was disabled",
        "ERROR: No matching distribution found for uv==0.13.9",
    ):
        told = failure.classify(output, 0, Path("/x"), command="uv", returncode=1, offline=True, links=links)
        assert told.code == "network"
        assert "`--offline`" in told.message
        assert (f"`{links}` lacks wheels" if links else "`--find-links DIR`") in str(told.hint)
        assert "check the network" not in str(told.hint)


def test_an_untrusted_certificate_is_told_the_variable() -> None:
    output = "error: Failed to fetch: `https://x/`\n  Caused by: invalid peer certificate: UnknownIssuer"
    told = failure.classify(output, 0, Path("/x"), command="uv", returncode=2)
    assert (told.code, "SSL_CERT_FILE" in (told.hint or "")) == ("network", True)


@pytest.mark.parametrize(
    ("text", "version"),
    [("uv 0.13.9 (x86_64-unknown-linux-gnu)\n", (0, 13, 9)), ("uv 0.4.0", (0, 4, 0)), ("", None), ("uvx 1.2.3", None)],
)
def test_uv_version(text: str, version: tuple[int, ...] | None) -> None:
    """Only a real answer of uv counts as a version."""
    assert surroundings.parse_uv_version(text) == version


@pytest.mark.parametrize(
    ("given", "value"),
    [
        (["setup", "--index-url", "u"], "u"),
        (["setup", "--index-url=u"], "u"),
        (["setup", "--index-url"], None),
        (["setup"], None),
        ([], None),
    ],
)
def test_options_for_the_network_are_read_from_the_command(given: list[str], value: str | None) -> None:
    """A mirror named for setup is the one the tool environment comes from as well."""
    assert words.value_of("--index-url", given) == value


def test_settings_that_move_files_do_not_reach_the_installers(tmp_path: Path) -> None:
    """Proxies and certificates pass; targets, constraints and every other setting of uv's and pip's do not."""
    hostile = {"UV_INDEX": "x", "UV_NO_VERIFY_HASHES": "1", "PIP_TARGET": "/x", "PYTHONPATH": "/x", "VIRTUAL_ENV": "/x"}
    more = {
        f"PIP_{name}": "/x" for name in ("PREFIX", "ROOT", "USER", "PYTHON", "CONSTRAINT", "SRC", "LOG", "CACHE_DIR")
    }
    friendly = {"HTTPS_PROXY": "p", "SSL_CERT_FILE": "c", "PIP_PROXY": "q"}
    environ = surroundings.clean_environment({**hostile, **more, **friendly}, tmp_path)
    assert not (hostile | more).keys() & environ.keys()
    assert {name: environ[name] for name in friendly} == friendly
    assert environ["UV_CACHE_DIR"] == str(tmp_path)
    assert environ["PIP_CONFIG_FILE"] == os.devnull


def test_the_mirror_is_the_same_for_both_installers(tmp_path: Path) -> None:
    for environ, index in (({"UV_DEFAULT_INDEX": "a"}, None), ({"UV_DEFAULT_INDEX": "b"}, "a"), ({}, "a")):
        cleaned = surroundings.clean_environment(environ, tmp_path, index)
        assert (cleaned["UV_DEFAULT_INDEX"], cleaned["PIP_INDEX_URL"]) == ("a", "a")


def test_a_certificate_that_other_programs_use_reaches_both_installers(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    file.touch()
    cleaned = surroundings.clean_environment({"REQUESTS_CA_BUNDLE": str(file)}, tmp_path)
    assert (cleaned["SSL_CERT_FILE"], cleaned["PIP_CERT"]) == (str(file), str(file))


def test_a_relative_home_is_refused_as_json(tmp_path: Path) -> None:
    """With `--json` even the launcher's own refusal is one envelope on stdout."""
    environ = {**os.environ, "IMPRINT_HOME": "relative"}
    command = [str(ROOT / "cmd" / "imprint"), "plan", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, env=environ, cwd=tmp_path, check=False)
    answer = json.loads(done.stdout)
    assert (done.returncode, answer["ok"], answer["command"]) == (2, False, "plan")
    assert answer["errors"][0]["code"] == "usage"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("there", ["nothing", "a file", "an environment"])
@pytest.mark.parametrize("words", [("setup", "--json"), ("status",)])
def test_a_home_whose_path_is_not_utf8_is_refused_at_once(tmp_path: Path, there: str, words: tuple[str, ...]) -> None:
    """By the shell, by what builds the environment, and by the command line in one that was copied there."""
    home = os.fsencode(tmp_path) + b"/home\xff"
    if there == "a file":
        Path(os.fsdecode(home)).touch()
    if there == "an environment":
        env = tmp_path / "home" / "tool" / f"env-{hashlib.sha256(LOCK.read_bytes()).hexdigest()}"
        venv.create(env, symlinks=True)
        packages = next((env / "lib").glob("python*/site-packages"))
        (packages / "ours.pth").write_text("\n".join(filter(None, sys.path)))
        (tmp_path / "home").rename(os.fsdecode(home))
    environ = {**os.environb, b"IMPRINT_HOME": home}
    done = subprocess.run([ROOT / "cmd" / "imprint", *words], capture_output=True, env=environ, check=False)
    assert done.returncode == 2
    assert b"the path of Imprint's home is not valid UTF-8" in done.stdout + done.stderr
    if "--json" in words:
        error = json.loads(done.stdout.decode())["errors"][0]
        assert (error["code"], error["hint"]) == ("usage", "set IMPRINT_HOME to a folder whose path is valid UTF-8")
    assert there != "nothing" or list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["IMPRINT_HOME", "XDG_DATA_HOME", "HOME"])
def test_a_home_is_refused_wherever_its_path_comes_from(name: str) -> None:
    with pytest.raises(UsageError, match=r"not valid UTF-8: /x/\\xff"):
        find_home({name: os.fsdecode(b"/x/\xff")}, "linux")
    assert find_home({name: "/x/é"}, "linux").root.is_relative_to("/x/é")


@pytest.mark.parametrize(
    ("given", "shown", "code"),
    [
        (["--help"], "  setup      ", 0),
        (["-h"], "  embed      ", 0),
        (["setup", "--help"], "  --require-gpu\n", 0),
        (["config", "set", "--help"], "imprint config set KEY VALUE\n", 0),
        (["--version"], f"imprint {__version__}\n", 0),
        ([], "  setup      ", 2),
    ],
)
def test_help_and_version_build_nothing(tmp_path: Path, given: list[str], shown: str, code: int) -> None:
    done = run_launcher(tmp_path / "home", os.environ["PATH"], *given)
    assert done.returncode == code
    assert shown in (done.stderr if code else done.stdout)
    assert not (tmp_path / "home").exists()


def test_the_help_without_an_environment_knows_every_command_and_a_section_of_each() -> None:
    overview = brief.answer(["--help"], {}, ROOT)
    assert overview is not None
    for command in COMMANDS:
        assert f"\n  {command} " in overview.text
        section = brief.answer([command, "--help"], {}, ROOT)
        assert section is not None
        assert section.text.startswith(f"Usage: imprint {command}")
        assert "`" not in section.text.partition("\n")[0]


def test_help_into_a_pipe_that_nobody_reads_is_quiet(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    environ = {**os.environ, "IMPRINT_HOME": str(tmp_path / "home")}
    command = [str(ROOT / "cmd" / "imprint"), "--help"]
    with os.fdopen(writer, "wb") as pipe:
        done = subprocess.run(command, stdout=pipe, stderr=subprocess.PIPE, env=environ, check=False)
    assert (done.returncode, done.stderr) == (1, b"")


def test_nothing_ends_in_a_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not what nobody foresaw either, nor a terminal that lacks a character."""

    def odd(*_: object) -> None:
        raise ValueError("embedded null byte …")

    stderr = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(launch, "install", odd)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(sys, "stderr", stderr)
    monkeypatch.setattr(sys, "argv", ["x", "--home", "/h", "--lock", "l", "--into", "i", "--", "status"])
    assert launch.main() == 70
    stderr.seek(0)
    assert stderr.read().startswith(
        "error: this is a bug in Imprint's launcher (ValueError: embedded null byte \\u2026)"
    )


@pytest.mark.parametrize("given", [["setup"], ["embed", "--", "--help"], ["status", "--json"], ["embed", "--version"]])
def test_every_other_command_is_not_answered_by_the_launcher(given: list[str]) -> None:
    assert brief.answer(given, {}, ROOT) is None


def test_a_home_nobody_knows_is_not_blamed_on_the_variable() -> None:
    """Where neither HOME nor the user's entry says anything, IMPRINT_HOME was never set to a relative path."""
    with pytest.raises(failure.Failure, match="no home folder is known") as caught:
        surroundings.check_home(Path("~/.local/share/imprint"), {})
    assert "set HOME" in (caught.value.hint or "")
    with pytest.raises(failure.Failure, match="IMPRINT_HOME is a relative path"):
        surroundings.check_home(Path("here"), {"IMPRINT_HOME": "here"})


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        """Say so."""
        return True


def test_steps_are_said_and_on_a_terminal_the_seconds() -> None:
    for is_tty, said in ((False, "imprint: one …\nimprint: two …\n"), (True, "imprint: one …\nimprint: two …\n")):
        stream = Terminal() if is_tty else io.StringIO()
        progress = Progress(stream)
        progress.say("one")
        progress.say("two")
        progress.tick()
        progress.close()
        text = re.sub(r"\rimprint: two … \d+ s", "", stream.getvalue())
        assert (text, "\r" in stream.getvalue()) == (said, is_tty)


@pytest.mark.faults
def test_no_network_leaves_nothing_and_the_next_start_works(tmp_path: Path) -> None:
    """With the network cut off the first start exits 5 and leaves no half environment; later it succeeds."""
    home = tmp_path / "h\u00f6me with spaces"
    environ = {**os.environ, "IMPRINT_HOME": str(home), "PATH": _path_without_uv()}
    command = ["unshare", "-rn", str(ROOT / "cmd" / "imprint"), "status"]
    done = subprocess.run(command, capture_output=True, text=True, env=environ, check=False, timeout=200)
    assert done.returncode == 5, done.stderr
    assert "hint:" in done.stderr
    assert "Traceback" not in done.stderr
    assert [entry.name for entry in (home / "tool").iterdir()] == ["building.lock"]
    again = run_launcher(home, _path_without_uv(), "config", "path")
    assert again.returncode == 0, again.stderr
    assert again.stdout == f"{home / 'config.toml'}\n"


def _path_without_uv() -> str:
    """Return PATH without the folders that hold a uv, so that the launcher has to make one."""
    folders = os.environ["PATH"].split(os.pathsep)
    return os.pathsep.join(folder for folder in folders if not (Path(folder) / "uv").exists())
