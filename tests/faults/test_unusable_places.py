"""Each place of a home in turn holds what no run of ours puts there: setup ends, or leaves what worked as it was."""

from __future__ import annotations

import random
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from faults.test_hostile_homes import judge
from imprint.paths import Home
from support.handmade import plant
from support.hostile_homes import Disorder
from support.place import Place
from support.sandbox import run_in
from support.twins import Twins, make_twins

pytestmark = pytest.mark.faults

PLACES = (
    *("models", "data", "data/logs", "data/inplace", "runtimes", "tool", ".uv-cache", ".imprint-home"),
    *("data/gpu_state.json", "data/deferred.json", "data/last_run.json", "data/current.json"),
    *("config.toml", "secrets.toml", "setup.lock", "setup.lock.holder", "runtimes/*-cpu-*/manifest.json"),
)
WRONG = ("a FIFO", "a folder", "a link to a file", "a link to a folder", "a dangling link", "garbage")


@pytest.fixture(scope="module")
def twins(tmp_path_factory: pytest.TempPathFactory) -> Twins:
    return make_twins(tmp_path_factory.mktemp("twins"))


@pytest.mark.timeout(600)
@pytest.mark.parametrize("operation", ["setup cpu", "repair gpu"])
@pytest.mark.parametrize("name", PLACES)
def test_whatever_lies_in_a_place_of_the_home_what_worked_still_works(
    tmp_path: Path, twins: Twins, name: str, operation: str
) -> None:
    devices = ("cpu", "gpu") if operation == "setup cpu" else ("gpu", "cpu")

    def body() -> list[str]:
        home, template = Home(tmp_path / "work" / "home"), tmp_path / "template"
        place = Place(home.root, twins)
        for device in devices:
            place.setup(device)
        home.root.rename(template)
        faults = []
        for kind in WRONG:
            shutil.rmtree(tmp_path / "work")
            (tmp_path / "work").mkdir()
            plant(tmp_path / "work")
            subprocess.run(["cp", "-a", template, home.root], check=True)
            disorder = Disorder(tmp_path / "work", home, random.Random(0), lent={"x/y"})  # noqa: S311 - not secret
            path = next(home.root.glob(name)) if "*" in name else home.root / name
            disorder.replace(path, kind)
            faults += [f"{kind}: {problem}" for problem in judge(place, operation, disorder, Counter())]
        return faults

    assert run_in(tmp_path, body) == []
