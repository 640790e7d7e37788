"""What can be tried of the GPU run without a GPU: slices, links, and taking libraries away."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gpu import slices
from gpu.run import EXPECTED, TEXTS
from gpu.slices import MissingError, cut, join
from gpu.target import Without, libraries_by_wheel, link_libraries
from imprint.resources import lock_path
from imprint.runtime.distributions.pins import read_lock


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    folder = tmp_path / "wheels"
    folder.mkdir()
    (folder / "big.whl").write_bytes(bytes(range(250)) * 10)
    (folder / "exact.whl").write_bytes(b"x" * 2000)
    (folder / "small.whl").write_bytes(b"s")
    return folder


def test_what_is_cut_is_joined_to_the_same_bytes(wheels: Path, tmp_path: Path) -> None:
    written = cut(wheels, tmp_path / "slices", 1000)
    assert [path.stat().st_size for path in written] == [1000, 1000, 500, 1000, 1000, 1]
    join(tmp_path / "slices", tmp_path / "joined")
    assert {path.name: path.read_bytes() for path in (tmp_path / "joined").iterdir()} == {
        path.name: path.read_bytes() for path in wheels.iterdir()
    }


def test_slices_pass_through_the_door() -> None:
    assert slices.SIZE < 60 * 10**6


def test_missing_and_damaged_slices_are_named_and_nothing_is_joined(wheels: Path, tmp_path: Path) -> None:
    written = cut(wheels, tmp_path / "slices", 1000)
    written[1].unlink()
    written[4].write_bytes(b"y" * 1000)
    with pytest.raises(MissingError, match=r"2 slices .*: 000-001\.slice, 001-001\.slice"):
        join(tmp_path / "slices", tmp_path / "joined")
    assert not (tmp_path / "joined").exists()
    command = [sys.executable, slices.__file__, "join", str(tmp_path / "slices"), str(tmp_path / "joined")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert ended.stderr.startswith("error: 2 slices are missing")


@pytest.mark.skipif(os.name == "nt", reason="links")
def test_libraries_are_linked_where_they_lack_and_can_be_taken_away(tmp_path: Path) -> None:
    prefix, torch = tmp_path / "env", tmp_path / "torch"
    own = prefix / "lib/python3.11/site-packages/nvidia/cu13/lib/libcublas.so.13"
    for path in (
        own,
        torch / "nvidia/cu13/lib/libcublas.so.13",
        torch / "nvidia/cu13/lib/libcurand.so.10",
        torch / "nvidia/cudnn/lib/libcudnn.so.9",
        torch / "nvidia/cudnn/lib/libcudnn_ops.so.9",
        torch / "nvidia/nccl/lib/libnccl.so.2",
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(str(path))
    linked = link_libraries(prefix, [torch])
    assert set(linked) == {"libcurand.so.10", "libcudnn.so.9", "libcudnn_ops.so.9", "libnccl.so.2"}
    assert own.read_text() == str(own)
    found = libraries_by_wheel(prefix, "13.0")
    assert {wheel: len(paths) for wheel, paths in found.items()} == {
        "nvidia-cublas": 1,
        "nvidia-cudnn-cu13": 2,
        "nvidia-curand": 1,
    }
    with Without(found["nvidia-cudnn-cu13"]):
        assert set(libraries_by_wheel(prefix, "13.0")) == {"nvidia-cublas", "nvidia-curand"}
    assert libraries_by_wheel(prefix, "13.0") == found
    assert (torch / "nvidia/cudnn/lib/libcudnn.so.9").exists()


def test_every_library_of_the_locks_is_taken_away_by_the_run() -> None:
    for lock in ("cuda13.txt", "cuda12.txt"):
        names = {pin.name for pin in read_lock(lock_path(lock)) if pin.name.startswith("nvidia-")}
        parts = {name.removeprefix("nvidia-").removesuffix("-cu12").removesuffix("-cu13") for name in names}
        assert parts - {"cufft", "nvjitlink"} == set(EXPECTED)
    assert len(set(TEXTS)) == len(TEXTS) == 48
