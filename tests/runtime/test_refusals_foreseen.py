"""What a setup of somebody's environment would refuse for the files of its wheels is known before they are there.

A little of what each wheel brings is in our data; a setup that refused keeps the whole of what it had unpacked. So
nobody advises a setup that would refuse, and it refuses the second time without a download.
"""

from __future__ import annotations

import configparser
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from imprint import resources
from imprint.context import Context
from imprint.errors import ImprintError
from imprint.operations.doctor import DoctorOptions, diagnose
from imprint.operations.plan import PlanOptions, plan
from imprint.operations.setup import SetupOptions, setup
from imprint.operations.status import status
from imprint.paths import Home
from imprint.runtime.distributions.claims import folders_of
from imprint.runtime.distributions.inventory import normalize
from imprint.runtime.distributions.shipped import read_shipped
from imprint.runtime.foreign import journal
from imprint.runtime.installer.uv import find_uv
from support.foreign import BASE, Foreign, Wheels, make_wheels, tree_of
from support.played_check import home_with_model, played_check

REST = ("tokenizers==0.23.3", "orjson==3.13.0")
WHEELS = {"orjson": ("3.13.0", "orjson/__init__.py"), "tokenizers": ("0.23.3", "tokenizers/__init__.py")}


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Wheels:
    made = make_wheels(tmp_path_factory.mktemp("wheels"))
    for name, (version, file) in WHEELS.items():
        made.add(name, version, {file: ""})
    made.add("neighbour", "1.0", {"onnxruntime/neighbour.py": "theirs"})
    return made


def without_runtime(foreign: Foreign, *pins: str) -> None:
    foreign.create(*BASE, *REST, *pins)


def script(foreign: Foreign) -> Path:
    """Make one where a script of the owner's has the name of one of the build's."""
    without_runtime(foreign)
    mine = foreign.prefix / "bin" / "onnxruntime_test"
    mine.write_text("#!/bin/sh\necho mine\n")
    return mine


def folder(foreign: Foreign) -> Path:
    """Make one where a folder of the owner's has the name of a package."""
    foreign.create(*BASE, "tokenizers==0.23.3")
    mine = foreign.packages / "orjson" / "notes.txt"
    mine.parent.mkdir()
    mine.write_text("mine")
    return mine


def link(foreign: Foreign) -> Path:
    """Make one where a folder two levels down, into which a package would be installed, is a link."""
    foreign.create(*(pin for pin in BASE if not pin.startswith("protobuf")), *REST)
    mine = foreign.packages / "google" / "protobuf"
    mine.parent.mkdir()
    mine.symlink_to(foreign.root)
    return mine


def file(foreign: Foreign) -> Path:
    """Make one where a file of the owner's lies in a folder of somebody's, just where a wheel has one."""
    without_runtime(foreign, "neighbour==1.0")
    mine = foreign.packages / "onnxruntime" / "capi" / "library.so"
    mine.parent.mkdir()
    mine.write_text("mine")
    return mine


Make = Callable[[Foreign], Path]
KNOWN = pytest.mark.parametrize("make", [script, folder, link])
ALL = pytest.mark.parametrize("make", [script, folder, link, file])


def made_by(make: Make, tmp_path: Path, wheels: Wheels) -> tuple[Foreign, Context, Path]:
    foreign = Foreign(tmp_path, wheels)
    mine = make(foreign)
    home_with_model(foreign.home)
    if make is file:
        # Only the wheels tell that.
        with pytest.raises(ImprintError, match=r"library\.so"):
            foreign.setup("cpu")
    return foreign, Context(foreign.home, {"PATH": "/usr/bin:/bin"}, {"model.device": "cpu"}), mine


@ALL
def test_every_command_says_what_is_in_the_way(make: Make, tmp_path: Path, wheels: Wheels) -> None:
    foreign, context, mine = made_by(make, tmp_path, wheels)
    with pytest.raises(ImprintError) as refused:
        setup(context, SetupOptions(venv=foreign.prefix, dry_run=True), lambda _: None)
    error = refused.value
    assert error.specific_code == "not-ours"
    assert str(mine) in error.message
    told = plan(context, PlanOptions(venv=foreign.prefix, check=True), prove=played_check)
    assert [(one.message, one.hint) for one in told.errors] == [(error.message, error.hint)]
    said = status(context, foreign.prefix, prove=played_check).data
    assert said["problem"]["fix"] is None
    assert error.message in said["problem"]["hint"]
    assert said["pending"] is False
    found = diagnose(context, DoctorOptions(venv=foreign.prefix), prove=played_check).data["findings"]
    fixes = [one["fix"] or "" for one in found if one["status"] in {"warning", "error"}]
    assert not [fix for fix in fixes if "imprint setup" in fix]
    assert [fix for fix in fixes if str(mine) in fix]


