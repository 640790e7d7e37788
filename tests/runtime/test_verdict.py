"""What is said of a target rests on a check that still holds, or on one made now; and what setup says besides."""

from __future__ import annotations

import io
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from imprint.diagnosis.facts import Unused
from imprint.diagnosis.gathering.home import unused
from imprint.embedding.models import folder_of
from imprint.errors import ImprintError
from imprint.operations.check import check
from imprint.operations.config import get_key
from imprint.operations.doctor import DoctorOptions, diagnose
from imprint.operations.embed import EmbedOptions, embed
from imprint.operations.plan import PlanOptions, plan
from imprint.operations.prune import prune
from imprint.operations.status import status
from imprint.planning.model import Device, Plan
from imprint.planning.model import Python as Interpreter
from imprint.runtime.check.run import CPU, CUDA, CheckResult
from imprint.runtime.installer import space
from imprint.runtime.managed import deferred
from imprint.runtime.target import current_target
from imprint.state import mutex
from imprint.words import FailureKind, Outcome
from support.place import MACHINE, Place, machine_like_this
from support.twins import Twins, make_twins, twin_check

CAUSE = "CUDA error 36: API call is not supported in the installed CUDA driver"


@pytest.fixture(scope="session")
def twins(tmp_path_factory: pytest.TempPathFactory) -> Twins:
    return make_twins(tmp_path_factory.mktemp("twins"))


@pytest.fixture
def place(tmp_path: Path, twins: Twins) -> Place:
    return Place(tmp_path / "home", twins)


def failing(python: Path, device: Device | None, environ: Mapping[str, str]) -> CheckResult:
    """Stand for a GPU whose check fails with a cause."""
    if device is None:
        return twin_check(python, None, environ)
    return CheckResult("failed", "provider-failed", CUDA, device, CAUSE)


class Counted:
    """A check that says what it is told to, and how often it was asked."""

    def __init__(self, outcome: Outcome = "ok", kind: FailureKind | None = None) -> None:
        self.asked = 0
        self.answer = CheckResult(outcome, kind, CPU, None, None if outcome == "ok" else "libstdc++.so.6: cannot open")

    def __call__(self, _python: Path, _device: Device | None, _environ: Mapping[str, str]) -> CheckResult:
        """Answer."""
        self.asked += 1
        return self.answer


def on_the_cpu(place: Place, **environ: str) -> Place:
    context = place.context
    place.context = replace(context, environ={**context.environ, **environ}, flags={"model.device": "cpu"})
    return place


# --- a proof, and what ends it ---------------------------------------------------------------------------------------


def test_while_nothing_has_changed_nothing_is_started(place: Place) -> None:
    place.setup()
    place.checks.clear()
    place.setup()
    assert place.checks == []
    prove = Counted("failed")
    told = status(on_the_cpu(place).context, prove=prove)
    assert prove.asked == 0
    assert told.ok
    assert told.data["proof"]["changed"] == []
    assert plan(place.context, PlanOptions(check=True), prove=prove).ok
    assert prove.asked == 0


def touched(place: Place) -> None:
    file = next(place.prefix.glob("lib/python3*/site-packages/onnxruntime/part3.py"))
    content = file.read_bytes()
    file.unlink()
    file.write_bytes(content)


def another_start_file(place: Place) -> None:
    next(place.prefix.glob("lib/python3*/site-packages")).joinpath("late.pth").write_text("import sys\n")


def another_python(place: Place) -> None:
    config = place.prefix / "pyvenv.cfg"
    config.write_text(config.read_text("utf-8").replace("version_info = 3", "version_info = 4"), "utf-8")


def another_loader_path(place: Place) -> None:
    on_the_cpu(place, LD_LIBRARY_PATH="/somewhere/else")


@pytest.mark.parametrize("change", [touched, another_start_file, another_python, another_loader_path])
def test_what_has_changed_since_is_proved_again(place: Place, change: Callable[[Place], None]) -> None:
    """The same files written anew, something that Python runs at its start, another Python, another loader path."""
    place.setup()
    on_the_cpu(place)
    change(place)
    good, bad = Counted(), Counted("failed", "import-failed")
    assert status(place.context, prove=good).data["runs_on"] == "cpu"
    told = status(place.context, prove=bad)
    assert (good.asked, bad.asked) == (1, 1)
    assert (told.ok, told.data["runs_on"], told.data["embeds"]) == (False, "none", False)
    assert "ONNX Runtime 1.31.1 does not load: libstdc++.so.6: cannot open" in told.data["line"]
    found = plan(place.context, PlanOptions(check=True), prove=bad)
    assert (found.ok, found.data["pending"]) == (False, False)
    place.checks.clear()
    place.setup()
    assert len(place.checks) == 1, "setup proves it again, and records that"
    place.setup()
    assert len(place.checks) == 1


