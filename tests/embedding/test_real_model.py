"""The real model on a real runtime, set up by the project itself: the numbers are right, and bad days end well."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench import embed_throughput as bench
from contracts.runner import ROOT, run_cli, scrubbed
from embedding.test_client import embed as embed_with
from embedding.test_outputs import parse_npy
from imprint.context import Context
from imprint.embedding.client import Settings, Worker
from imprint.embedding.models import model_files
from imprint.errors import ImprintError
from imprint.paths import Home
from imprint.runtime.target import Target, current_target

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

MODEL = "all-minilm-l6-v2"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("place") / "home"
    ran = run_cli(root, ["setup", "--yes"], timeout=900)
    assert ran.code == 0, ran.err
    return root


@pytest.fixture(scope="module")
def target(home: Path) -> Target:
    found = current_target(Home(home))
    assert found is not None
    return found


def settings(home: Path, target: Target, **more: Any) -> Settings:  # noqa: ANN401 - the fields of Settings
    files = model_files(Home(home), MODEL)
    options: dict[str, Any] = {"rows": "raw", "threads": 2, "environ": scrubbed(os.environ), **more}
    return Settings(python=target.python, model=files.model, tokenizer=files.tokenizer, dims=384, **options)


def vectors(data: bytes) -> list[bytes]:
    return [data[start : start + 384 * 4] for start in range(0, len(data), 384 * 4)]


def test_the_standard_library_is_embedded_right_and_can_be_searched(home: Path, target: Target, tmp_path: Path) -> None:
    """Unit vectors, equal to those of a plain loop over the model as published, that find the right module."""
    context = Context(Home(home), scrubbed(os.environ))
    texts, rows, sample, plain = (tmp_path / name for name in ("texts.jsonl", "rows.npy", "sample.jsonl", "plain.npy"))
    count = bench.write_texts(texts, None if os.environ.get("TEST_COUNTS") == "full" else 3000)
    assert count >= 3000
    common = ["--input-format", "jsonl", "--format", "npy"]
    assert run_cli(home, ["embed", "--input", str(texts), "--output", str(rows), *common], timeout=900).code == 0
    queries = tmp_path / "queries.jsonl"
    asked = json.loads(bench.QUERIES.read_text(encoding="utf-8"))["queries"]
    queries.write_text("".join(json.dumps(query["query"]) + "\n" for query in asked), encoding="utf-8")
    found = tmp_path / "queries.npy"
    assert run_cli(home, ["embed", "--query", "--input", str(queries), "--output", str(found), *common]).code == 0

    lines = texts.read_text(encoding="utf-8").splitlines(keepends=True)
    picked = sorted(random.Random(7).sample(range(count), 300))  # noqa: S311 - a sample
    sample.write_text("".join(lines[index] for index in picked), encoding="utf-8")
    published = bench.published_model(context, target, tmp_path / "wheels")
    tokenizer = model_files(context.home, MODEL).tokenizer
    script = ROOT / "tests" / "bench" / "plain_loop.py"
    loop = [str(part) for part in (target.python, script, published, tokenizer, sample, plain, 1)]
    subprocess.run(loop, check=True, capture_output=True)

    files = {"rows": rows, "plain": plain, "queries": found, "texts": texts, "expected": bench.QUERIES}
    judged = bench.judge(target, tmp_path, {**{name: str(path) for name, path in files.items()}, "picked": picked})
    assert judged["rows"] == [count, 384]
    assert judged["norm_error"] < 1e-5
    assert judged["compared"] == 300
    assert judged["min_cosine"] >= 0.9999
    assert judged["found"] >= 15, judged["missed"]


def test_a_vector_depends_on_its_text_alone(home: Path, target: Target) -> None:
    """Neither neighbours, order nor batch size change it beyond rounding."""
    texts = [
        b"",
        b"one",
        b"a much longer text about the weather in spring " * 20,
        "ünïcode 漢字 🎈".encode(),
        b"\0",
    ] * 9
    random.Random(3).shuffle(texts)  # noqa: S311 - an order
    together = vectors(embed_with(settings(home, target), texts)[1])
    alone = {text: vectors(embed_with(settings(home, target, batch_tokens=1), [text])[1])[0] for text in set(texts)}
    import array

    for text, row in zip(texts, together, strict=True):
        first, second = array.array("f", row), array.array("f", alone[text])
        assert max(abs(a - b) for a, b in zip(first, second, strict=True)) < 1e-5


def test_a_long_text_is_cut_and_counted_and_its_head_alone_decides(home: Path, target: Target) -> None:
    words = b"".join(b"word%d " % (index % 50) for index in range(130_000))
    assert len(words) > 800_000
    _, data, done = embed_with(settings(home, target), [words, words[:4000], b"short"])
    first, second, _ = vectors(data)
    assert first == second
    assert (done.texts, done.truncated) == (3, 2)
    assert done.tokens == 256 + 256 + 3


def test_json_numbers_are_the_shortest_that_read_back_as_the_same_float32(home: Path, target: Target) -> None:
    import struct

    raw = vectors(embed_with(settings(home, target), [b"a text"])[1])[0]
    line = json.loads(embed_with(settings(home, target, rows="jsonl"), [b"a text"])[1])
    text = embed_with(settings(home, target, rows="text"), [b"a text"])[1].split()
    assert struct.pack("<384f", *line["embedding"]) == raw
    assert struct.pack("<384f", *map(float, text)) == raw
    assert max(map(len, text)) <= len("-0.00001234567891")


def test_memory_does_not_follow_the_input(home: Path, target: Target) -> None:
    def texts(count: int) -> Iterator[bytes]:
        return (b"text %d" % index for index in range(count))

    few = embed_with(settings(home, target), texts(2_100))[2]
    many = embed_with(settings(home, target), texts(8_400))[2]
    assert (few.texts, many.texts) == (2_100, 8_400)
    if few.peak_bytes is not None and many.peak_bytes is not None:
        assert many.peak_bytes < few.peak_bytes + 16 * 2**20


def start(home: Path, *arguments: str, **more: Any) -> "subprocess.Popen[bytes]":  # noqa: ANN401
    environ = scrubbed(os.environ) | {
        "IMPRINT_HOME": str(home),
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "cmd")]),
    }
    command = [sys.executable, "-m", "imprint_cli", "embed", *arguments]
    return subprocess.Popen(command, env=environ, stdin=subprocess.PIPE, stderr=subprocess.PIPE, **more)


def children_of(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()]


def wait_for_worker(process: "subprocess.Popen[bytes]") -> int:
    assert process.stderr is not None
    assert b"embeddings run on the CPU" in process.stderr.readline()
    return children_of(process.pid)[0]


def is_gone(pid: int) -> bool:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return True
        if state == "Z":
            return True
        time.sleep(0.1)
    return False


needs_proc = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")


@needs_proc
def test_an_interrupt_ends_both_and_leaves_no_file(home: Path, tmp_path: Path) -> None:
    with start(home, "--input", "-", "--output", str(tmp_path / "rows")) as process:
        worker = wait_for_worker(process)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=20) == 130
    assert is_gone(worker)
    assert list(tmp_path.iterdir()) == []


@needs_proc
def test_a_worker_that_is_killed_is_an_error_and_leaves_no_file(home: Path, tmp_path: Path) -> None:
    with start(home, "--input", "-", "--output", str(tmp_path / "rows")) as process:
        os.kill(wait_for_worker(process), signal.SIGKILL)
        assert process.wait(timeout=20) == 1
        assert process.stderr is not None
        assert b"most likely because memory ran out" in process.stderr.read()
    assert list(tmp_path.iterdir()) == []


@needs_proc
def test_a_worker_does_not_outlive_the_command(home: Path) -> None:
    with start(home, "--input", "-", stdout=subprocess.DEVNULL) as process:
        worker = wait_for_worker(process)
        process.kill()
    assert is_gone(worker)


def test_a_reader_that_leaves_ends_it_quietly(home: Path, tmp_path: Path) -> None:
    source = tmp_path / "texts"
    source.write_bytes(b"".join(b"text %d\n" % index for index in range(6000)))
    with start(home, "--input", str(source), stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        talk = process.stderr.read()
        process.wait(timeout=60)
    assert b"Traceback" not in talk
    assert b"error" not in talk


def test_invalid_utf8_ends_with_2_and_its_line(home: Path) -> None:
    ran = run_cli(home, ["embed", "--input", "-"], stdin=b"fine\n" * 3000 + b"\xff\n")
    assert ran.code == 2
    assert "line 3001: not valid UTF-8" in ran.err


def test_it_embeds_where_proc_is_not_mounted(home: Path) -> None:
    """As in a chroot: ONNX Runtime resolves files beside the model through /proc, so it is given what they hold."""
    namespace = ("unshare", "--mount", "sh", "-c", 'umount -l /proc && exec "$@"', "sh")
    if os.geteuid() or subprocess.run([*namespace, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no mount namespace here")
    texts = ["embed", "--format", "text", "a text"]
    ran = run_cli(home, texts, within=namespace)
    assert (ran.code, ran.out) == (0, run_cli(home, texts).out)
    assert run_cli(home, ["check", "--placement"], within=namespace).code == 0


def test_no_texts_are_an_empty_array(home: Path, tmp_path: Path) -> None:
    rows = tmp_path / "rows.npy"
    assert run_cli(home, ["embed", "--input", "-", "--format", "npy", "--output", str(rows)]).code == 0
    assert parse_npy(rows.read_bytes()) == ((0, 384), b"")


def test_a_damaged_model_is_refused_with_the_way(home: Path) -> None:
    weights = model_files(Home(home), MODEL).weights
    whole = weights.read_bytes()
    try:
        weights.write_bytes(whole[:-1])
        ran = run_cli(home, ["embed", "a"])
        assert (ran.code, "imprint setup" in ran.err) == (1, True)
    finally:
        weights.write_bytes(whole)
    assert run_cli(home, ["embed", "a"]).code == 0


def test_a_model_that_was_overwritten_is_named_by_all_and_setup_mends_it(home: Path) -> None:
    """Of the right size, with wrong bytes; a copy of it with the right ones is hashed and no fault."""
    weights = model_files(Home(home), MODEL).weights
    whole = weights.read_bytes()
    weights.write_bytes(whole[:-9] + b"overwrite")
    commands = (["status"], ["plan", "--check"], ["check"], ["embed", "a"], ["doctor"])
    ran = [run_cli(home, words) for words in commands]
    assert all("does not have the content" in one.out + one.err for one in ran), ran
    assert [one.code for one in ran] == [1, 100, 1, 1, 1]
    assert "embeddings run" not in ran[3].out + ran[3].err
    assert run_cli(home, ["setup", "--yes", "--json"], timeout=900).code == 0
    assert weights.read_bytes() == whole
    weights.unlink()
    weights.write_bytes(whole)
    assert [run_cli(home, words).code for words in commands] == [0] * 5


@pytest.mark.parametrize("missing", ["tokenizers", "orjson"])
def test_a_package_that_is_missing_is_no_fault_of_the_model(
    home: Path, target: Target, tmp_path: Path, missing: str
) -> None:
    """As in somebody's own environment that has ONNX Runtime and was never set up: found before anything is said."""
    subprocess.run([target.python, "-m", "venv", "--without-pip", tmp_path / "env"], check=True)
    (packages,) = (tmp_path / "env").glob("lib/*/site-packages")
    for path in next(target.prefix.glob("lib/*/site-packages")).iterdir():
        if not path.name.startswith(missing):
            (packages / path.name).symlink_to(path)
    lacking = replace(settings(home, target), python=tmp_path / "env" / "bin" / "python", repair="imprint setup")
    with pytest.raises(ImprintError, match=missing) as caught, Worker(replace(lacking, rows="jsonl")) as worker:
        worker.start()
    assert caught.value.specific_code == "target-incomplete"
    assert caught.value.hint == "run `imprint setup`"


def test_a_steady_trickle_is_embedded_before_it_ends(home: Path) -> None:
    """Lines come until the first vector has: the real worker goes on with less than a window, too."""
    folders = os.pathsep.join([str(ROOT), str(ROOT / "cmd")])
    environ = scrubbed(os.environ) | {"IMPRINT_HOME": str(home), "PYTHONPATH": folders}
    command = [sys.executable, "-m", "imprint_cli", "embed", "--input", "-"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        os.set_blocking(process.stdout.fileno(), False)
        given, got = 0, b""
        while not got:
            process.stdin.write(b"a line of text\n")
            process.stdin.flush()
            given += 1
            time.sleep(0.01)
            got = process.stdout.read() or b""
        os.set_blocking(process.stdout.fileno(), True)
        process.stdin.close()
        got += process.stdout.read()
    assert (process.returncode, len(got.splitlines())) == (0, given)
