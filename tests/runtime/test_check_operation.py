"""`check` as an operation: what it records, what it does not, and what else it says."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from imprint.operations import check as operation
from imprint.operations.status import gpu_missed, status
from imprint.planning.model import Device
from imprint.runtime.check.run import CPU, CUDA, CheckResult, Step
from imprint.state import last_run, verdicts
from imprint.state.last_run import LastRun
from imprint.words import FailureKind, Outcome
from support.place import MACHINE, Place
from support.twins import make_twins

Prove = Callable[[Path, Device | None, Mapping[str, str]], CheckResult]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Return a home with the twin of the GPU build, proved, on a machine with a GPU that is only described."""
    root = tmp_path_factory.mktemp("check")
    place = Place(root / "home", make_twins(root / "twins"))
    place.setup("gpu")
    place.context = replace(place.context, flags={"model.device": "gpu"})
    return place


@pytest.fixture
def place(made: Place, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """Return that home; its state is put back afterwards."""
    monkeypatch.setattr("imprint.probing.survey.survey", lambda *_, **__: MACHINE)
    before = {path: path.read_bytes() for path in made.home.data.iterdir()}
    yield made
    for path in made.home.data.iterdir():
        path.unlink()
    for path, content in before.items():
        path.write_bytes(content)


def proving(outcome: Outcome, kind: FailureKind | None, library: str | None = None, wheel: str | None = None) -> Prove:
    def prove(_: Path, device: Device | None, __: Mapping[str, str]) -> CheckResult:
        provider = CPU if device is None else CUDA
        steps = {"conv": Step(ok=outcome == "ok")}
        return CheckResult(outcome, kind, provider, device, "played", library, wheel=wheel, steps=steps)

    return prove


def recorded(place: Place) -> list[tuple[str, str | None]]:
    found = verdicts.load(place.home)
    return [(one.result, one.kind) for one in found]


@pytest.mark.parametrize(
    ("outcome", "kind", "verdict"),
    [
        ("ok", None, ("ok", None)),
        ("failed", "no-kernel", ("failed", "no-kernel")),
        ("failed", "wrong-numbers", ("failed", "wrong-numbers")),
        ("failed", "matmul-failed", ("failed", "matmul-failed")),
        ("crashed", "crashed", ("failed", "crashed")),
    ],
)
def test_what_was_proved_of_the_gpu_is_recorded(
    place: Place, outcome: Outcome, kind: FailureKind | None, verdict: tuple[str, str | None]
) -> None:
    result = operation.check(place.context, prove=proving(outcome, kind))
    assert result.data["recorded"]
    assert recorded(place) == [verdict]
    assert result.ok == (outcome == "ok")


@pytest.mark.parametrize("kind", ["timeout", "out-of-memory", "busy", "killed"])
def test_what_proves_nothing_is_never_recorded(place: Place, kind: FailureKind) -> None:
    result = operation.check(place.context, prove=proving("inconclusive", kind))
    assert not result.data["recorded"]
    assert recorded(place) == [("ok", None)]
    assert [error.code for error in result.errors] == ["check-inconclusive"]


def test_a_library_that_a_wheel_should_have_brought_is_no_verdict_on_the_gpu(place: Place) -> None:
    missing = proving("failed", "library-missing", library="libcurand.so.10", wheel="nvidia-curand")
    result = operation.check(place.context, prove=missing)
    assert recorded(place) == [("ok", None)]
    assert [(warning.code, warning.hint) for warning in result.warnings] == [
        ("not-recorded", "run `imprint setup --repair`")
    ]
    driver = proving("failed", "library-missing", library="libcuda.so.1")
    assert operation.check(place.context, prove=driver).data["recorded"]
    assert recorded(place) == [("failed", "library-missing")]


def test_a_damaged_runtime_is_no_verdict_on_the_gpu(place: Place) -> None:
    library = next(place.prefix.rglob("libcublas.so.13"))
    aside = library.rename(library.with_name("aside"))
    result = operation.check(place.context, prove=proving("failed", "wrong-numbers"))
    aside.rename(library)
    assert not result.data["recorded"]
    assert recorded(place) == [("ok", None)]
    assert "damaged" in result.warnings[0].message


def test_a_build_that_failed_once_can_be_checked_again(place: Place) -> None:
    operation.check(place.context, prove=proving("failed", "matmul-failed"))
    again = operation.check(place.context, prove=proving("ok", None))
    assert again.data["device"]["kind"] == "gpu"
    assert recorded(place) == [("ok", None)]


def test_a_worker_that_missed_the_gpu_is_told_until_a_check_is_ok(place: Place) -> None:
    assert status(place.context).data["runs_on"] == "gpu"
    generation = place.prefix.name
    last_run.note(place.home, LastRun("gpu", CPU, generation, "m"))
    told = status(place.context)
    assert (told.data["runs_on"], told.data["missed_gpu"]) == ("cpu", True)
    assert told.data["line"].startswith("embeddings ran on the CPU at 2")
    assert told.warnings == (gpu_missed(),)
    operation.check(place.context, prove=proving("ok", None))
    assert status(place.context).data["runs_on"] == "gpu"
    last_run.note(place.home, LastRun("gpu", CPU, "another-generation", "m"))
    assert status(place.context).data["runs_on"] == "gpu"


def test_a_placement_without_a_model_says_what_is_missing(place: Place) -> None:
    shutil.rmtree(place.home.models)
    result = operation.check(place.context, placement=True, prove=proving("ok", None))
    assert result.data["outcome"] == "ok"
    assert result.data["placement"] is None
    assert [error.code for error in result.errors] == ["model-missing"]