def lost(prefix: Path) -> None:
    (prefix / "pyvenv.cfg").unlink()


def overwritten(prefix: Path) -> None:
    (prefix / "pyvenv.cfg").write_bytes(b"\xff\xfe" * 100)


def without_its_python(prefix: Path) -> None:
    (prefix / "pyvenv.cfg").write_text("version = 3.11.7\n", encoding="utf-8")


def with_a_folder_for_a_python(prefix: Path) -> None:
    (prefix / "bin" / "python").unlink()
    (prefix / "bin" / "python").mkdir()


def with_a_pipe_for_a_python(prefix: Path) -> None:
    (prefix / "bin" / "python").unlink()
    os.mkfifo(prefix / "bin" / "python", 0o755)


CONFIG, PYTHON = "its `pyvenv.cfg` is gone or damaged", "its interpreter is not a regular file"


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("damage", "fault"),
    [
        (lost, CONFIG),
        (overwritten, CONFIG),
        (without_its_python, CONFIG),
        (with_a_folder_for_a_python, PYTHON),
        (with_a_pipe_for_a_python, PYTHON),
    ],
)
def test_a_runtime_without_what_makes_it_an_environment_runs_nothing(
    place: Place, damage: Callable[[Path], None], fault: str
) -> None:
    """Its interpreter would run as the Python it was made from, which may hold an ONNX Runtime of its own."""
    place.setup()
    on_the_cpu(place)
    damage(place.prefix)
    prove = Counted()
    told = status(place.context, prove=prove)
    assert (told.ok, told.data["runs_on"], told.data["embeds"], told.data["pending"]) == (False, "none", False, True)
    assert fault in told.data["line"]
    assert plan(place.context, PlanOptions(check=True), prove=prove).data["pending"]
    with pytest.raises(ImprintError, match=fault) as caught:
        check(place.context, prove=prove)
    assert caught.value.hint == "run `imprint setup`"
    texts = EmbedOptions(texts=("a",))
    with pytest.raises(ImprintError, match=fault):
        embed(place.context, texts, lambda _event: None, stdin=io.BytesIO, stdout=io.BytesIO())
    assert prove.asked == 0
    found = diagnose(place.context, DoctorOptions())
    assert found.data["runs_on"] == "none"
    told_by = {one["code"]: one["fix"] for one in found.data["findings"]}
    assert told_by["interpreter-unusable"] == "`imprint setup`"
    place.setup()
    assert status(place.context, prove=prove).ok


def test_what_failed_is_tried_again_and_not_believed_for_ever(place: Place) -> None:
    """Somebody may have installed what the system lacked, which no file of the runtime shows."""
    place.setup()
    on_the_cpu(place)
    check(place.context, prove=Counted("failed", "import-failed"))
    good = Counted()
    assert status(place.context, prove=good).ok
    assert good.asked == 1
    assert not status(place.context, prove=Counted("inconclusive", "timeout")).ok


def test_no_vectors_are_made_by_a_runtime_that_was_found_to_compute_wrongly(place: Place) -> None:
    place.setup()
    on_the_cpu(place)
    check(place.context, prove=Counted("failed", "wrong-numbers"))
    with pytest.raises(ImprintError, match="does not compute") as caught:
        embed(place.context, EmbedOptions(texts=("a",)), lambda _event: None, stdin=io.BytesIO, stdout=io.BytesIO())
    assert caught.value.specific_code == status(place.context, prove=Counted("failed", "wrong-numbers")).errors[0].code


def test_a_check_that_could_not_be_made_proves_nothing(place: Place) -> None:
    place.setup()
    on_the_cpu(place)
    touched(place)
    told = status(place.context, prove=Counted("inconclusive", "timeout"))
    assert "the files have changed since (run `imprint check`)" in told.data["line"]
    assert told.data["proof"]["changed"] == ["files"]


