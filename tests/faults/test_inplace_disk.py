"""The disk of somebody's environment is full: said with what is needed, and finished once there is space."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from imprint.errors import NoSpaceError
from support.foreign import BASE, OWNERS, Foreign, Wheels, make_wheels, reference

pytestmark = pytest.mark.faults


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Wheels:
    return make_wheels(tmp_path_factory.mktemp("foreign wheels"), parts=50)


@pytest.fixture
def foreign(tmp_path: Path, wheels: Wheels) -> Iterator[Foreign]:
    """Make an environment on a small disk of its own, so that files are copied there, not linked."""
    foreign = Foreign(tmp_path, wheels)
    foreign.prefix.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(foreign.prefix)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting needs the superuser")
    try:
        yield foreign
    finally:
        subprocess.run(["umount", "-l", foreign.prefix], check=True)


@pytest.mark.parametrize("left", [0, 8_000, 60_000, 200_000, 400_000, 600_000, 800_000])
def test_a_full_disk_is_said_and_space_is_all_it_takes(foreign: Foreign, left: int) -> None:
    foreign.own_uv("venv", "--quiet", "--allow-existing", "--python", foreign.python, str(foreign.prefix))
    foreign.install(*OWNERS, *BASE, "onnxruntime==1.31.1")
    before, owners = foreign.tree(), foreign.owned(*OWNERS, *BASE)
    filler = foreign.prefix / "filler"
    _fill(filler, foreign.prefix, left)
    said = None
    try:
        foreign.setup("cuda13")
    except NoSpaceError as error:
        said = error.message
    if said is not None:
        assert "free" in said
        assert foreign.owned(*OWNERS, *BASE) == owners
        # With an estimate it was noticed before anything was changed.
        assert "about" not in said or foreign.tree() == before
    filler.unlink()
    foreign.setup("cuda13")
    tree, expected = foreign.tree(), reference(foreign, "cuda13", *BASE)
    assert {path for path in {*tree, *expected} if tree.get(path) != expected.get(path)} == set()
    assert foreign.owned(*OWNERS, *BASE) == owners


def _fill(path: Path, disk: Path, left: int) -> None:
    status = os.statvfs(disk)
    size = status.f_bavail * status.f_frsize - left
    assert size > 0
    with path.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, size)
