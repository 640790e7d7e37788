"""No command sends, looks up a name, or leaves a file outside IMPRINT_HOME, with the real ONNX Runtime, which would.

Needs the network once, for the real wheels, and strace. Each command then runs where there is no network, and what it
tried is read from its system calls.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import pytest
import typer

from imprint.inside.probe import layer_norm
from imprint.runtime.installer.uv import MIRROR, PASSED_THROUGH
from imprint_cli.registry import COMMANDS

ROOT = Path(__file__).parents[2]
START = "import sys; sys.path[:0] = sys.argv.pop(1).split('|'); from imprint_cli.__main__ import main; sys.exit(main())"
TEXT = "a text"
PLATFORM = "linux-x86_64"

ASKED_TO_DOWNLOAD: tuple[tuple[str, ...], ...] = (
    ("setup", "--yes"),
    ("setup", "--venv", "V", "--yes"),
    ("setup", "--repair", "--yes"),
    ("bundle", "B", "--for", PLATFORM),
)
"""In this order, with the network; everything after them has none. `V`, `B` stand for folders."""

ASKED_NOTHING: tuple[tuple[str, ...], ...] = (
    ("setup",),
    ("setup", "--dry-run"),
    ("setup", "--venv", "V"),
    ("bootstrap",),
    ("plan",),
    ("plan", "--explain", "--device", "gpu"),
    ("plan", "--venv", "V"),
    ("machine",),
    ("machine", "--venv", "V", "--redact"),
    ("devices",),
    ("check",),
    ("check", "--placement"),
    ("check", "--venv", "V"),
    ("status",),
    ("status", "--venv", "V"),
    ("config", "list"),
    ("config", "get", "model.device"),
    ("config", "set", "model.device", "auto"),
    ("config", "unset", "model.device"),
    ("config", "path"),
    ("doctor",),
    ("doctor", "--deep"),
    ("doctor", "--report"),
    ("doctor", "--venv", "V"),
    ("embed", TEXT),
    ("embed", "--venv", "V", "--query", TEXT),
    ("model", "list"),
    ("model", "show"),
    ("model", "path"),
    ("rollback",),
    ("prune",),
    ("prune", "--venv", "V"),
    ("model", "remove", "all-minilm-l6-v2"),
)
WORKS = {("setup",), ("check",), ("check", "--placement"), ("check", "--venv", "V"), ("doctor",), ("embed", TEXT)}
"""Those that load ONNX Runtime must have come that far, or nothing would have been tried."""

USE = """
import sys, time
import numpy, onnxruntime
model = bytes.fromhex(sys.argv[1])
onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
time.sleep(float(sys.argv[2]))
"""

REACHES_OUT = re.compile(
    r"(?:connect|sendto|sendmsg|sendmmsg)\(.*sa_family=AF_INET|/etc/resolv\.conf|/etc/nsswitch\.conf"
)
"""A connection or a datagram to an address, or the C library about to look up a host's name."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace"),
    pytest.mark.timeout(900),
]


