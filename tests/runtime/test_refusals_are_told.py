"""Nobody advises a setup of somebody's environment that would refuse: its refusal is what is told instead."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from imprint.context import Context
from imprint.errors import ImprintError
from imprint.operations.doctor import DoctorOptions, diagnose
from imprint.operations.plan import PlanOptions, plan
from imprint.operations.setup import SetupOptions, setup
from imprint.operations.status import status
from support.foreign import BASE, Foreign, Wheels, make_wheels
from support.played_check import home_with_model, played_check


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Wheels:
    """Return wheels, and beside them packages that stand in the way of a planned build."""
    made = make_wheels(tmp_path_factory.mktemp("wheels"))
    made.add("old-science", "1.0", {"old_science/__init__.py": ""}, ["numpy<1.20"])
    made.add("protobuf", "3.20.3", {"google/__init__.py": ""})
    for name, version in (("orjson", "3.13.0"), ("tokenizers", "0.23.3")):
        made.add(name, version, {f"{name}/__init__.py": ""})
    return made


def held_back(foreign: Foreign) -> None:
    """Make one that lacks NumPy, beside a package that takes no NumPy the build could use."""
    foreign.create(*(pin for pin in BASE if not pin.startswith("numpy")), "onnxruntime==1.31.1")
    foreign.install("old-science==1.0", "tokenizers==0.23.3", "orjson==3.13.0")


def linked(foreign: Foreign) -> None:
    """Make one where a folder into which a package would be installed is a link."""
    foreign.create(*BASE, "onnxruntime==1.31.1", "tokenizers==0.23.3")
    (foreign.packages / "orjson").symlink_to(foreign.root / "elsewhere")


def from_an_egg(foreign: Foreign) -> None:
    """Make one with a vendor's build that was not installed from a wheel."""
    foreign.create(*BASE, "tokenizers==0.23.3", "orjson==3.13.0")
    egg = foreign.packages / "onnxruntime_directml-1.20.0.egg-info"
    egg.mkdir()
    (egg / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: onnxruntime-directml\nVersion: 1.20.0\n")
    (egg / "top_level.txt").write_text("onnxruntime\n")


def out_of_range(foreign: Foreign) -> None:
    """Make one that works, with a version of a requirement that the build does not take."""
    pins = [pin for pin in BASE if not pin.startswith("protobuf")]
    foreign.create(*pins, "onnxruntime==1.31.1", "protobuf==3.20.3", "tokenizers==0.23.3", "orjson==3.13.0")


ALL = pytest.mark.parametrize("make", [held_back, linked, from_an_egg, out_of_range])
WANTING = pytest.mark.parametrize("make", [held_back, linked, from_an_egg])


def made_by(make: Callable[[Foreign], None], tmp_path: Path, wheels: Wheels) -> tuple[Foreign, Context, ImprintError]:
    """Return an environment, the surroundings of a command, and how setup refuses."""
    foreign = Foreign(tmp_path, wheels)
    make(foreign)
    home_with_model(foreign.home)
    context = Context(foreign.home, {"PATH": "/usr/bin:/bin"}, {"model.device": "cpu"})
    with pytest.raises(ImprintError) as refused:
        setup(context, SetupOptions(venv=foreign.prefix, dry_run=True), lambda _: None)
    return foreign, context, refused.value


@ALL
def test_plan_check_fails_as_setup_would(make: Callable[[Foreign], None], tmp_path: Path, wheels: Wheels) -> None:
    foreign, context, refused = made_by(make, tmp_path, wheels)
    told = plan(context, PlanOptions(venv=foreign.prefix, check=True), prove=played_check)
    assert [(error.message, error.hint) for error in told.errors] == [(refused.message, refused.hint)]
    assert told.data["pending"] is False


@WANTING
def test_status_says_why_setup_does_not_help(make: Callable[[Foreign], None], tmp_path: Path, wheels: Wheels) -> None:
    foreign, context, refused = made_by(make, tmp_path, wheels)
    told = status(context, foreign.prefix, prove=played_check).data
    assert told["problem"]["fix"] is None
    assert refused.message in told["problem"]["hint"]
    assert refused.message in told["line"]
    assert "would install" not in told["line"]
    assert told["pending"] is False


@WANTING
def test_doctor_does_not_send_to_a_setup(make: Callable[[Foreign], None], tmp_path: Path, wheels: Wheels) -> None:
    foreign, context, refused = made_by(make, tmp_path, wheels)
    found = diagnose(context, DoctorOptions(venv=foreign.prefix), prove=played_check).data["findings"]
    fixes = {one["code"]: one["fix"] or "" for one in found if one["status"] in {"warning", "error"}}
    assert not [fix for fix in fixes.values() if "imprint setup" in fix]
    if make is from_an_egg:
        assert refused.message in fixes["not-installed"]


def test_the_cpu_build_is_not_offered_where_it_would_not_fit(tmp_path: Path, wheels: Wheels) -> None:
    _, _, refused = made_by(held_back, tmp_path, wheels)
    assert "--device" not in (refused.hint or "")
