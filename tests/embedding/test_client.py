"""The client's contract: rows in order, errors that say what happened, nothing left running."""

import os
import queue
import sys
import time
import venv
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from imprint.embedding.client import Done, Hello, Progress, Rows, Settings, Worker
from imprint.errors import ImprintError, UsageError

PLAYED = Path(__file__).with_name("played_worker")


def settings(folder: Path, play: str = "echo", rows: str = "text", **more: float) -> Settings:
    return Settings(
        python=Path(sys.executable),
        model=folder / f"{play}.onnx",
        tokenizer=folder / "tokenizer.json",
        dims=2,
        rows=rows,
        worker=PLAYED,
        environ={name: value for name, value in os.environ.items() if not name.startswith("PYTHON")},
        start_seconds=more.get("start_seconds", 60),
        silent_seconds=more.get("silent_seconds", 60),
    )


def embed(settings: Settings, texts: Iterator[bytes] | list[bytes]) -> tuple[Hello, bytes, Done]:
    data = b""
    with Worker(settings) as worker:
        hello = worker.start()
        count = 0
        for answer in worker.embed(texts):
            if isinstance(answer, Rows):
                data += answer.data
                count += answer.count
            elif isinstance(answer, Done):
                assert answer.texts == count
                return hello, data, answer
            else:
                assert isinstance(answer, Progress)
    raise AssertionError("no Done")


def test_rows_come_in_the_order_of_the_texts(tmp_path: Path) -> None:
    texts = [b"x" * (index % 7) for index in range(3000)]
    hello, data, done = embed(settings(tmp_path), iter(texts))
    assert data.decode().splitlines() == [f"{len(text)}.0 0.0" for text in texts]
    assert (hello.on_gpu, done.texts) == (False, 3000)


def test_no_texts_make_no_rows(tmp_path: Path) -> None:
    assert embed(settings(tmp_path), [])[1:] == (b"", Done(0, 0, 0, 0, None))


def test_a_text_larger_than_a_pipe_arrives(tmp_path: Path) -> None:
    assert embed(settings(tmp_path), [b"y" * 1_000_000, "é".encode()])[1] == b"1000000.0 0.0\n2.0 0.0\n"


def test_the_input_is_read_only_as_fast_as_it_is_used(tmp_path: Path) -> None:
    """Nobody takes rows: the source must stop being read long before its end."""
    taken = 0

    def source() -> Iterator[bytes]:
        nonlocal taken
        for _ in range(1_000_000):
            taken += 1
            yield b"z" * 1000

    with Worker(settings(tmp_path)) as worker:
        worker.start()
        rows = worker.embed(source())
        next(rows)
        time.sleep(0.5)
        before = taken
        time.sleep(0.3)
        assert taken == before < 20_000
        rows.close()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("play", "code", "words"),
    [
        ("killed", "worker-killed", "memory ran out"),
        ("crashed", "worker-crashed", "SIGSEGV"),
        ("quits", "worker-failed", "Fatal: something is odd"),
        ("out-of-memory", "out-of-memory", "bad allocation"),
        ("no-library", "target-incomplete", "numpy"),
        ("garbage", "worker-failed", "connection to the embedding worker broke"),
    ],
)
def test_a_bad_end_is_an_error_that_says_so(tmp_path: Path, play: str, code: str, words: str) -> None:
    with pytest.raises(ImprintError, match=words) as caught:
        embed(settings(tmp_path, play), [b"text"] * 1000)
    assert caught.value.specific_code == code


@pytest.mark.parametrize("play", ["silent-start", "hangs"])
def test_a_worker_that_says_nothing_is_ended(tmp_path: Path, play: str) -> None:
    started = time.monotonic()
    with pytest.raises(ImprintError, match="did not respond") as caught:
        embed(settings(tmp_path, play, start_seconds=1.5, silent_seconds=1.5), [b"text"])
    assert caught.value.specific_code == "worker-hung"
    assert time.monotonic() - started < 30


def test_a_slow_source_is_no_hang(tmp_path: Path) -> None:
    def source() -> Iterator[bytes]:
        yield b"a"
        time.sleep(1.6)
        yield b"b"

    assert embed(settings(tmp_path, silent_seconds=0.8), source())[2].texts == 2


def test_a_source_that_pauses_gets_the_rows_of_what_it_gave(tmp_path: Path) -> None:
    """Each text comes only after the row of the one before: nothing would ever come without a flush."""
    rows: queue.Queue[int] = queue.Queue()

    def source() -> Iterator[bytes]:
        for index in range(3):
            yield b"x" * index
            assert rows.get(timeout=60) == 1

    with Worker(settings(tmp_path)) as worker:
        worker.start()
        counts = [0]
        for answer in worker.embed(source()):
            if isinstance(answer, Rows):
                rows.put(answer.count)
                counts.append(answer.count)
    assert counts == [0, 1, 1, 1]


def test_a_steady_trickle_gets_rows_before_its_end(tmp_path: Path) -> None:
    seen: list[int] = []
    given = 0

    def source() -> Iterator[bytes]:
        nonlocal given
        while not seen:  # a source that never pauses for long, and never ends before a row came
            given += 1
            time.sleep(0.01)
            yield b"x"

    with Worker(settings(tmp_path)) as worker:
        worker.start()
        for answer in worker.embed(source()):
            if isinstance(answer, Rows):
                seen.append(answer.count)  # noqa: PERF401 - the source looks at it meanwhile
    assert sum(seen) == given


def test_what_the_source_raises_is_raised_to_the_caller(tmp_path: Path) -> None:
    def source() -> Iterator[bytes]:
        yield b"fine"
        raise UsageError("line 2 is odd")

    with pytest.raises(UsageError, match="line 2 is odd"):
        embed(settings(tmp_path), source())


def test_a_missing_interpreter_is_said(tmp_path: Path) -> None:
    broken = Settings(tmp_path / "python", tmp_path / "m.onnx", tmp_path / "t", 2)
    with pytest.raises(ImprintError, match="cannot be started") as caught:
        embed(broken, [])
    assert caught.value.specific_code == "target-incomplete"


def test_the_worker_is_gone_when_the_caller_leaves(tmp_path: Path) -> None:
    with Worker(settings(tmp_path, "hangs")) as worker:
        pid = worker.start().pid
        os.kill(pid, 0)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


NOISE = {
    "prints": "print('x' * 70000)",
    "prints what looks like a frame": "import os; os.write(1, b'IMP' * 5)",
    "goes on printing": (
        "import threading, time\n"
        "def tick():\n"
        "    while True: print('tick', flush=True); time.sleep(0.01)\n"
        "threading.Thread(target=tick, daemon=True).start()"
    ),
    "closes stdin": "import sys; sys.stdin.close()",
    "reads stdin": "import sys; sys.stdin.read()",
    "closes stdout": "import os; os.close(1)",
}


@pytest.mark.skipif(sys.platform == "win32", reason="Windows passes only the standard streams")
@pytest.mark.parametrize("noise", NOISE.values(), ids=NOISE)
def test_what_an_environment_does_at_its_start_does_not_reach_the_protocol(tmp_path: Path, noise: str) -> None:
    """Nor does it wait for what nobody sends: `check` and `status` do not, and they shall be right."""
    prefix = tmp_path / "env"
    venv.create(prefix, symlinks=True)
    (packages,) = prefix.glob("lib/python3*/site-packages")
    (packages / "sitecustomize.py").write_text(noise, encoding="utf-8")
    noisy = replace(settings(tmp_path), python=prefix / "bin" / "python")
    assert embed(noisy, [b"ab", b"c"])[1] == b"2.0 0.0\n1.0 0.0\n"
