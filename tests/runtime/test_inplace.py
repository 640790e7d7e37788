"""Somebody's own environment, in every state people report, ends with exactly the planned build and nothing lost."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from imprint.errors import BusyError, ImprintError, IntegrityError, NetworkError
from imprint.planning.model import Plan
from imprint.runtime import checkpoint
from imprint.runtime.foreign import inplace, journal, occupancy
from support.foreign import (
    BASE,
    BUILDS,
    CUDA12,
    CUDA13,
    NVIDIA,
    OWNERS,
    Foreign,
    Wheels,
    assert_exactly,
    hollow_with_orphans,
    make_wheels,
)

CPU, GPU = "onnxruntime==1.31.1", "onnxruntime-gpu==1.31.1"


def libraries(*names: str) -> list[str]:
    return [f"{name}=={NVIDIA[name][0]}" for name in names]


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Wheels:
    return make_wheels(tmp_path_factory.mktemp("foreign wheels"))


@pytest.fixture
def foreign(tmp_path: Path, wheels: Wheels) -> Foreign:
    return Foreign(tmp_path, wheels)


def both_builds(foreign: Foreign) -> None:
    foreign.install(GPU, CPU)


def both_builds_of_different_versions(foreign: Foreign) -> None:
    foreign.install("onnxruntime-gpu==1.26.0")
    foreign.install(CPU)


def hollow(foreign: Foreign) -> None:
    foreign.install(GPU, CPU)
    foreign.uninstall("onnxruntime")


def wrong_build_under_the_right_name(foreign: Foreign) -> None:
    foreign.install(GPU)
    foreign.install(CPU)
    shutil.rmtree(next(foreign.packages.glob("onnxruntime-1*.dist-info")))


def cuda_12_and_13(foreign: Foreign) -> None:
    foreign.install(GPU, *libraries(*CUDA13, "nvidia-cufft", "nvidia-nvjitlink"))
    foreign.install(*libraries(*CUDA12))


def cuda_libraries_alone(foreign: Foreign) -> None:
    foreign.install(*libraries(*CUDA13, *CUDA12))


def without_record(foreign: Foreign) -> None:
    foreign.install("onnxruntime-gpu==1.26.0", *libraries(*CUDA12, *CUDA13))
    for name in ("onnxruntime_gpu", "nvidia_cudnn_cu12", "nvidia_cublas"):
        (next(foreign.packages.glob(f"{name}-*.dist-info")) / "RECORD").unlink()


def without_installer(foreign: Foreign) -> None:
    foreign.install(GPU, *libraries(*CUDA13))
    for info in [*foreign.packages.glob("onnxruntime_gpu-*"), *foreign.packages.glob("nvidia_cu*.dist-info")]:
        (info / "INSTALLER").unlink()
    (foreign.packages / "onnxruntime" / "part3.py").unlink()


def without_metadata(foreign: Foreign) -> None:
    foreign.install(GPU, CPU, *libraries(*CUDA13))
    for name in ("onnxruntime_gpu", "nvidia_cudnn_cu13"):
        (next(foreign.packages.glob(f"{name}-*.dist-info")) / "METADATA").unlink()


def dist_info_alone(foreign: Foreign) -> None:
    for name in ("onnxruntime_gpu-1.31.1", "onnxruntime-1.31.1", "nvidia_cublas-13.0.2.14"):
        (foreign.packages / f"{name}.dist-info").mkdir()


def installed_twice(foreign: Foreign) -> None:
    foreign.install("onnxruntime-gpu==1.26.0")
    old = next(foreign.packages.glob("onnxruntime_gpu-*.dist-info"))
    shutil.copytree(old, foreign.root / "old")
    foreign.install(GPU)
    shutil.copytree(foreign.root / "old", old)


def listed_twice(foreign: Foreign) -> None:
    """Leave a second dist-info over the same files, as a restored backup does: uv stops while uninstalling it."""
    foreign.install(CPU, GPU)
    info = next(foreign.packages.glob("onnxruntime_gpu-*.dist-info"))
    other = info.with_name("onnxruntime_gpu-1.26.0.dist-info")
    shutil.copytree(info, other)
    (other / "METADATA").write_text((other / "METADATA").read_text().replace("Version: 1.31.1", "Version: 1.26.0"))


def record_of_nonsense(foreign: Foreign) -> None:
    foreign.install(GPU)
    record = next(foreign.packages.glob("onnxruntime_gpu-*.dist-info")) / "RECORD"
    content = record.read_text()
    record.unlink()  # the file is a link to the cache
    record.write_text(content + '\nonnxruntime/part3.py,nonsense,"ten",more\n/etc,,\n')


def truncated_library(foreign: Foreign) -> None:
    foreign.install(GPU, *libraries(*CUDA13))
    for path in (
        "onnxruntime/capi/libonnxruntime_providers_cuda.so",
        "nvidia/cudnn/lib/libcudnn.so",
    ):
        os.truncate(foreign.packages / path, 100)


def nothing(foreign: Foreign) -> None:
    del foreign


STATES: list[Callable[[Foreign], None]] = [
    nothing,
    both_builds,
    both_builds_of_different_versions,
    hollow,
    hollow_with_orphans,
    wrong_build_under_the_right_name,
    cuda_12_and_13,
    cuda_libraries_alone,
    without_record,
    without_installer,
    without_metadata,
    dist_info_alone,
    installed_twice,
    listed_twice,
    record_of_nonsense,
    truncated_library,
]


CASES = [
    # One build for each state in every run; the others when there is time.
    pytest.param(
        state,
        build,
        id=f"{state.__name__}-{build}",
        marks=() if sorted(BUILDS)[number % len(BUILDS)] == build else pytest.mark.slow,
    )
    for number, state in enumerate(STATES)
    for build in sorted(BUILDS)
]


@pytest.mark.parametrize(("state", "build"), CASES)
def test_every_state_ends_with_exactly_the_planned_build(
    foreign: Foreign, state: Callable[[Foreign], None], build: str
) -> None:
    foreign.create(*BASE)
    state(foreign)
    owners = foreign.owned(*OWNERS, *BASE)
    outcome = foreign.setup(build)
    assert (outcome.package, outcome.version) == BUILDS[build][:2]
    assert foreign.owned(*OWNERS, *BASE) == owners
    assert_exactly(foreign, build)
    assert not foreign.setup(build).changed


@pytest.mark.parametrize("pip", [pytest.param(True, marks=pytest.mark.slow), False])
@pytest.mark.parametrize("version", ["3.10", "3.12", "3.13"])
def test_other_pythons_and_environments_made_by_venv(tmp_path: Path, wheels: Wheels, version: str, pip: bool) -> None:
    try:
        # Shims that version managers put on PATH are there even when the version is not.
        asked = [f"python{version}", "-c", "import sys; print(sys.executable)"]
        python = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        pytest.skip(f"no python{version} on PATH")
    foreign = Foreign(tmp_path, wheels, python)
    foreign.create("numpy==2.4.6", CPU, GPU, pip=pip)
    outcome = foreign.setup("cuda13")
    assert outcome.package == "onnxruntime-gpu"
    assert not foreign.prepare("cuda13").pending
    assert foreign.packages.is_dir()
    assert pip == bool(list(foreign.packages.glob("pip-*.dist-info")))


@pytest.mark.slow
def test_an_environment_made_by_venv_keeps_its_pip(foreign: Foreign) -> None:
    foreign.create(*BASE, CPU, GPU, pip=True)
    before = foreign.owned("pip", *OWNERS)
    foreign.setup("cpu")
    assert foreign.owned("pip", *OWNERS) == before
    assert not foreign.prepare("cpu").pending


def test_missing_requirements_come_and_go_with_us(foreign: Foreign) -> None:
    foreign.create("numpy==1.26.4")
    outcome = foreign.setup("cpu")
    assert [change.name for change in outcome.plan.replacement.changes if change.name in {"numpy", "protobuf"}] == [
        "protobuf"
    ]
    [stays] = outcome.plan.replacement.stays
    assert (stays.name, stays.version, stays.pinned) == ("numpy", "1.26.4", "2.4.6")
    receipt = inplace.read_receipt(foreign.home, foreign.prefix)
    assert receipt is not None
    assert sorted(receipt.installed) == ["flatbuffers", "onnxruntime", "packaging", "protobuf"]


def test_a_shared_package_out_of_range_is_refused_naming_both_versions(foreign: Foreign) -> None:
    foreign.create("numpy==1.20.0")
    before = foreign.tree()
    with pytest.raises(ImprintError) as caught:
        foreign.prepare("cpu")
    assert caught.value.specific_code == "shared-out-of-range"
    assert "1.20.0" in caught.value.message
    assert "numpy>=1.21.6" in caught.value.message
    assert foreign.tree() == before


def test_who_keeps_a_shared_package_out_of_range_is_named(foreign: Foreign) -> None:
    """Another requirer that would take the needed version is not to blame."""
    foreign.wheels.add("holds-numpy", "3.1", {"holds/__init__.py": ""}, ["numpy<1.21"])
    foreign.wheels.add("takes-numpy", "3.2", {"takes/__init__.py": ""}, ["numpy>=1.19"])
    foreign.create("numpy==1.20.0", "holds-numpy==3.1", "takes-numpy==3.2")
    with pytest.raises(ImprintError) as caught:
        foreign.prepare("cpu")
    assert "where `holds-numpy` 3.1 (`numpy<1.21`) asks for it" in caught.value.message
    assert "holds-numpy" in (caught.value.hint or "")
    assert "takes-numpy" not in caught.value.message


def test_nobody_is_blamed_for_a_package_that_nobody_keeps(foreign: Foreign) -> None:
    foreign.create("numpy==1.20.0")
    with pytest.raises(ImprintError) as caught:
        foreign.prepare("cpu")
    assert "asks for it" not in caught.value.message
    assert caught.value.hint == "install `numpy>=1.21.6` there: nothing in that environment asks for another version"


def test_the_owners_libraries_stay_and_keep_the_files_they_share(foreign: Foreign) -> None:
    theirs = ["asks-for-cuda12==2.0", *libraries("nvidia-cublas-cu12", "nvidia-nccl-cu12")]
    foreign.create(*BASE, *theirs)
    foreign.install("onnxruntime-gpu==1.26.0", *libraries(*CUDA12))
    owners = foreign.owned(*OWNERS, *BASE, *theirs)
    outcome = foreign.setup("cuda13")
    assert foreign.owned(*OWNERS, *BASE, *theirs) == owners
    assert_exactly(foreign, "cuda13", *theirs)
    assert set(outcome.removed) == set(CUDA12) - {"nvidia-cublas-cu12"}


def test_two_versions_of_one_library_are_refused(foreign: Foreign) -> None:
    foreign.create(*BASE, "asks-for-cudnn12==2.0", *libraries("nvidia-cudnn-cu12"))
    with pytest.raises(ImprintError) as caught:
        foreign.prepare("cuda13")
    assert caught.value.specific_code == "shared-files"
    assert "9.10.2.21" in caught.value.message
    assert "9.16.0.29" in caught.value.message


def test_a_dry_run_lists_changes_and_what_those_who_require_it_get(foreign: Foreign) -> None:
    foreign.create(*BASE, CPU)
    before = foreign.tree()
    listed = foreign.prepare("cuda13").details.to_json()
    json.dumps(listed)
    assert {"name": "onnxruntime-gpu", "from": None, "to": "1.31.1", "why": "missing"} in listed["changes"]
    assert [change["name"] for change in listed["changes"] if change["to"] is None] == ["onnxruntime"]
    assert listed["requirers"] == [
        {
            "name": "asks-for-runtime",
            "version": "2.0",
            "requires": "onnxruntime>=1.17",
            "gets": "onnxruntime-gpu 1.31.1",
            "satisfied": True,
            "same_name": False,
        }
    ]
    going = [path for path in (foreign.packages / "onnxruntime").rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in going) <= listed["removed_bytes"] < 10**6
    assert foreign.tree() == before
    assert not foreign.home.root.exists() or not list(foreign.home.data.glob("**/journal.json"))


def test_repair_replaces_a_file_of_the_right_size(foreign: Foreign) -> None:
    foreign.create(*BASE)
    foreign.setup("cuda13")
    path = foreign.packages / "nvidia/cudnn/lib/libcudnn.so"
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(b"x" * len(content))
    assert not foreign.prepare("cuda13").pending
    foreign.setup("cuda13", repair=True)
    assert path.read_bytes() == content
    assert_exactly(foreign, "cuda13")


def test_nothing_in_the_environment_shares_its_content_with_what_is_ours(foreign: Foreign) -> None:
    foreign.create(*BASE, "onnxruntime==1.26.0")
    foreign.setup("cuda13")
    ours = {path.stat().st_ino for path in foreign.home.root.rglob("*") if path.is_file()}
    assert ours
    assert not {path.stat().st_ino for path in foreign.prefix.rglob("*") if path.is_file()} & ours


def test_a_damaged_cache_is_mended(foreign: Foreign) -> None:
    foreign.create(*BASE)
    foreign.setup("cpu")
    for library in foreign.home.cache.rglob("libonnxruntime.so.1.31.1"):
        os.truncate(library, 10)
    os.truncate(foreign.packages / "onnxruntime/capi/libonnxruntime.so.1.31.1", 10)
    foreign.setup("cpu")
    assert_exactly(foreign, "cpu")
    assert any("damaged onnxruntime" in event.message for event in foreign.events)


def test_a_download_that_fails_leaves_the_environment_alone(foreign: Foreign, tmp_path: Path) -> None:
    foreign.create(*BASE, CPU)
    before = foreign.tree()
    empty = tmp_path / "empty"
    empty.mkdir()
    uv = foreign.uv
    uv = type(uv)(uv.executable, uv.home, uv.environ, type(uv.sources)(offline=True, find_links=empty))
    with pytest.raises(NetworkError):
        inplace.apply(foreign.prepare("cuda13"), uv, foreign.events.append)
    assert foreign.tree() == before
    assert not inplace.is_interrupted(foreign.home, foreign.prefix)


def test_a_build_that_does_not_load_changes_nothing(foreign: Foreign) -> None:
    foreign.create(*BASE, CPU)
    (foreign.packages / "hindrance.pth").write_text("import sys; sys.modules['onnxruntime'] = None\n")
    before = foreign.tree()
    with pytest.raises(IntegrityError, match="does not load, so nothing was changed"):
        foreign.setup("cuda13")
    assert foreign.tree() == before
    (foreign.packages / "hindrance.pth").unlink()
    foreign.setup("cuda13")
    assert_exactly(foreign, "cuda13")


def test_what_is_no_environment_is_refused_with_the_reason(foreign: Foreign, tmp_path: Path) -> None:
    def refused(prefix: Path) -> tuple[str, str]:
        with pytest.raises(ImprintError) as caught:
            inplace.prepare(prefix, _plan(), foreign.home, locks=[foreign.wheels.lock("cpu")])
        return caught.value.specific_code, caught.value.message

    assert refused(tmp_path / "nowhere")[0] == "not-an-environment"
    (tmp_path / "file").write_text("")
    assert "is a file" in refused(tmp_path / "file")[1]
    system = tmp_path / "usr"
    (system / "bin").mkdir(parents=True)
    (system / "bin" / "python").symlink_to(sys.executable)
    assert "no `pyvenv.cfg`" in refused(system)[1]
    marker = system / "lib" / "python3.11" / "EXTERNALLY-MANAGED"
    marker.parent.mkdir(parents=True)
    marker.write_text("[externally-managed]\n")
    assert refused(system)[0] == "externally-managed"
    foreign.create()
    python = foreign.prefix / "bin" / "python"
    python.unlink()
    python.symlink_to(tmp_path / "gone")
    assert refused(foreign.prefix)[0] == "interpreter-gone"
    python.unlink()
    python.mkdir()
    assert refused(foreign.prefix) == ("interpreter-unusable", f"`{python}` is not a regular file")
    ours = foreign.home.runtimes / "20261129T000000Z-cpu"
    ours.mkdir(parents=True)
    assert refused(ours)[0] == "managed-target"


def test_a_read_only_tree_is_refused(foreign: Foreign, monkeypatch: pytest.MonkeyPatch) -> None:
    foreign.create(*BASE, CPU)
    deep = foreign.packages / "onnxruntime" / "capi"
    access = os.access

    def refuse(path: str | Path, mode: int) -> bool:
        # The superuser, who runs tests in containers, may write anywhere that is not mounted read-only.
        return Path(path) != deep and access(path, mode)

    monkeypatch.setattr(os, "access", refuse)
    with pytest.raises(ImprintError) as caught:
        foreign.prepare("cuda13")
    assert caught.value.specific_code == "environment-read-only"
    assert str(deep) in caught.value.message


def test_another_run_in_the_environment_is_waited_for(foreign: Foreign) -> None:
    foreign.create(*BASE)
    prepared = foreign.prepare("cpu")
    with occupancy.hold(foreign.prefix), pytest.raises(BusyError):
        inplace.apply(prepared, foreign.uv, foreign.events.append, wait_seconds=0.1)
    assert foreign.prepare("cpu").pending


@pytest.mark.parametrize("point", [point for point in inplace.POINTS if point != "inplace-finished"])
def test_an_error_at_any_point_is_finished_by_the_next_run(
    foreign: Foreign, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    foreign.create(*BASE, "onnxruntime-gpu==1.26.0", *libraries(*CUDA12))

    def stop(name: str) -> None:
        if name == point:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "listener", stop)
        with pytest.raises(KeyboardInterrupt):
            foreign.setup("cuda13")
    assert inplace.is_interrupted(foreign.home, foreign.prefix) == (
        inplace.POINTS.index(point) >= inplace.POINTS.index("inplace-journalled")
    )
    foreign.setup("cpu")
    assert_exactly(foreign, "cpu")
    assert not inplace.is_interrupted(foreign.home, foreign.prefix)
    left = journal.store_of(foreign.home, foreign.prefix).folder.iterdir()
    assert [path.name for path in left] == ["receipt.json"]
    assert not list(foreign.prefix.glob(".imprint*"))


def test_records_of_an_earlier_environment_at_the_same_path_do_not_count(foreign: Foreign) -> None:
    foreign.create()
    foreign.setup("cpu")
    assert inplace.read_receipt(foreign.home, foreign.prefix) is not None
    shutil.rmtree(foreign.prefix)
    foreign.create(*BASE)
    assert inplace.read_receipt(foreign.home, foreign.prefix) is None


def _plan() -> Plan:
    return Plan("cpu", "cpu.txt", "1.31.1", None, "device-cpu", "model.device is cpu")
