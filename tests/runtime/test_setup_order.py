"""Whatever can stop a setup stops it before the runtime is changed."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from imprint.context import Context
from imprint.errors import ImprintError, InterruptedByUserError, NetworkError
from imprint.hints import helps
from imprint.operations.setup import Seams, SetupOptions, setup
from imprint.paths import Home
from imprint.runtime.interrupts import interruptible
from support.foreign import BASE, Foreign, Wheels, make_wheels
from support.place import MACHINE, Place
from support.sandbox import snapshot
from support.twins import Twins, lock, make_twins, twin_check


@pytest.fixture(scope="module")
def twins(tmp_path_factory: pytest.TempPathFactory) -> Twins:
    return make_twins(tmp_path_factory.mktemp("twins"))


@pytest.fixture
def place(tmp_path: Path, twins: Twins) -> Place:
    return Place(tmp_path / "home", twins)


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Wheels:
    made = make_wheels(tmp_path_factory.mktemp("foreign wheels"))
    lock(made.lock("base"), {"numpy==2.4.6": made.made["numpy==2.4.6"]})
    return made


def no_model_to_be_had(home: Home, name: str, **_: object) -> None:
    """Stand for a download that fails."""
    raise NetworkError(f"the model {name} cannot be downloaded to `{home.models}`", hint="try again")


@pytest.mark.parametrize("before", ["", "gpu"])
def test_a_model_that_cannot_be_had_leaves_the_runtime_as_it_is(
    place: Place, monkeypatch: pytest.MonkeyPatch, before: str
) -> None:
    if before:
        place.setup(before)
    runtimes = sorted(place.home.runtimes.glob("*"))
    pointer = place.home.current.read_bytes() if before else b""
    monkeypatch.setattr("support.place.no_model", no_model_to_be_had)
    with pytest.raises(NetworkError):
        place.setup("cpu")
    assert sorted(place.home.runtimes.glob("*")) == runtimes
    assert (place.home.current.read_bytes() if before else b"") == pointer


def test_going_back_to_what_is_kept_waits_for_the_model_too(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.setup("cpu")
    place.setup("gpu")
    pointer = place.home.current.read_bytes()
    monkeypatch.setattr("support.place.no_model", no_model_to_be_had)
    with pytest.raises(NetworkError):
        place.setup("cpu")
    assert place.home.current.read_bytes() == pointer


def test_a_model_that_cannot_be_had_leaves_an_environment_as_it_is(tmp_path: Path, wheels: Wheels) -> None:
    foreign = Foreign(tmp_path, wheels)
    foreign.create(*BASE, "onnxruntime==1.26.0")
    before = snapshot(foreign.prefix)
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("UV_", "PIP_", "IMPRINT_"))}
    seams = Seams(
        machine=MACHINE,
        check=twin_check,
        lock_path=lambda name: wheels.lock(name.removesuffix(".txt")),
        install_model=no_model_to_be_had,
    )
    options = SetupOptions(offline=True, find_links=wheels.folder, venv=foreign.prefix, wait_seconds=0)
    with pytest.raises(NetworkError):
        setup(Context(foreign.home, environ, {"model.device": "cpu"}), options, lambda _: None, seams=seams)
    assert snapshot(foreign.prefix) == before


@pytest.mark.parametrize(("point", "current"), [("checked", False), ("pointer-flipped", True), ("pruned", True)])
def test_an_interrupt_says_which_runtime_is_current(
    place: Place, monkeypatch: pytest.MonkeyPatch, point: str, current: bool
) -> None:
    place.setup("cpu")

    def strike(reached: str) -> None:
        if reached == point:
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr("imprint.runtime.checkpoint.listener", strike)
    with pytest.raises(InterruptedByUserError) as caught:
        place.setup("gpu")
    assert caught.value.hint == helps("changed-already" if current else "as-before")
    assert ("gpu" in place.runs()) == current
    monkeypatch.undo()
    with pytest.raises(InterruptedByUserError) as caught, interruptible("the next"):
        os.kill(os.getpid(), signal.SIGTERM)
    assert caught.value.hint == helps("as-before")


KINDS = ("a file", "a FIFO", "a link to a file", "a dangling link")


@pytest.mark.parametrize("kind", KINDS)
def test_what_lies_in_the_place_of_the_models_is_named_before(place: Place, tmp_path: Path, kind: str) -> None:
    place.setup("gpu")
    models, kept = place.home.models, tmp_path / "file.txt"
    models.rename(tmp_path / "moved")
    kept.write_text("owned\n")
    if kind == "a file":
        models.write_text("owned\n")
    elif kind == "a FIFO":
        os.mkfifo(models)
    else:
        models.symlink_to(kept if kind == "a link to a file" else "nowhere")
    pointer, generation = place.home.current.read_bytes(), place.prefix
    with pytest.raises(ImprintError) as caught:
        place.setup("cpu")
    assert caught.value.specific_code == "home-not-writable"
    assert f"`{models}`" in caught.value.message
    assert str(models) in (caught.value.hint or "")
    assert (place.home.current.read_bytes(), place.prefix) == (pointer, generation)
    assert [folder.name for folder in place.home.runtimes.iterdir()] == [generation.name]
