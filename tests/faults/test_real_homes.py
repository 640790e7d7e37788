"""The real model embeds in each kind of home in which somebody may read: a played worker would not open its files.

Needs the network once, for the runtime and the model.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from contracts.runner import Ran
from faults.test_homes import open_folder
from imprint.paths import Home
from imprint.runtime.target import current_target
from support.sandbox import run_in
from support.users import OWNER, ROOT_USER, SERVICE, SHARERS, User, give, seen, why_not

pytestmark = [pytest.mark.faults, pytest.mark.slow, pytest.mark.timeout(600)]

WORDS = ("embed", "a text", "--format", "jsonl")


@pytest.fixture(scope="module", autouse=True)
def _another_user() -> None:
    if (why := why_not()) is not None:
        pytest.skip(why)


@pytest.fixture(scope="module")
def made() -> Iterator[Path]:
    """Make a home as root does; each test has its own copy of it in the same place, since environments do not move."""
    with open_folder() as folder:
        ran = ROOT_USER.run(folder / "home", "setup", "--yes", "--json")
        assert ran.code == 0, ran
        yield folder / "home"


@pytest.fixture
def home(made: Path) -> Iterator[Home]:
    kept = made.with_name("kept")
    shutil.copytree(made, kept, symlinks=True)
    yield Home(made)
    shutil.rmtree(made)
    kept.rename(made)


def embedded(ran: Ran) -> list[float]:
    assert ran.code == 0, ran
    (line,) = ran.out.splitlines()
    found: list[float] = json.loads(line)["embedding"]
    return found


def of_root(home: Home) -> Ran:
    return SERVICE.run(home.root, *WORDS)


def of_its_own(home: Home) -> Ran:
    give(home.root, SERVICE)
    home.root.chmod(0o700)
    return SERVICE.run(home.root, *WORDS)


def of_a_group(home: Home) -> Ran:
    for path in (home.root, *home.root.rglob("*")):
        if not path.is_symlink():
            os.chown(path, OWNER.uid, SHARERS)
            path.chmod(path.stat().st_mode | 0o060 if path.is_file() else 0o2770)
    return User(SERVICE.uid, SERVICE.gid, (SHARERS,), umask=0o002).run(home.root, *WORDS)


def on_a_read_only_file_system(home: Home) -> Ran:
    return run_in(home.root.with_name("open"), lambda: SERVICE.run(home.root, *WORDS))


@pytest.mark.parametrize("kind", [of_root, of_its_own, of_a_group, on_a_read_only_file_system])
def test_the_real_model_embeds(home: Home, kind: Callable[[Home], Ran]) -> None:
    target = current_target(home)
    assert target is not None
    before = seen(target.prefix), seen(home.models)
    vector = embedded(kind(home))
    assert len(vector) == 384
    assert abs(sum(number * number for number in vector) - 1) < 1e-4
    if kind in {of_root, on_a_read_only_file_system}:
        assert (seen(target.prefix), seen(home.models)) == before


def test_a_model_that_may_not_be_read_is_named(home: Home) -> None:
    (model,) = home.models.glob("*/model.onnx")
    model.chmod(0o600)
    ran = SERVICE.run(home.root, *WORDS)
    assert (ran.code, ran.out) == (1, "")
    assert str(model) in ran.err
    model.chmod(0o644)
    embedded(SERVICE.run(home.root, *WORDS))
