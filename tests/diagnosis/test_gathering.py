"""What doctor gathers: limits run together, and nothing that is found wrong on the way keeps it from answering."""

import threading
from pathlib import Path

from imprint.context import Context
from imprint.diagnosis.checks.storage import disk_unused
from imprint.diagnosis.facts import Unused
from imprint.diagnosis.gathering.home import unused
from imprint.diagnosis.gathering.sources import Sources
from imprint.diagnosis.gathering.target import summarise
from imprint.errors import ImprintError
from imprint.operations.doctor import DoctorOptions, diagnose
from imprint.paths import Home
from imprint.runtime.distributions import inventory
from imprint.runtime.foreign import journal
from imprint.runtime.managed import deferred
from support.foreign import Foreign, make_wheels
from support.recorded import MANAGED, changed


class Clock:
    """A clock that passes only while somebody waits for a thread that hangs."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        """Return the time."""
        return self.now


class HungThread(threading.Thread):
    """A thread whose source never ends; waiting for it takes as long as one is willing to wait."""

    clock: Clock

    def start(self) -> None:
        """Start nothing."""

    def join(self, timeout: float | None = None) -> None:
        """Let the time pass."""
        self.clock.now += timeout or 0.0

    def is_alive(self) -> bool:
        """Say that it goes on."""
        return True


def test_the_limits_of_hung_sources_run_together(monkeypatch: object) -> None:
    """Six sources that hang cost one limit, not six."""
    clock = Clock()
    HungThread.clock = clock
    monkeypatch.setattr("imprint.diagnosis.gathering.sources.threading.Thread", HungThread)  # type: ignore[attr-defined]
    monkeypatch.setattr("imprint.diagnosis.gathering.sources.time.monotonic", clock.monotonic)  # type: ignore[attr-defined]
    sources = Sources()
    answers = [sources.ask(f"source{number}", lambda: 1, 0.5) for number in range(6)]
    assert {answer() for answer in answers} == {None}
    assert clock.now == 0.5
    assert {error.specific_code for error in sources.failures.values()} == {"timed-out"}
    assert len(sources.failures) == 6


def test_a_source_whose_thread_cannot_start_fails_alone(monkeypatch: object) -> None:
    class Refused(threading.Thread):
        def start(self) -> None:
            raise RuntimeError("can't start new thread")

    monkeypatch.setattr("imprint.diagnosis.gathering.sources.threading.Thread", Refused)  # type: ignore[attr-defined]
    sources = Sources()
    assert sources.ask("one", lambda: 1)() is None
    assert sources.failures["one"].specific_code == "process-limit"


def test_a_source_that_fails_leaves_the_others() -> None:
    def broken() -> None:
        raise ImprintError("no", code="state-unreadable")

    sources = Sources()
    good, bad = sources.ask("good", lambda: 1), sources.ask("bad", broken)
    assert (good(), bad(), good()) == (1, None, 1)
    assert {name: error.specific_code for name, error in sources.failures.items()} == {"bad": "state-unreadable"}


def test_where_there_is_nothing_to_ask_nothing_fails() -> None:
    sources = Sources()
    assert sources.ask("none", None)() is None
    assert sources.failures == {}


def test_a_record_of_a_newer_imprint_is_a_finding(tmp_path: Path) -> None:
    """Doctor never raises, whatever lies among the records of an environment."""
    foreign = Foreign(tmp_path, make_wheels(tmp_path / "wheels"))
    foreign.create("numpy==2.4.6", "onnxruntime==1.31.1")
    foreign.setup("cpu")
    store = journal.store_of(foreign.home, foreign.prefix)
    store.receipt.write_text('{"schema": 99}', "utf-8")
    for options in (DoctorOptions(venv=foreign.prefix), DoctorOptions(venv=foreign.prefix, report=True)):
        findings = diagnose(Context(Home(foreign.home.root), {"PATH": ""}), options).data["findings"]
        told = {found["code"] for found in findings if found["id"] == "state:files"}
        assert told == {"state-newer"}
        assert len(findings) > 20
    assert store.receipt.read_text("utf-8") == '{"schema": 99}'


def test_what_is_kept_for_another_try_of_a_gpu_is_not_called_unused(tmp_path: Path) -> None:
    home = Home(tmp_path)
    wheel, link = home.cache / "archive-v0" / "abc", home.cache / "wheels-v5" / "pypi" / "onnxruntime-gpu" / "1.31.1-x"
    for folder in (wheel, link.parent):
        folder.mkdir(parents=True)
    (wheel / "library.so").write_bytes(b"x" * 1000)
    link.symlink_to(wheel)
    assert unused(home) == Unused(cache=1000)
    deferred.keep(home, ["onnxruntime-gpu"])
    assert unused(home) == Unused(kept=1000)
    (told,) = disk_unused(changed(MANAGED, unused=Unused(kept=3 * 10**9)))
    assert told.status == "ok"
    assert told.seen == "unused: nothing; 3.0 GB in the cache are kept for `--retry-gpu` until `imprint prune`"


def test_a_package_that_requires_onnx_runtime_is_named_once(tmp_path: Path) -> None:
    """One line for each Python is usual."""
    packages = tmp_path / "lib" / "python3.11" / "site-packages"
    lines = {
        "fastembed": "".join(f"Requires-Dist: onnxruntime>{n}; python_version>'3.{n}'\n" for n in (9, 10, 11, 12)),
        "onnxruntime": "",
        "onnxruntime_gpu": "",
    }
    for name, requires in lines.items():
        info = packages / f"{name}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Name: {name}\nVersion: 1.0\n{requires}", "utf-8")
        (info / "RECORD").write_text("onnxruntime/__init__.py,,\n", "utf-8")
    assert summarise(inventory.inspect(tmp_path), hashed=False).requirers == ("fastembed (onnxruntime)",)