@dataclass(frozen=True, slots=True)
class Place:
    """A home, an environment, and the folders of a user who looks at what appears in them."""

    root: Path

    @property
    def home(self) -> Path:
        """The home, which is not in the user's folders."""
        return self.root / "home"

    @property
    def environ(self) -> Mapping[str, str]:
        """A user's environment, with the folders of this place."""
        named = {"HOME": "user", "XDG_CACHE_HOME": "cache", "XDG_DATA_HOME": "share", "XDG_CONFIG_HOME": "config"}
        folders = {name: str(self.root / "own" / folder) for name, folder in (*named.items(), ("TMPDIR", "tmp"))}
        network = {name: os.environ[name] for name in (MIRROR, *PASSED_THROUGH) if name in os.environ}
        return {**network, "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "IMPRINT_HOME": str(self.home), **folders}

    def foreign(self) -> set[str]:
        """Return the files that lie in the user's folders."""
        return {path.relative_to(self.root).as_posix() for path in (self.root / "own").rglob("*") if path.is_file()}

    def arguments(self, words: Sequence[str]) -> list[str]:
        """Return the command line of `imprint WORDS`."""
        named = {"V": str(self.root / "V"), "B": str(self.root / "B")}
        paths = f"{ROOT}|{ROOT / 'cmd'}"
        return [sys.executable, "-P", "-c", START, paths, *(named.get(word, word) for word in words)]


def traced(argv: Sequence[str], environ: Mapping[str, str], log: Path) -> subprocess.CompletedProcess[str]:
    """Run without a network; every child's calls that concern one go into `log`."""
    trace = ["strace", "-f", "-qq", "-s", "256", "-e", "trace=network,openat,open,connect", "-o", str(log), *argv]
    inside = ["unshare", "-rn", "sh", "-c", 'ip link set lo up 2>/dev/null; exec "$@"', "sh", *trace]
    return subprocess.run(inside, env=environ, capture_output=True, text=True, check=False)


def tried(log: Path) -> list[str]:
    """Return the calls of a log that reach out."""
    return [line for line in log.read_text("utf-8", "replace").splitlines() if REACHES_OUT.search(line)]


def words_of_commands() -> Iterator[tuple[str, ...]]:
    for name, entry in COMMANDS.items():
        member = getattr(import_module(entry.module), entry.attribute)
        if not isinstance(member, typer.Typer):
            yield (name,)
            continue
        for command in member.registered_commands:
            callback = command.callback
            assert callback is not None
            yield name, command.name or callback.__name__.rstrip("_")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Make a home and an environment with the real ONNX Runtime, and look at what that left with the user."""
    if subprocess.run(["unshare", "-rn", "true"], capture_output=True, check=False).returncode:
        pytest.skip("needs a network namespace")
    made = Place(tmp_path_factory.mktemp("quiet"))
    for folder in ("user", "cache", "share", "config", "tmp"):
        (made.root / "own" / folder).mkdir(parents=True)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", made.root / "V"], check=True)
    for words in ASKED_TO_DOWNLOAD:
        ended = subprocess.run(made.arguments(words), env=made.environ, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, (words, ended.stderr)
        assert made.foreign() == set(), words
    return made


def test_every_command_is_tried() -> None:
    listed = {words[:2] if words[0] in {"config", "model"} else words[:1] for words in ASKED_NOTHING}
    asked = {words[:1] for words in ASKED_TO_DOWNLOAD}
    assert set(words_of_commands()) <= listed | asked


@pytest.mark.parametrize("words", ASKED_NOTHING, ids=" ".join)
def test_a_command_sends_nothing_and_leaves_nothing_outside_its_home(place: Place, words: tuple[str, ...]) -> None:
    log = place.root / "calls.txt"
    ended = traced(place.arguments(words), place.environ, log)
    assert "Traceback" not in ended.stderr
    assert ended.returncode == 0 or words not in WORKS, ended.stderr
    assert tried(log) == []
    assert place.foreign() == set()


@pytest.mark.parametrize(
    "module", [("gpu_runtime", "plan"), ("gpu_runtime", "check"), ("onnx_runtime", "unused", "cpu")]
)
def test_the_plumbing_sends_nothing_either(place: Place, module: tuple[str, ...]) -> None:
    log = place.root / "calls.txt"
    environ = {**place.environ, "PYTHONPATH": str(ROOT)}
    ended = traced([sys.executable, "-m", f"imprint.{module[0]}", *module[1:]], environ, log)
    assert ended.returncode == 0, ended.stderr
    assert tried(log) == []
    assert place.foreign() == set()


@pytest.mark.parametrize(("quiet", "seconds"), [(False, 12), (True, 2)])
def test_this_way_of_looking_sees_what_onnx_runtime_does_by_itself(
    place: Place, tmp_path: Path, *, quiet: bool, seconds: int
) -> None:
    """The control: a program of the user's own in the same environment, with and without the variable."""
    watched = Place(tmp_path)
    environ = {**watched.environ, **({"ORT_DISABLE_TELEMETRY": "1"} if quiet else {})}
    for folder in ("user", "cache", "share", "config", "tmp"):
        (watched.root / "own" / folder).mkdir(parents=True)
    python = str(place.root / "V" / "bin" / "python")
    ended = traced([python, "-c", USE, layer_norm().hex(), str(seconds)], environ, tmp_path / "calls.txt")
    assert ended.returncode == 0, ended.stderr
    assert bool(tried(tmp_path / "calls.txt")) is not quiet
    assert any("deviceid" in name for name in watched.foreign()) is not quiet


def test_a_login_reaches_no_process_list_but_by_the_users_own_command(tmp_path: Path) -> None:
    """Of all programs that a setup starts, none has the index's login among its arguments; nor is it said."""
    started = Place(tmp_path)
    (tmp_path / "own" / "tmp").mkdir(parents=True)
    log = tmp_path / "started.txt"
    index = "http://bob:s3cretpw@127.0.0.1:9/t0ken123/simple"
    trace = ["strace", "-f", "-qq", "-s", "4096", "-e", "trace=execve", "-o", str(log)]
    ended = subprocess.run(
        [*trace, *started.arguments(["setup", "--index-url", index, "--yes"])],
        env=started.environ,
        capture_output=True,
        text=True,
        check=False,
    )
    programs = [line for line in log.read_text("utf-8").splitlines() if "execve(" in line]
    assert ended.returncode == 5, ended.stderr
    assert any("uv" in line and "pip" in line for line in programs)
    assert not [line for line in programs[1:] if "s3cretpw" in line or "t0ken123" in line]
    told = ended.stdout + ended.stderr
    assert "http://127.0.0.1:9" in told
    assert not [secret for secret in ("bob", "s3cretpw", "t0ken123") if secret in told]
