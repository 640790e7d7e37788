"""Runs the embedding worker in a target and streams texts through it, from the tool's side, where there is no numpy.

Two threads move bytes: one feeds texts, one reads answers; both wait when the other side is behind, so neither the
input nor the output is ever held whole. A worker that crashes, hangs or runs out of memory becomes an ImprintError.
It is one long file because threads, deadlines and errors share the state of one process.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from imprint import touch
from imprint.causes.circumstances import here
from imprint.causes.errors import outside_error
from imprint.errors import ImprintError
from imprint.hints import helps
from imprint.inside import frames
from imprint.last_words import what_ended_it
from imprint.planning.model import Device
from imprint.runtime.check import reads
from imprint.runtime.check.causes import plain
from imprint.runtime.check.children import HIDDEN, INSIDE, Mode, child_arguments, child_environment
from imprint.runtime.check.outside import outside_cause
from imprint.values import Record
from imprint.words import CPU_PROVIDER

_FRAME_TEXTS = 256
_FRAME_BYTES = 256 * 1024
_POLL_SECONDS = 0.5
_FLUSH_SECONDS = 0.2
"""A source that kept us waiting for this long since the first text that is on hand gets its rows at once."""

START_SECONDS = 300.0
"""The first session on a GPU can take minutes; loading on a CPU takes a fraction of a second."""

SILENT_SECONDS = 300.0
"""A worker that has work and says nothing for this long hangs: one batch takes well under a second on a CPU."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How to run a worker. `rows` is `raw` (float32, little-endian), `jsonl` or `text`.

    `gpu` is the one GPU the worker may see, None for the CPU; `repair` is the hint where the target itself is at
    fault. Token limits count special tokens; batches count padding too.
    """

    python: Path
    model: Path
    tokenizer: Path
    dims: int
    rows: str = "raw"
    gpu: Device | None = None
    threads: int = 1
    max_tokens: int = 256
    batch_tokens: int = 256
    gpu_batch_tokens: int = 16384
    repair: str = "imprint setup --repair"
    worker: Path = INSIDE
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)
    start_seconds: float = START_SECONDS
    silent_seconds: float = SILENT_SECONDS


class Hello(Record):
    """What a worker that is ready says: the provider in use (not the one asked for) and ONNX Runtime's version."""

    provider: str
    version: str
    pid: int

    @property
    def on_gpu(self) -> bool:
        """Whether the model truly runs on a GPU."""
        return self.provider != CPU_PROVIDER


class Rows(Record):
    """The next `count` rows in the order of the texts, encoded as the settings say."""

    count: int
    data: bytes


class Progress(Record):
    """How many texts have been embedded so far; their rows follow later."""

    done: int


class Done(Record):
    """The end of a run: texts, how many of them were cut, tokens, tokens with padding, peak memory of the worker."""

    texts: int
    truncated: int
    tokens: int
    padded: int
    peak_bytes: int | None


