"""A hostile or broken index: one clear error that names the file, in bounded time, and what was current stays."""

from __future__ import annotations

import shutil
import time
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from imprint.errors import ImprintError, IntegrityError, NetworkError
from imprint.runtime.distributions import inventory
from imprint.runtime.installer import watch
from support.hostile_index import Index, serving
from support.place import Place
from support.twins import VERSION, Twins, lock, make_twins, runtime_files, wheel

pytestmark = pytest.mark.faults

GPU_BUILD = f"onnxruntime-gpu {VERSION} onnxruntime-gpu"


@pytest.fixture(scope="module")
def twins(tmp_path_factory: pytest.TempPathFactory) -> Twins:
    return make_twins(tmp_path_factory.mktemp("twins"))


@pytest.fixture
def place(tmp_path: Path, twins: Twins) -> Place:
    """Return a place whose GPU build is current; the CPU build comes from the index of the test."""
    made = Place(tmp_path / "home", twins)
    made.setup("gpu")
    return made


def from_index(place: Place, index: Index) -> ImprintError | None:
    """Set up the CPU build from an index and return the error, None when it went well."""
    prefix = place.prefix
    with serving(index):
        try:
            place.setup("cpu", offline=False, find_links=None, index_url=index.url)
        except ImprintError as error:
            assert place.prefix == prefix
            assert place.runs() == GPU_BUILD
            assert [folder.name for folder in place.home.runtimes.iterdir()] == [prefix.name]
            return error
    return None


def test_an_honest_index_serves(place: Place) -> None:
    assert from_index(place, Index(place.twins.wheels)) is None
    assert place.runs() == f"onnxruntime {VERSION} onnxruntime"


@pytest.mark.parametrize(
    ("trick", "kind"),
    [
        ("wrong-bytes", IntegrityError),
        ("endless", NetworkError),
        ("slow", NetworkError),
        ("truncated", NetworkError),
        ("sdist-only", NetworkError),
        ("missing-file", NetworkError),
        ("broken-page", NetworkError),
    ],
)
def test_a_hostile_index_is_an_error_that_names_the_file(
    place: Place, monkeypatch: pytest.MonkeyPatch, trick: str, kind: type[ImprintError]
) -> None:
    monkeypatch.setattr(watch, "STALL_SECONDS", 60.0 if trick == "truncated" else 3.0)
    monkeypatch.setattr(watch, "most_of", lambda _: 20 * 10**6)
    began = time.monotonic()
    error = from_index(place, Index(place.twins.wheels, trick))
    assert isinstance(error, kind)
    assert "onnxruntime" in error.message
    assert error.hint
    assert time.monotonic() - began < 60
    assert place.setup("cpu").ok, "an honest source mends it"


def _other_content(folder: Path) -> None:
    path = next(folder.glob("onnxruntime-1*.whl"))
    path.unlink()
    files = runtime_files("onnxruntime") | {"onnxruntime/__init__.py": "raise SystemExit('hostile')\n"}
    wheel(folder, "onnxruntime", VERSION, files)


def _other_version_under_the_name(folder: Path) -> None:
    path = next(folder.glob("onnxruntime-1*.whl"))
    next(folder.glob("onnxruntime_gpu-*.whl")).replace(path)


def _no_wheel_at_all(folder: Path) -> None:
    next(folder.glob("onnxruntime-1*.whl")).write_bytes(b"<html>a login page</html>")


@pytest.mark.parametrize("change", [_other_content, _other_version_under_the_name, _no_wheel_at_all])
@pytest.mark.parametrize("way", ["index", "folder"])
def test_other_bytes_under_the_right_name_never_come_in(
    place: Place, tmp_path: Path, way: str, change: Callable[[Path], None]
) -> None:
    other = shutil.copytree(place.twins.wheels, tmp_path / "other")
    change(other)
    if way == "index":
        error: ImprintError | None = from_index(place, Index(other))
    else:
        with pytest.raises(ImprintError) as caught:
            place.setup("cpu", find_links=other)
        error = caught.value
    assert error is not None
    assert error.code in {"integrity", "network"}
    assert "onnxruntime" in error.message
    assert place.runs() == GPU_BUILD


def test_a_dependency_that_no_lock_names_is_not_installed(place: Place, tmp_path: Path) -> None:
    other = make_twins(tmp_path / "other")
    wheel(other.wheels, "evil", "1.0", {"evil/__init__.py": ""})
    numpy = wheel(other.wheels, "numpy", "2.4.6", {"numpy/__init__.py": ""}, requires=["evil"])
    lock(other.lock_path("base.txt"), {"numpy==2.4.6": numpy})
    place.twins = other
    index = Index(other.wheels)
    assert from_index(place, index) is None
    assert "evil" not in inventory.inspect(place.prefix).versions
    assert not [path for path in index.asked if "evil" in path]


@pytest.mark.parametrize("inside", ["../../../escaped.py", "/tmp/imprint-escaped.py", "onnxruntime/../../escaped.py"])  # noqa: S108 - a name in an archive
def test_a_wheel_with_paths_that_lead_out_is_refused(place: Place, tmp_path: Path, inside: str) -> None:
    """Even when its hash is in the lock."""
    other = make_twins(tmp_path / "other")
    path = next(other.wheels.glob("onnxruntime-1*.whl"))
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(inside, "escaped = True\n")
    lock(other.lock_path("cpu.txt"), {f"onnxruntime=={VERSION}": path})
    place.twins = other
    error = from_index(place, Index(other.wheels))
    assert not list(tmp_path.rglob("*escaped.py"))
    assert not Path("/tmp/imprint-escaped.py").exists()  # noqa: S108 - as above
    assert error is None or error.code in {"integrity", "network"}
    assert error is None or "onnxruntime" in error.message


def test_a_mirror_of_the_surroundings_counts_and_no_further_index(place: Place, tmp_path: Path) -> None:
    """`UV_DEFAULT_INDEX` is the user's mirror, `--index-url` beats it; every other name has no effect."""
    with serving(Index(place.twins.wheels)) as mirror, serving(Index(tmp_path)) as other:
        hostile = {
            "UV_INDEX": other.url,
            "UV_EXTRA_INDEX_URL": other.url,
            "UV_INDEX_URL": other.url,
            "UV_FIND_LINKS": other.url,
            "UV_NO_VERIFY_HASHES": "1",
            "UV_INDEX_STRATEGY": "unsafe-best-match",
        }
        environ = {**place.context.environ, **hostile}
        place.context = replace(place.context, environ={**environ, "UV_DEFAULT_INDEX": mirror.url})
        assert place.setup("cpu", offline=False, find_links=None).ok
        place.context = replace(place.context, environ={**environ, "UV_DEFAULT_INDEX": other.url})
        assert place.setup("cpu", offline=False, find_links=None, index_url=mirror.url, repair=True).ok
    assert mirror.asked
    assert other.asked == []