@ALL
def test_setup_refuses_before_it_downloads_anything(make: Make, tmp_path: Path, wheels: Wheels) -> None:
    foreign, context, mine = made_by(make, tmp_path, wheels)
    shutil.rmtree(foreign.home.cache, ignore_errors=True)
    before = tree_of(foreign.packages)
    with pytest.raises(ImprintError) as refused:
        setup(context, SetupOptions(venv=foreign.prefix, offline=True), lambda _: None)
    assert str(mine) in refused.value.message
    assert tree_of(foreign.packages) == before
    assert not (foreign.home.cache / "wheels-v5").exists()


@ALL
def test_what_helps_does(make: Make, tmp_path: Path, wheels: Wheels) -> None:
    foreign, context, mine = made_by(make, tmp_path, wheels)
    gone = mine.parent if make is folder else mine
    gone.rename(foreign.root / "moved away")
    assert setup(context, SetupOptions(venv=foreign.prefix, dry_run=True), lambda _: None).ok
    foreign.setup("cpu")
    assert not journal.store_of(foreign.home, foreign.prefix).refused.exists()


def test_a_script_that_starts_the_same_is_not_in_the_way(tmp_path: Path, wheels: Wheels) -> None:
    foreign = Foreign(tmp_path, wheels)
    script(foreign).write_text("#!/old/python\nimport sys\nfrom onnxruntime.tools.onnxruntime_test import main\n")
    assert foreign.prepare("cpu").pending


def test_a_package_that_claims_the_file_is_named_instead(tmp_path: Path, wheels: Wheels) -> None:
    """What was refused is judged again, with all that has changed since."""
    foreign, _, mine = made_by(file, tmp_path, wheels)
    wheels.add("claims-it", "1.0", {"onnxruntime/capi/library.so": "mine"})
    foreign.install("claims-it==1.0")
    with pytest.raises(ImprintError, match="claims-it") as refused:
        foreign.prepare("cpu")
    assert refused.value.specific_code == "shared-files"
    assert mine.read_text() == "mine"


def test_of_another_environment_at_the_same_place_nothing_is_remembered(tmp_path: Path, wheels: Wheels) -> None:
    foreign, _, _ = made_by(file, tmp_path, wheels)
    shutil.rmtree(foreign.prefix)
    file(foreign)
    assert foreign.prepare("cpu").pending


@pytest.mark.slow
@pytest.mark.parametrize(("lock", "python"), [("cpu", "3.12"), ("cpu-1.23", "3.10"), ("base", "3.12")])
def test_our_data_says_what_the_real_wheels_bring(lock: str, python: str, tmp_path: Path) -> None:
    uv = find_uv(Home(tmp_path), dict(os.environ)).executable
    wanted = [*("--python-platform", "x86_64-manylinux_2_28", "--python-version", python), "--require-hashes"]
    argv = ["pip", "install", "--quiet", "--no-deps", "--only-binary", ":all:", *wanted]
    subprocess.run([uv, *argv, "--target", tmp_path / "target", "-r", resources.lock_path(f"{lock}.txt")], check=True)
    brings = read_shipped().brings
    for info in sorted((tmp_path / "target").glob("*.dist-info")):
        name = normalize(info.name.partition("-")[0])
        lines = brings.get(name) or folders_of(name) or (name.replace("-", "_"),)
        paths = {line.partition(",")[0] for line in (info / "RECORD").read_text().splitlines()}
        assert {line for line in lines if " = " in line} == scripts_of(info), name
        for folder in {line for line in lines if " = " not in line}:
            assert any(path.startswith(f"{folder}/") for path in paths), name


def scripts_of(info: Path) -> set[str]:
    entries = configparser.ConfigParser()
    entries.read([info / "entry_points.txt"])
    return {f"{name} = {called}" for name, called in entries.items("console_scripts")} if entries.sections() else set()