def test_a_gpu_that_was_proved_on_other_files_is_said_to_be(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.setup("gpu")
    monkeypatch.setattr("imprint.situation.inputs.survey_here", lambda *_, **__: MACHINE)
    context = replace(place.context, flags={"model.device": "gpu"})
    assert status(context, prove=Counted()).data["line"].startswith("embeddings run on NVIDIA L4 (ONNX Runtime")
    touched(place)
    line = status(context, prove=Counted()).data["line"]
    assert "; the check is of" in line
    assert "the files have changed since (run `imprint check`)" in line


def test_a_model_that_was_moved_away_is_missed_by_all(place: Place) -> None:
    place.setup()
    on_the_cpu(place)
    shutil.rmtree(place.home.models)
    told = status(place.context)
    assert (told.ok, told.data["problem"]["code"]) == (False, "model-missing")
    assert told.data["line"].startswith("embeddings do not run although ONNX Runtime 1.31.1 works: the model")
    assert told.data["line"].endswith("(the plan: model.device is cpu); run `imprint setup`")
    assert plan(place.context, PlanOptions(check=True)).data["pending"] is True
    assert place.setup().data["status"]["embeds"] is True


def test_a_disk_too_full_for_the_model_is_told_by_all(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.setup()
    on_the_cpu(place)
    shutil.rmtree(place.home.models)
    monkeypatch.setattr(space, "free_at", lambda _: 434_176)
    said = status(place.context)
    assert said.data["pending"] is False
    assert "`imprint setup` refuses: not enough disk space: about 23 MB needed, 434 kB free" in said.data["line"]
    told = plan(place.context, PlanOptions(check=True))
    assert [error.code for error in told.errors] == ["no-space"]
    findings = diagnose(place.context, DoctorOptions(ids=("model:files",))).data["findings"]
    assert "not enough disk space: about 23 MB needed" in findings[0]["fix"]
    (damaged := folder_of(place.home, "all-minilm-l6-v2")).mkdir(parents=True)
    (damaged / "model.onnx").touch()
    findings = diagnose(place.context, DoctorOptions(ids=("model:files",))).data["findings"]
    assert (findings[0]["code"], findings[0]["fix"].partition(":")[0]) == ("model-damaged", "not enough disk space")
    dry = place.setup(dry_run=True)
    assert [warning.message for warning in dry.warnings if warning.code == "no-space"] == [told.errors[0].message]


# --- a check that failed ---------------------------------------------------------------------------------------------


def test_the_cause_of_a_failed_check_stays_and_so_does_what_was_fetched(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.check = failing
    result = place.setup("gpu")
    assert result.data["check"]["outcome"] == "failed"
    assert result.data["status"]["runs_on"] == "cpu"
    assert CAUSE in result.data["plan"]["reason"]
    (warning,) = result.warnings
    assert CAUSE in warning.message
    assert "which downloads nothing" in (warning.hint or "")
    monkeypatch.setattr("imprint.situation.inputs.survey_here", lambda *_, **__: MACHINE)
    monkeypatch.setattr("imprint.diagnosis.gathering.system.survey", lambda *_, **__: MACHINE)
    context = replace(place.context, flags={"model.device": "gpu"})
    told = status(context)
    assert CAUSE in told.data["line"]
    assert "--retry-gpu`, which downloads nothing: the packages are kept" in told.data["hint"]
    assert CAUSE in plan(context, PlanOptions()).data["reason"]
    seen = diagnose(context, DoctorOptions(ids=("runtime:embedding-device",))).data["findings"][0]["seen"]
    assert CAUSE in seen
    assert cached(place, "libcublas")
    assert deferred.read(place.home).kept
    place.check = twin_check
    place.setup("gpu", retry_gpu=True)
    assert not deferred.read(place.home).kept


def test_another_try_with_what_was_kept_downloads_nothing_and_asks_nothing(place: Place) -> None:
    place.check = failing
    place.setup("gpu")
    assert place.setup("gpu", retry_gpu=True, dry_run=True).data["download"] is None
    place.check = twin_check
    place.setup("gpu", retry_gpu=True, confirm=lambda _: False)
    assert place.runs().startswith("onnxruntime-gpu ")


def test_what_doctor_calls_unused_is_what_prune_frees(place: Place) -> None:
    """Before and after: the cache that a reinstall would need is not unused, what waits for another try is."""
    place.setup()
    assert unused(place.home) == Unused()
    place.check = failing
    place.setup("gpu")
    found = unused(place.home)
    held = sum(path.lstat().st_size for path in place.home.cache.rglob("libcublas*") if path.is_file())
    assert held > 0
    assert (found.cache, found.kept >= held) == (0, True)
    prune(place.context)
    assert unused(place.home) == Unused()


@pytest.mark.parametrize("free", ["a CPU setup", "prune"])
def test_what_is_kept_for_another_try_goes_when_nobody_wants_one(place: Place, free: str) -> None:
    place.check = failing
    place.setup("gpu")
    place.setup("gpu")
    assert cached(place, "libcublas")
    if free == "prune":
        prune(place.context)
    else:
        place.setup("cpu")
    assert not cached(place, "libcublas")
    assert not os.path.lexists(deferred.path_of(place.home))


def test_where_the_disk_is_full_nothing_is_kept(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("imprint.provisioning.retrying.KEEP_FREE", 1 << 60)
    place.check = failing
    (warning,) = place.setup("gpu").warnings
    assert "which downloads 1.2 GB again" in (warning.hint or "")
    assert not cached(place, "libcublas")


def cached(place: Place, name: str) -> bool:
    """Return whether the cache holds a file with `name` in its name."""
    return any(name in path.name for path in place.home.cache.rglob("*"))


# --- what setup asks and says ----------------------------------------------------------------------------------------


def test_the_question_is_asked_while_nobody_has_to_wait(place: Place) -> None:
    asked: list[Plan] = []

    def confirm(planned: Plan) -> bool:
        with mutex.hold(place.home, 0):
            asked.append(planned)
        return True

    place.setup("gpu", confirm=confirm)
    (planned,) = asked
    assert place.runs().startswith("onnxruntime-gpu")
    assert len({(event.event, event.step, event.message) for event in place.events}) == len(place.events)
    assert planned.download_bytes is not None
    assert place.setup("gpu", confirm=confirm).ok
    assert len(asked) == 1


def test_a_larger_download_than_was_agreed_to_is_asked_about_again(place: Place) -> None:
    """While the question waited, somebody else changed what has to be done."""
    asked: list[Plan] = []

    def confirm(planned: Plan) -> bool:
        asked.append(planned)
        if len(asked) == 1:
            shutil.rmtree(place.home.models, ignore_errors=True)
            return True
        return False

    place.setup()
    with pytest.raises(ImprintError) as caught:
        place.setup("gpu", confirm=confirm)
    assert caught.value.specific_code == "declined"
    assert [planned.build for planned in asked] == ["cuda13", "cuda13"]
    assert current_target(place.home) is not None


def test_one_sum_is_named_before_and_after(place: Place) -> None:
    dry = place.setup("gpu", dry_run=True).data["download"]
    assert dry["total"] == dry["build"] + dry["packages"] + dry["model"]
    assert dry["model"] > 20_000_000
    asked: list[int | None] = []

    def confirm(planned: Plan) -> bool:
        asked.append(planned.download_bytes)
        return True

    place.setup("gpu", confirm=confirm)
    assert asked == [dry["total"]]
    amounts = [event for event in place.events if event.step == "download" and event.total is not None]
    assert all((event.done or 0) <= event.total for event in amounts if event.total is not None)
    assert place.setup("gpu", dry_run=True).data["download"] is None


def test_a_free_threaded_python_is_refused_before_anything_begins(place: Place) -> None:
    place.machine = replace(machine_like_this(), python=Interpreter("3.13.2", "cp313t"))
    result = place.setup("gpu")
    (error,) = result.errors
    assert (error.code, "orjson" in error.message) == ("python-abi-no-wheel", True)
    assert "free-threaded" in error.message
    assert result.data["plan"]["build"] is not None, "ONNX Runtime itself has wheels"
    assert not place.home.runtimes.exists()


def test_plan_check_fails_where_nothing_can_be_installed(place: Place, tmp_path: Path) -> None:
    document = tmp_path / "machine.json"
    document.write_text('{"platform": {"os": "linux", "arch": "i686"}, "python": {"version": "3.12.1"}}')
    assert plan(place.context, PlanOptions(machine=str(document))).ok
    assert not plan(place.context, PlanOptions(machine=str(document), check=True)).ok


def test_a_deferred_check_is_said_whatever_is_configured(place: Place) -> None:
    """Provisioned for a machine with a GPU by an option, and the configuration still says cpu."""
    place.check = Counted()
    place.setup("auto", machine=machine_like_this())
    line = status(on_the_cpu(place).context, prove=Counted()).data["line"]
    assert "the check was deferred (run `imprint check`)" in line
    assert "`imprint setup` would install cpu" in line
    assert line.index("model.device is cpu") < line.index("run `imprint check`")


# --- the default -----------------------------------------------------------------------------------------------------


def test_the_default_is_said_only_where_it_is_one(place: Place) -> None:
    place.setup()
    assert "model.device auto" in status(place.context).data["hint"]
    assert status(on_the_cpu(place).context).data["hint"] is None


def test_the_batch_that_is_used_is_shown(place: Place) -> None:
    def shown(device: str) -> tuple[object, object, object]:
        (key,) = get_key(replace(place.context, flags={"model.device": device}), "model.batch_tokens").data["keys"]
        return key["value"], key["default"], key["origin"]

    assert shown("gpu") == (256, 256, "default"), "no GPU build is set up"
    place.setup("gpu")
    assert shown("gpu") == (16384, 16384, "default")
    assert shown("cpu") == (256, 256, "default")