class Worker:
    """One worker process for one run; a context manager that ends it on the way out, whatever happens."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._answers: queue.Queue[tuple[bytes, bytes] | Exception | None] = queue.Queue(maxsize=4)
        self._feeder = _Feeder()
        self._talk: IO[bytes] = touch.nameless_file()
        self._process: subprocess.Popen[bytes] | None = None
        self._to_worker: IO[bytes] | None = None
        self._from_worker: IO[bytes] | None = None
        self._reader: threading.Thread | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            _end(self._process)
        while self._reader is not None and self._reader.is_alive():
            # It may wait for room in the queue; nobody wants these answers any more.
            with contextlib.suppress(queue.Empty):
                self._answers.get(timeout=0.01)
        if self._from_worker is not None:
            self._from_worker.close()
        if self._to_worker is not None and not self._feeder.started:
            with contextlib.suppress(OSError):
                self._to_worker.close()
        self._talk.close()

    def start(self) -> Hello:
        """Start the process and wait until the model is loaded. Raises ImprintError that says what failed."""
        settings = self._settings
        try:
            self._open()
        except OSError as error:
            raise outside_error(error) or ImprintError(
                f"the runtime's interpreter cannot be started: {settings.python}: {error.strerror}",
                hint=helps("run", command=settings.repair),
                code="target-incomplete",
            ) from error
        self._reader = threading.Thread(target=self._read, args=(self._from_worker,), daemon=True)
        self._reader.start()
        kind, payload = self._next(settings.start_seconds)
        if kind != frames.HELLO:
            raise ImprintError("the embedding worker did not introduce itself", code="worker-failed")
        return Hello(**json.loads(payload))

    def _open(self) -> None:
        """Start the process on two pipes of its own: an environment may print, or read, before anything of ours runs.

        Windows passes no other descriptors than the standard ones.
        """
        settings = self._settings
        arguments = worker_arguments(settings)
        environ, folder = worker_environment(settings), settings.model.parent
        if sys.platform == "win32":
            self._process = subprocess.Popen(
                arguments, env=environ, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._talk
            )
            self._to_worker, self._from_worker = self._process.stdin, self._process.stdout
            return
        texts, to_worker = os.pipe()
        from_worker, answers = os.pipe()
        self._to_worker, self._from_worker = os.fdopen(to_worker, "wb"), os.fdopen(from_worker, "rb")
        try:
            self._process = subprocess.Popen(
                [*arguments, str(texts), str(answers)],
                env=environ,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._talk,
                pass_fds=(texts, answers),
            )
        finally:
            os.close(texts)
            os.close(answers)

    def embed(self, texts: Iterable[bytes]) -> Iterator[Rows | Progress | Done]:
        """Yield rows in the order of `texts` (UTF-8), now and then progress, and Done at the end.

        `texts` is iterated in another thread; what it raises is raised here. Raises ImprintError with code
        `worker-crashed`, `worker-killed`, `worker-hung`, `out-of-memory`, `bad-vector` or `worker-failed`.
        """
        if self._process is None or self._to_worker is None:
            raise ImprintError("the embedding worker was not started", code="worker-failed")
        self._feeder.start(texts, self._to_worker)
        while True:
            kind, payload = self._next(self._settings.silent_seconds)
            if kind == frames.ROWS:
                yield Rows(*frames.unpack_rows(payload))
            elif kind == frames.PROGRESS:
                yield Progress(json.loads(payload)["done"])
            elif kind == frames.DONE:
                yield Done(**json.loads(payload))
                return

    def _next(self, patience: float) -> tuple[bytes, bytes]:
        waited_since = time.monotonic()
        while True:
            try:
                answer = self._answers.get(timeout=_POLL_SECONDS)
            except queue.Empty:
                if self._feeder.waits_for_source:
                    waited_since = time.monotonic()  # the worker has nothing to do yet
                if time.monotonic() - waited_since > patience:
                    raise ImprintError(
                        f"the embedding worker did not respond for {patience:.0f} seconds and was ended",
                        hint=helps("check-the-runtime"),
                        code="worker-hung",
                    ) from None
                continue
            if self._feeder.error is not None and not isinstance(answer, tuple):
                raise self._feeder.error
            if not isinstance(answer, tuple):
                raise self._death(answer)
            if answer[0] == frames.FAILURE:
                raise failure_of(json.loads(answer[1]), self._settings.repair, self._settings.environ)
            return answer

    def _read(self, stream: IO[bytes] | None) -> None:
        try:
            while stream is not None and (frame := frames.read_frame(stream)) is not None:
                self._answers.put(frame)
            self._answers.put(None)
        except (OSError, ValueError, frames.ProtocolError) as error:
            self._answers.put(error)

    def _death(self, error: Exception | None) -> ImprintError:
        if self._process is None:
            return ImprintError("the embedding worker was not started", code="worker-failed")
        try:
            returncode = self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            return ImprintError(f"the connection to the embedding worker broke: {error}", code="worker-failed")
        self._talk.seek(0, os.SEEK_END)
        self._talk.seek(max(0, self._talk.tell() - 4096))
        return death_of(returncode, self._talk.read().decode("utf-8", "replace"), self._settings.repair)


class _Feeder:
    """Writes texts to a worker from a thread of its own; `error` is what the source of the texts raised.

    A second thread tells the worker to go on with what it has when the source keeps it waiting. A source that is never
    waited for, such as a file, is thus cut into the same windows in every run.
    """

    def __init__(self) -> None:
        self.error: BaseException | None = None
        self.started = False
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._batch: list[bytes] = []
        self._size = 0
        self._unflushed = False
        self._waited = 0.0
        self._waits_since: float | None = None

    @property
    def waits_for_source(self) -> bool:
        """Whether there is nothing to feed at the moment."""
        return self._waits_since is not None

    def start(self, texts: Iterable[bytes], stream: IO[bytes]) -> None:
        self.started = True
        threading.Thread(target=self._feed, args=(texts, stream), daemon=True).start()
        threading.Thread(target=self._flush_when_idle, args=(stream,), daemon=True).start()

    def _feed(self, texts: Iterable[bytes], stream: IO[bytes]) -> None:
        # A worker that is gone is noticed by whoever reads its answers.
        with contextlib.suppress(OSError), stream:
            try:
                for text in self._guarded(texts):
                    with self._lock:
                        self._add(text, stream)
            finally:
                self._ended.set()
            with self._lock:
                if self.error is None:
                    self._send(stream)
                    frames.write_frame(stream, frames.END)

    def _flush_when_idle(self, stream: IO[bytes]) -> None:
        while not self._ended.wait(_FLUSH_SECONDS / 2):
            with self._lock, contextlib.suppress(OSError, ValueError):
                since = self._waits_since
                waited = self._waited + (time.monotonic() - since if since is not None else 0.0)
                if since is not None and self._unflushed and waited >= _FLUSH_SECONDS and not self._ended.is_set():
                    self._send(stream)
                    frames.write_frame(stream, frames.FLUSH)
                    self._unflushed = False

    def _add(self, text: bytes, stream: IO[bytes]) -> None:
        if self._batch and (len(self._batch) == _FRAME_TEXTS or self._size + len(text) > _FRAME_BYTES):
            self._send(stream)
        if not self._unflushed:
            self._unflushed, self._waited = True, 0.0
        self._batch.append(text)
        self._size += len(text)

    def _send(self, stream: IO[bytes]) -> None:
        if self._batch:
            frames.write_frame(stream, frames.TEXTS, frames.pack_texts(self._batch))
            self._batch, self._size = [], 0

    def _guarded(self, texts: Iterable[bytes]) -> Iterator[bytes]:
        try:
            source = iter(texts)
            while True:
                self._waits_since = since = time.monotonic()
                text = next(source, None)
                self._waits_since = None
                self._waited += time.monotonic() - since
                if text is None:
                    return
                yield text
        except GeneratorExit:
            raise
        except BaseException as error:  # raised again where the rows are read
            self.error = error
            self._waits_since = None


def worker_arguments(settings: Settings, mode: Mode = "embed") -> list[str]:
    """Return the command line of a worker: the target's interpreter, isolated, with our settings as one argument."""
    told = {
        "model": os.fspath(settings.model),
        "tokenizer": os.fspath(settings.tokenizer),
        "dims": settings.dims,
        "rows": settings.rows,
        "device": "cpu" if settings.gpu is None else "gpu",
        "threads": settings.threads,
        "max_tokens": settings.max_tokens,
        "batch_tokens": settings.batch_tokens,
        "gpu_batch_tokens": settings.gpu_batch_tokens,
    }
    return child_arguments(settings.python, mode, json.dumps(told), package=settings.worker)


