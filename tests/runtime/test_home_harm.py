"""What lies in a home, or is called one, loses nothing that is not ours; nor does what the home's files name.

Everything runs in a sandbox that can write one folder alone, with canaries in it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from contracts.runner import ROOT, run_cli, scrubbed
from imprint.errors import ImprintError
from imprint.operations.prune import prune
from imprint.paths import Home
from imprint.results import Result
from imprint.runtime.foreign import journal
from imprint.runtime.managed import deferred
from support.foreign import Wheels
from support.handmade import Handmade, expected, passing, plant, small_wheels
from support.judge import run
from support.place import Place
from support.sandbox import differences, run_in, snapshot
from support.twins import Twins, make_twins


@pytest.fixture(scope="module")
def twins(tmp_path_factory: pytest.TempPathFactory) -> Twins:
    return make_twins(tmp_path_factory.mktemp("twins"))


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Wheels:
    return small_wheels(tmp_path_factory.mktemp("foreign wheels"))


def harmless(tmp_path: Path, body: Callable[[], object]) -> None:
    """Run the body in a sandbox with canaries beside the home `tmp_path/home`, and demand that they are as before."""

    def inside() -> list[str]:
        plant(tmp_path)
        before = snapshot(tmp_path, without=lambda path: path == "home")
        body()
        return differences(before, snapshot(tmp_path, without=lambda path: path == "home"))

    assert run_in(tmp_path, inside) == []


def refused(call: Callable[[], object]) -> ImprintError:
    with pytest.raises(ImprintError) as caught:
        call()
    assert caught.value.hint
    return caught.value


def another_application(root: Path) -> None:
    """Write what another application may have, under the names that are ours elsewhere."""
    for folder in (
        "runtimes/20260101T000000Z-cpu-1.31.1-abcd/bin",
        "tool/env-0123",
        "data",
        "models/.staging-x",
        "empty",
    ):
        (root / folder).mkdir(parents=True)
    for file in (
        "runtimes/20260101T000000Z-cpu-1.31.1-abcd/bin/program",
        "tool/env-0123/program",
        "data/current.json",
        "data/.own.tmp",
        "data/deferred.json",
        "models/.staging-x/file",
        "notes.txt",
    ):
        (root / file).write_text("another application's\n")


COMMANDS = [
    *(["status"], ["plan"], ["doctor"], ["config", "list"], ["devices"], ["model", "list"]),
    *(["prune"], ["setup", "--offline", "--yes"], ["rollback"], ["config", "set", "model.device", "cpu"], ["check"]),
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_another_applications_folder_is_left_as_it_is(tmp_path: Path, command: list[str]) -> None:
    """Through the command line: what only reads says what it sees, what writes refuses."""

    def body() -> None:
        home = tmp_path / "home"
        another_application(home)
        before = snapshot(home)
        environ = {"HOME": str(tmp_path / "owner's home"), "TMPDIR": str(tmp_path / "home-less")}
        ran = run_cli(home, command, environ=environ)
        assert differences(before, snapshot(home)) == [], ran
        assert ran.code != 70, ran
        if command[0] in {"prune", "setup", "rollback"} or command[:2] == ["config", "set"]:
            assert ran.code != 0
            assert str(home) in ran.err, ran.err

    harmless(tmp_path, body)


@pytest.mark.parametrize("operation", ["setup", "prune"])
def test_operations_refuse_another_applications_folder(tmp_path: Path, twins: Twins, operation: str) -> None:
    def body() -> None:
        place = Place(tmp_path / "home", twins)
        another_application(place.home.root)
        before = snapshot(place.home.root)
        error = refused(place.setup if operation == "setup" else lambda: prune(place.context))
        assert error.specific_code == "not-ours"
        assert differences(before, snapshot(place.home.root)) == []

    harmless(tmp_path, body)


NAMES = [
    "--cache-dir=CANARY",
    "-r",
    "onnxruntime-y @ file:///z",
    "https://host.invalid/x",
    "",
    "..",
    "a b",
    "nvidia-cublas",
]


@pytest.mark.parametrize("name", NAMES)
def test_names_that_wait_are_names_and_never_options(tmp_path: Path, twins: Twins, name: str) -> None:
    def body() -> None:
        place = Place(tmp_path / "home", twins)
        place.setup("cpu")
        hostile = name.replace("CANARY", str(tmp_path / "x"))
        value = {"schema": 1, "folders": [{"path": str(tmp_path / "x"), "bytes": 1, "pid": 1}], "names": [hostile]}
        deferred.path_of(place.home).write_text(json.dumps(value))
        for _ in range(2):
            result = prune(place.context)
            assert result.ok
        assert not os.path.lexists(deferred.path_of(place.home)), "what is no name is not kept"
        assert result.warnings == ()
        assert place.runs() == "onnxruntime 1.31.1 onnxruntime"

    harmless(tmp_path, body)


@pytest.mark.parametrize("name", ["onnxruntime-y @ file:///z", "--cache-dir=/x", "", "nvidia-\x1b[2J"])
def test_a_hostile_name_in_metadata_never_waits(tmp_path: Path, wheels: Wheels, name: str) -> None:
    def body() -> None:
        made = Handmade(tmp_path, wheels)
        made.make()
        made.install("onnxruntime-gpu==1.26.0")
        path = made.info("onnxruntime_gpu") / "METADATA"
        path.write_text(path.read_text().replace("Name: onnxruntime-gpu", f"Name: {name}"))
        ended = run(made, "cuda13")
        assert ended.problem is None
        if ended.result is not None:
            assert "cache-busy" not in {warning.code for warning in ended.result.warnings}
            assert made.loads() == expected("cuda13")
        assert not os.path.lexists(deferred.path_of(made.home))

    run_in(tmp_path, body)


LINKS = [
    "setup.lock.holder",
    "setup.lock",
    "tool/env-0123",
    "data/.own.tmp",
    "runtimes/20260101T000000Z-cpu-1.31.1-abcd",
]


@pytest.mark.parametrize(
    "target", ["x/file.txt", *(pytest.param(name, marks=pytest.mark.slow) for name in ("x/y", "gone"))]
)
@pytest.mark.parametrize("name", LINKS)
def test_a_link_in_the_home_is_never_followed(tmp_path: Path, twins: Twins, name: str, target: str) -> None:
    def body() -> None:
        place = Place(tmp_path / "home", twins)
        place.setup("cpu")
        path = place.home.root / name
        path.unlink(missing_ok=True)
        path.parent.mkdir(exist_ok=True)
        path.symlink_to(tmp_path / target)
        calls: list[Callable[[], Result[Any]]] = [lambda: place.setup("gpu"), lambda: prune(place.context)]
        for call in calls:
            said = str(path)
            try:
                call()
            except ImprintError as error:
                said = error.message
            assert str(path) in said

    harmless(tmp_path, body)


@pytest.mark.parametrize("name", ["install.txt", "kept", "staged-old", "lock", "journal.json", "receipt.json"])
def test_a_link_beside_the_journal_is_never_followed(tmp_path: Path, wheels: Wheels, name: str) -> None:
    def body() -> None:
        made = Handmade(tmp_path, wheels)
        made.make()
        canaries = made.canaries()
        for target in ("x/file.txt", "x/y"):
            folder = journal.store_of(made.home, made.prefix).folder
            folder.mkdir(parents=True, exist_ok=True)
            (folder / name).unlink(missing_ok=True)
            (folder / name).symlink_to(tmp_path / target)
            made.setup("cpu" if target == "x/y" else "cuda13")
            assert differences(canaries, made.canaries()) == []

    run_in(tmp_path, body)


def test_two_homes_and_one_environment_at_once(tmp_path: Path, wheels: Wheels) -> None:
    """Whoever comes second waits; both end in a whole build, and the last of them in its own."""

    def body() -> None:
        made = Handmade(tmp_path, wheels)
        made.make()
        ends: list[tuple[int, int]] = []
        for number, build in enumerate(["cpu", "cuda13"]):
            if (pid := os.fork()) == 0:
                code = 1
                try:
                    other = Handmade(tmp_path, wheels)
                    other.home = Home(tmp_path / f"home {number}")
                    code = 0 if other.setup(build).ok else 2
                finally:
                    os._exit(code)
            ends.append((number, pid))
        codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for _, pid in ends]
        assert codes == [0, 0]
        assert made.loads() in {expected("cpu"), expected("cuda13")}
        assert not list(made.prefix.glob(".imprint*"))

    run_in(tmp_path, body)


@pytest.mark.parametrize("what", ["a generation", "another home's generation", "a tool environment", "our own"])
def test_an_environment_of_our_own_is_refused(tmp_path: Path, wheels: Wheels, what: str) -> None:
    def body() -> None:
        made = Handmade(tmp_path, wheels)
        made.make()
        if what == "our own":
            _refuses_its_own(made)
            return
        home = made.home if what != "another home's generation" else Home(tmp_path / "owner's home" / "imprint")
        other = Place(home.root, make_twins(tmp_path / "tmp" / "twins"))
        other.check = passing
        other.setup("cpu")
        place = home.tool / f"env-{'0' * 64}" if what == "a tool environment" else other.prefix
        if what == "a tool environment":
            shutil.copytree(made.prefix, place, symlinks=True)
        made.prefix = place
        before = snapshot(place)
        error = refused(made.setup)
        assert error.specific_code == "managed-target"
        assert refused(made.prune).specific_code == "managed-target"
        assert differences(before, snapshot(place)) == []

    run_in(tmp_path, body)


def _refuses_its_own(made: Handmade) -> None:
    """Run the command line with the environment's own interpreter."""
    launch = "import sys; sys.path[:0] = sys.argv[1].split('|'); sys.argv[1:2] = []\n"
    launch += "from imprint_cli.app import main; sys.exit(main())"
    packages = [path for path in sys.path if path.endswith("site-packages")]
    places = "|".join(map(str, [ROOT, ROOT / "cmd", *packages]))
    argv = [made.prefix / "bin" / "python", "-P", "-B", "-c", launch, places]
    environ = scrubbed(os.environ) | {"IMPRINT_HOME": str(made.home.root), "HOME": str(made.owner)}
    environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), environ["PATH"]])
    for command in ("setup", "prune"):
        before = made.environment()
        more = ["--offline", "--yes"] if command == "setup" else []
        arguments: list[Any] = [*argv, command, "--venv", made.prefix, "--json", *more]
        ended = subprocess.run(arguments, env=environ, capture_output=True, text=True, check=False)
        assert ended.returncode not in {0, 70}, ended.stderr
        assert "managed-target" in ended.stdout, ended.stdout + ended.stderr
        assert differences(before, made.environment()) == []
