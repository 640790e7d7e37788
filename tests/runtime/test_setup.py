"""The whole setup with tiny wheels: real uv, environments, hashes and processes, and no network."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from imprint import ownership
from imprint.errors import BusyError, ImprintError, IntegrityError, NetworkError, StateNewerError, UsageError
from imprint.operations.status import status
from imprint.planning.model import Device, Nvidia
from imprint.runtime.check.run import CUDA, CheckResult
from imprint.runtime.distributions import inventory
from imprint.runtime.target import current_target
from imprint.state import mutex, verdicts
from imprint.words import FailureKind, Outcome
from support.place import GPU, MACHINE, Place
from support.twins import Twins, make_twins, twin_check


@pytest.fixture(scope="session")
def twins(tmp_path_factory: pytest.TempPathFactory) -> Twins:
    return make_twins(tmp_path_factory.mktemp("twins"))


@pytest.fixture
def place(tmp_path: Path, twins: Twins) -> Place:
    return Place(tmp_path / "mit Leerzeichen ü", twins)


def test_a_fresh_setup_ends_with_the_line_and_the_reason(place: Place) -> None:
    result = place.setup()
    assert result.ok
    assert result.data["status"]["line"] == "embeddings run on the CPU (ONNX Runtime 1.31.1): model.device is cpu"
    assert result.data["status"]["runs_on"] == "cpu"
    assert result.data["plan"]["reason"] == "model.device is cpu"
    assert result.data["check"]["outcome"] == "ok"
    assert result.data["changes"] == [
        {"name": "numpy", "from": None, "to": "2.4.6"},
        {"name": "onnxruntime", "from": None, "to": "1.31.1"},
    ]
    assert place.runs() == "onnxruntime 1.31.1 onnxruntime"


def test_a_second_setup_starts_nothing_and_changes_nothing(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.setup()
    before = {path: path.stat().st_mtime_ns for path in place.home.root.rglob("*") if path.is_file()}
    monkeypatch.setattr("subprocess.Popen.__init__", _refuse)
    place.checks.clear()
    result = place.setup()
    assert result.data["check"] is None
    assert result.data["changes"] == []
    assert result.data["status"]["pending"] is False
    assert not place.checks
    after = {path: path.stat().st_mtime_ns for path in place.home.root.rglob("*") if path.is_file()}
    assert {path for path, _ in after.items() ^ before.items()} <= {place.home.mutex}


def _refuse(*_: object, **__: object) -> None:
    raise AssertionError("a child was started")


def test_to_the_gpu_and_back(place: Place) -> None:
    place.setup()
    to_gpu = place.setup("gpu")
    assert to_gpu.data["plan"]["build"] == "cuda13"
    assert to_gpu.data["status"]["runs_on"] == "gpu"
    assert to_gpu.data["status"]["line"].startswith("embeddings run on NVIDIA L4 (ONNX Runtime 1.31.1, cuda13): ")
    assert to_gpu.data["status"]["line"].endswith(to_gpu.data["plan"]["reason"])
    assert place.checks[-1] is not None
    assert place.runs() == "onnxruntime-gpu 1.31.1 onnxruntime-gpu"
    (verdict,) = verdicts.load(place.home)
    assert (verdict.build, verdict.result) == ("cuda13", "ok")
    assert verdict.fingerprint.gpu_uuid == GPU.uuid

    place.checks.clear()
    again = place.setup("gpu")
    assert not place.checks
    assert again.data["status"] == to_gpu.data["status"]

    place.setup("cpu")
    assert place.runs() == "onnxruntime 1.31.1 onnxruntime"


def test_a_new_driver_is_checked_without_installing_anything(place: Place) -> None:
    place.setup("gpu")
    prefix = place.prefix
    place.checks.clear()
    place.machine = replace(MACHINE, nvidia=replace(MACHINE.nvidia, driver="590.48.01", cuda="13.1"))
    assert place.setup("gpu").data["status"]["runs_on"] == "gpu"
    assert len(place.checks) == 1
    assert place.prefix == prefix


def _failing(outcome: Outcome, kind: FailureKind) -> Callable[[Path, Device | None, Mapping[str, str]], CheckResult]:
    def check(python: Path, device: Device | None, environ: Mapping[str, str]) -> CheckResult:
        if device is None:
            return twin_check(python, device, environ)
        return CheckResult(outcome, kind, CUDA, device, "as the test wants it")

    return check


@pytest.mark.parametrize(("outcome", "kind"), [("failed", "conv-failed"), ("crashed", "crashed")])
def test_a_failed_check_puts_the_cpu_build_in_and_is_remembered(
    place: Place, outcome: Outcome, kind: FailureKind
) -> None:
    place.check = _failing(outcome, kind)
    result = place.setup("gpu")
    assert result.ok
    assert [warning.code for warning in result.warnings] == ["check-failed"]
    assert result.data["plan"]["code"] == "check-failed"
    assert result.data["status"]["runs_on"] == "cpu"
    assert place.runs() == "onnxruntime 1.31.1 onnxruntime"
    (verdict,) = verdicts.load(place.home)
    assert (verdict.result, verdict.kind) == ("failed", kind)

    place.checks.clear()
    assert place.setup("gpu").data["status"]["runs_on"] == "cpu"
    assert not place.checks, "a recorded failure is not tried again"

    place.check = twin_check
    result = place.setup("gpu", retry_gpu=True)
    assert result.data["status"]["runs_on"] == "gpu"
    (verdict,) = verdicts.load(place.home)
    assert verdict.result == "ok"


def test_an_inconclusive_check_is_not_remembered_and_what_worked_stays(place: Place) -> None:
    place.setup()
    prefix = place.prefix
    place.check = _failing("inconclusive", "timeout")
    result = place.setup("gpu")
    assert result.ok
    assert [warning.code for warning in result.warnings] == ["check-inconclusive"]
    assert result.data["status"]["runs_on"] == "cpu"
    assert result.data["status"]["pending"] is True
    assert place.prefix == prefix
    assert verdicts.load(place.home) == ()


def test_an_inconclusive_check_on_a_fresh_machine_gives_the_cpu_build(place: Place) -> None:
    place.check = _failing("inconclusive", "out-of-memory")
    result = place.setup("gpu")
    assert result.data["status"]["runs_on"] == "cpu"
    assert place.runs() == "onnxruntime 1.31.1 onnxruntime"


def test_a_failed_check_that_no_verdict_can_hold_still_ends(place: Place) -> None:
    """Without a UUID the fingerprint is incomplete and the verdict never counts; that must not go round in circles."""
    gpu = replace(GPU, uuid=None)
    place.machine = replace(MACHINE, nvidia=replace(MACHINE.nvidia, gpus=(gpu,)))
    place.check = _failing("failed", "matmul-failed")
    result = place.setup("gpu")
    assert result.data["status"]["runs_on"] == "cpu"
    assert place.runs() == "onnxruntime 1.31.1 onnxruntime"


def test_require_gpu_changes_nothing_when_no_gpu_is_planned(place: Place) -> None:
    place.setup()
    prefix = place.prefix
    place.machine = replace(MACHINE, nvidia=Nvidia("none"))
    result = place.setup("gpu", require_gpu=True)
    (error,) = result.errors
    assert error.code == "no-nvidia-gpu"
    assert result.data["plan"]["reason"] in error.message
    assert place.prefix == prefix


@pytest.mark.parametrize(("outcome", "code"), [("failed", "check-failed"), ("inconclusive", "check-inconclusive")])
def test_require_gpu_is_an_error_when_the_check_does_not_pass(place: Place, outcome: Outcome, code: str) -> None:
    place.setup()
    prefix = place.prefix
    place.check = _failing(outcome, "conv-failed")
    result = place.setup("gpu", require_gpu=True)
    assert [error.code for error in result.errors] == [code]
    assert place.prefix == prefix
    assert len(list(place.home.runtimes.iterdir())) == 1


def test_a_cpu_build_that_fails_its_check_never_becomes_current(place: Place) -> None:
    place.setup()
    prefix = place.prefix
    place.check = lambda _python, device, _environ: CheckResult("failed", "wrong-numbers", "x", device, "bad numbers")
    with pytest.raises(ImprintError, match="bad numbers") as caught:
        place.setup(repair=True)
    assert caught.value.specific_code == "check-failed"
    assert place.prefix == prefix
    assert len(list(place.home.runtimes.iterdir())) == 1


def _remove_file(prefix: Path) -> None:
    next(prefix.rglob("part7.py")).unlink()


def _truncate(prefix: Path) -> None:
    # As a new file: writing into this one would write into the cache and everything made from it.
    path = next(prefix.rglob("library.so"))
    path.unlink()
    path.write_bytes(b"")


def _truncate_in_place(prefix: Path) -> None:
    os.truncate(next(prefix.rglob("library.so")), 10)


def _remove_installer(prefix: Path) -> None:
    next(prefix.rglob("onnxruntime*.dist-info/INSTALLER")).unlink()


def _remove_record(prefix: Path) -> None:
    next(prefix.rglob("numpy*.dist-info/RECORD")).unlink()


def _remove_distribution(prefix: Path) -> None:
    shutil.rmtree(next(prefix.rglob("numpy-*.dist-info")))


def _add_stray(prefix: Path) -> None:
    folder = next(prefix.rglob("site-packages")) / "onnxruntime_gpu-1.31.1.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: onnxruntime-gpu\nVersion: 1.31.1\n")


def _dangle(prefix: Path) -> None:
    (prefix / "bin" / "python").unlink()
    (prefix / "bin" / "python").symlink_to("/nonexistent/python3")


def _corrupt_manifest(prefix: Path) -> None:
    (prefix / "manifest.json").write_bytes(b"\0" * 100)


def _remove_everything(prefix: Path) -> None:
    shutil.rmtree(prefix)


DAMAGES = (
    _remove_file,
    _truncate,
    _truncate_in_place,
    _remove_installer,
    _remove_record,
    _remove_distribution,
    _add_stray,
    _dangle,
    _corrupt_manifest,
    _remove_everything,
)


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_generation_is_noticed_and_rebuilt(place: Place, damage: Callable[[Path], None]) -> None:
    place.setup()
    damaged = place.prefix
    damage(damaged)
    told = status(replace(place.context, flags={"model.device": "cpu"}))
    assert told.data["runs_on"] == "none"
    result = place.setup()
    assert result.data["status"]["runs_on"] == "cpu"
    assert place.prefix != damaged
    assert not damaged.exists()
    assert place.runs() == "onnxruntime 1.31.1 onnxruntime"
    assert not inventory.inspect(place.prefix, deep=True).problems


def test_repair_finds_bytes_that_changed_without_changing_size(place: Place) -> None:
    place.setup()
    path = next(place.prefix.rglob("part3.py"))
    content = path.read_bytes()
    with path.open("r+b") as file:  # the cache's copy changes with it: they are one file
        file.write(b"X")
    place.setup(repair=True)
    assert next(place.prefix.rglob("part3.py")).read_bytes() == content


def test_a_lost_pointer_is_found_again_without_building(place: Place) -> None:
    place.setup()
    prefix = place.prefix
    place.home.current.write_text("garbage")
    place.checks.clear()
    result = place.setup()
    assert place.prefix == prefix
    assert not place.checks
    assert [warning.code for warning in result.warnings] == ["state-set-aside"]


def test_a_changed_lock_is_followed_and_the_old_generation_kept_for_a_rollback(place: Place, tmp_path: Path) -> None:
    place.setup()
    first = place.prefix
    other = make_twins(tmp_path / "others")
    text = other.lock_path("base.txt").read_text()
    other.lock_path("base.txt").write_text("# a comment is a change too\n" + text)
    place.twins = other
    place.setup()
    assert place.prefix != first


def test_a_small_previous_build_is_kept_and_a_third_is_not(place: Place) -> None:
    place.setup("cpu")
    cpu = place.prefix
    place.setup("gpu")
    assert {path.name for path in place.home.runtimes.iterdir()} == {cpu.name, place.prefix.name}
    gpu = place.prefix
    place.setup("cpu")
    assert cpu == place.prefix or not cpu.exists()
    assert len(list(place.home.runtimes.iterdir())) <= 2
    assert gpu.exists()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who has a file mapped")
def test_a_generation_in_use_is_removed_by_a_later_run(place: Place) -> None:
    place.setup()
    old = place.prefix
    hold = (
        "import mmap, sys\n"
        "file = open(sys.argv[1])\n"
        "mapped = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)\n"
        "print(flush=True)\n"
        "sys.stdin.read()"
    )
    argv = [sys.executable, "-c", hold, str(next(old.rglob("library.so")))]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        result = place.setup(repair=True)
        assert old.exists()
        (left,) = result.data["deferred"]
        assert (left["path"], left["pid"]) == (str(old), process.pid)
        assert left["bytes"] > 0
        assert place.setup().data["deferred"] == [left]
        process.stdin.close()
        process.wait()
    assert place.setup().data["deferred"] == []
    assert not old.exists()


def test_leftovers_of_killed_runs_go_and_foreign_folders_stay(place: Place) -> None:
    ownership.claim(place.home)
    leftover = place.home.runtimes / "20200101T000000Z-cpu-1.0-abcd"
    (leftover / "lib").mkdir(parents=True)
    foreign = place.home.runtimes / "my notes"
    foreign.mkdir()
    place.home.data.mkdir()
    (place.home.data / ".current.json.0123abcd.tmp").write_text("{")
    place.setup()
    assert not leftover.exists()
    assert foreign.exists()
    assert sorted(path.name for path in place.home.data.iterdir()) == ["current.json"]


def test_a_wrong_hash_is_named_and_changes_nothing(place: Place, tmp_path: Path) -> None:
    place.setup()
    prefix = place.prefix
    bad = make_twins(tmp_path / "bad")
    path = bad.lock_path("base.txt")
    digest = path.read_text().split("sha256:")[1].strip()
    path.write_text(path.read_text().replace(digest, "0" * 64))
    place.twins = bad
    with pytest.raises(IntegrityError) as caught:
        place.setup()
    assert "numpy==2.4.6" in caught.value.message
    assert "0" * 64 in caught.value.message
    assert digest in caught.value.message
    assert place.prefix == prefix
    assert len(list(place.home.runtimes.iterdir())) == 1


def test_what_is_nowhere_to_be_had_is_a_network_error(place: Place, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(NetworkError) as caught:
        place.setup(find_links=tmp_path / "empty")
    assert caught.value.hint
    assert current_target(place.home) is None
    assert not list(place.home.runtimes.iterdir())


def test_a_missing_lock_is_named_before_anything_changes(place: Place, tmp_path: Path) -> None:
    incomplete = make_twins(tmp_path / "incomplete")
    incomplete.lock_path("cuda13.txt").unlink()
    place.twins = incomplete
    with pytest.raises(ImprintError, match=r"cuda13\.txt") as caught:
        place.setup("gpu")
    assert caught.value.specific_code == "lock-missing"
    assert not place.home.runtimes.exists()


def test_a_busy_mutex_names_its_holder(place: Place) -> None:
    with (
        mutex.hold(place.home, 0, command="imprint setup elsewhere"),
        pytest.raises(BusyError, match="imprint setup elsewhere"),
    ):
        place.setup()


def test_newer_state_is_refused_and_untouched(place: Place) -> None:
    place.setup()
    for path in (place.home.current, place.home.verdicts):
        before = path.read_bytes() if path.exists() else None
        path.write_text('{"schema": 2}')
        with pytest.raises(StateNewerError):
            place.setup()
        assert path.read_text() == '{"schema": 2}'
        path.unlink() if before is None else path.write_bytes(before)


def test_a_dry_run_tells_and_changes_nothing(place: Place) -> None:
    result = place.setup("gpu", dry_run=True)
    assert result.data["plan"]["build"] == "cuda13"
    assert {change["name"] for change in result.data["changes"]} == {
        "numpy",
        "nvidia-cublas",
        "nvidia-curand",
        "onnxruntime-gpu",
    }
    assert not place.home.root.exists()


def test_a_declined_download_changes_nothing(place: Place) -> None:
    with pytest.raises(ImprintError) as caught:
        place.setup("gpu", confirm=lambda _: False)
    assert caught.value.specific_code == "declined"
    assert current_target(place.home) is None


@pytest.mark.parametrize("options", [{"index_url": "--evil"}, {"index_url": "x"}, {"find_links": Path("/nonexistent")}])
def test_bad_sources_are_usage_errors(place: Place, options: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        place.setup(**options)


def test_status_before_anything_says_what_would_come(place: Place) -> None:
    told = status(replace(place.context, flags={"model.device": "cpu"}))
    assert told.data["runs_on"] == "none"
    assert "model.device is cpu" in told.data["line"]
    assert not place.home.root.exists()
