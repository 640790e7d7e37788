"""The child that loads ONNX Runtime: whatever it does, doctor gets an answer in bounded time and memory."""

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from imprint.diagnosis.gathering.loading import how_it_ended, judge, try_runtime
from imprint.diagnosis.gathering.sources import Sources
from imprint.errors import ImprintError
from imprint.probing.host import ChildResult
from imprint.runtime.check.children import facts_in
from support.foreign import Foreign, Wheels
from support.played_runtime import played_wheels

BASE = ("numpy==2.4.6", "packaging==26.4", "flatbuffers==25.12.19", "protobuf==7.36.2")
SCRIPTS: dict[str, dict[str, Any]] = {
    "onnxruntime-gpu==1.20.0": {"die_gpu": "hang"},
    "onnxruntime-gpu==1.21.0": {"die_gpu": "SIGSEGV"},
    "onnxruntime-gpu==1.22.0": {"talk": "x" * 10_000_000},
    "onnxruntime-gpu==1.23.0": {"die_cpu": "SIGKILL"},
    "onnxruntime-gpu==1.24.0": {"run_error": "no kernel image is available for execution on the device"},
}


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> Foreign:
    """Give one environment, in which each test installs the build it is about."""
    wheels: Wheels = played_wheels(tmp_path_factory.mktemp("wheels"), SCRIPTS)
    made = Foreign(tmp_path_factory.mktemp("place"), wheels)
    made.create(*BASE)
    return made


def tried(env: Foreign, version: str, deadline: float = 60.0) -> Any:  # noqa: ANN401 - compared below
    env.install(f"onnxruntime-gpu=={version}")
    names = [("libcublasLt.so.13", True), ("libc.so.6", True)]
    return try_runtime(env.prefix / "bin" / "python", dict(os.environ), names, deadline=deadline)


def test_a_session_that_hangs_is_ended(env: Foreign) -> None:
    started = time.monotonic()
    seen = tried(env, "1.20.0", deadline=3.0)
    assert (seen.ended, seen.stage) == ("timeout", "gpu")
    assert (seen.package, seen.version) == ("onnxruntime-gpu", "1.20.0")
    assert time.monotonic() - started < 12


def test_a_session_that_crashes_leaves_what_was_seen_before(env: Foreign) -> None:
    seen = tried(env, "1.21.0")
    assert (seen.ended, seen.stage) == ("SIGSEGV", "gpu")
    assert (seen.package, seen.cpu_error) == ("onnxruntime-gpu", None)


def test_ten_megabytes_of_talk_are_not_kept(env: Foreign) -> None:
    seen = tried(env, "1.22.0")
    assert (seen.ended, seen.session) == (None, ("CUDAExecutionProvider", "CPUExecutionProvider"))
    assert len(seen.talk) <= 2000


def test_a_child_that_is_killed(env: Foreign) -> None:
    seen = tried(env, "1.23.0")
    assert (seen.ended, seen.stage) == ("SIGKILL", "cpu")


def test_each_library_is_found_where_it_is(env: Foreign) -> None:
    seen = tried(env, "1.24.0")
    assert "no kernel image" in (seen.run_error or "")
    found = {one.name: one for one in seen.libraries or ()}
    assert (found["libcublasLt.so.13"].source, found["libc.so.6"].source) == ("missing", "system")
    env.install("nvidia-cublas==13.0.2.14")
    seen = tried(env, "1.24.0")
    library = next(one for one in seen.libraries or () if one.name == "libcublasLt.so.13")
    assert library.source == "wheel"
    assert Path(library.path or "").is_file()


def test_an_interpreter_that_is_no_python(tmp_path: Path) -> None:
    seen = try_runtime(tmp_path / "nothing", {}, [])
    assert (seen.ended or "").startswith("not started")
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\necho '[1' ; echo 'garbage'; exit 5\n", "utf-8")
    program.chmod(0o755)
    assert try_runtime(program, {"PATH": os.environ["PATH"]}, []).ended == "exit code 5"


@pytest.mark.parametrize(
    ("ended", "how"),
    [
        (ChildResult(0), None),
        (ChildResult(None, timed_out=True), "timeout"),
        (ChildResult(-signal.SIGILL), "SIGILL"),
        (ChildResult(-99), "signal 99"),
        (ChildResult(1), "exit code 1"),
        (ChildResult(0xC000001D), "0xC000001D"),
    ],
)
def test_how_a_child_ended(ended: ChildResult, how: str | None) -> None:
    assert how_it_ended(ended) == how


@pytest.mark.parametrize("text", ["", "not json\n", "[]\n", "{" * 100_000, '{"session": null}\n\x00'])
def test_garbage_is_no_answer(text: str) -> None:
    ended = ChildResult(0, text)
    seen = judge(ended, facts_in(ended.stdout), {})
    assert (seen.package, seen.session, seen.libraries) == (None, None, None)


def test_a_source_that_hangs_or_fails_stops_no_other() -> None:
    sources = Sources()

    def refuse() -> None:
        raise ImprintError("no", code="x")

    started = time.monotonic()
    asked = [
        sources.ask("slow", lambda: time.sleep(2), 0.3),
        sources.ask("quick", lambda: 1),
        sources.ask("bad", refuse),
        sources.ask("bug", lambda: 1 // 0),
    ]
    assert [answer() for answer in asked] == [None, 1, None, None]
    assert time.monotonic() - started < 1.5
    codes = {name: error.specific_code for name, error in sources.failures.items()}
    assert codes == {"slow": "timed-out", "bad": "x", "bug": "bug"}