def worker_environment(settings: Settings) -> dict[str, str]:
    """Return the environment of a worker: a child's, one thread for each library, and no GPU where none is used."""
    return {
        **child_environment(settings.environ, settings.gpu),
        **(HIDDEN if settings.gpu is None else {}),
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "TOKENIZERS_PARALLELISM": "false",
        # Large blocks go back to the system when they are freed; without it glibc keeps what loading the model took.
        "MALLOC_MMAP_THRESHOLD_": str(1024 * 1024),
        "MALLOC_ARENA_MAX": "1",
    }


def failure_of(facts: Mapping[str, Any], repair: str, environ: Mapping[str, str]) -> ImprintError:
    """Return the error that a worker's FAILURE amounts to."""
    hints = {"model-unusable": "doctor-deep", "out-of-memory": "lower-batch", "bad-vector": "check-computes"}
    code, message = str(facts.get("code", "worker-failed")), str(facts.get("message"))
    newer = too_new(message, str(facts.get("version") or ""), repair)
    if newer is not None:
        return newer
    outside = outside_cause(message, environ)
    if outside is not None:
        hint = outside.fix(here(environ, traits=["named" if "--venv" in repair else "managed"]))
        return ImprintError(f"embedding failed: {outside.seen}", hint=hint, code=outside.code)
    hint = helps("run", command=repair) if code == "target-incomplete" else None
    hint = helps(hints[code]) if code in hints else hint
    return ImprintError(f"embedding failed: {plain(str(facts.get('message')))}", hint=hint, code=code)


_TOO_NEW = (
    re.compile(r"Unsupported model (?P<what>IR) version: (?P<has>\d+), max supported IR version: (?P<most>\d+)"),
    re.compile(r"(?P<what>[Oo]pset) (?P<has>\d+) is under development.*?till opset (?P<most>\d+)", re.DOTALL),
)


def too_new(message: str, version: str, repair: str) -> ImprintError | None:
    """Return the error of a model made for a newer ONNX Runtime than the one of `version`; None for any other message.

    The model is whole, so that nothing is to be repaired: another runtime reads it, or nothing here does.
    """
    found = next((match for pattern in _TOO_NEW if (match := pattern.search(message))), None)
    if found is None:
        return None
    what = "IR version" if found["what"] == "IR" else "opset"
    other = helps("run", command=repair) if "--venv" in repair else helps("another-model")
    told = reads.too_new(what, found["has"], found["most"], version)
    return ImprintError(told, hint=other, code="model-too-new")


def death_of(returncode: int, talk: str, repair: str) -> ImprintError:
    """Return the error that a worker's end without an answer amounts to; `talk` is the end of its stderr."""
    line = plain(talk)
    last = f": {line}" if line else ""
    if returncode == -getattr(signal, "SIGKILL", 9):
        return ImprintError(
            "the embedding worker was killed (SIGKILL), most likely because memory ran out",
            hint=helps("lower-batch"),
            code="worker-killed",
        )
    if (name := what_ended_it(returncode)) is not None:
        return ImprintError(
            f"the embedding worker crashed ({name}){last}",
            hint=helps("check-the-runtime"),
            code="worker-crashed",
        )
    return ImprintError(
        f"the embedding worker ended early (exit status {returncode}){last}",
        hint=helps("run", command=repair),
        code="worker-failed",
    )


def _end(process: subprocess.Popen[bytes]) -> None:
    # One that is done needs a moment to leave by itself; any other is not worth waiting for.
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=0.2)
    if process.poll() is None:
        process.kill()
        process.wait()
