"""Embeds texts as they come: reads windows of them, tokenises one window ahead, runs batches, writes rows in order.

Memory does not follow the input: at most two windows and one window's rows are held. Signs of life are written while
a window is computed, so the tool can tell work from a hang, and a tool that is gone is noticed.
"""

from __future__ import annotations

import os
import queue
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, BinaryIO

import numpy as np

from . import frames
from .batching import padded_tokens, plan_batches
from .loading import CPU
from .pooling import Array
from .session import Session, ort
from .tokens import Tokens

WINDOW_TEXTS = 2048
WINDOW_BYTES = 4 * 1024 * 1024
"""How many texts are sorted together: enough that padding is rare, few enough that memory stays flat."""

_ROWS_PER_FRAME = 256
_HEARTBEAT_SECONDS = 0.2


class ModelError(Exception):
    """The model's files cannot be loaded or are not what the catalogue says."""


def serve(settings: dict[str, Any], texts: BinaryIO, answers: BinaryIO) -> None:
    """Embed every text of `texts` and write the answers. Raises ModelError, and what a batch raises."""
    try:
        session = Session(settings["model"], settings["device"])
        tokens = Tokens(settings["tokenizer"], settings["max_tokens"])
    except (ImportError, AttributeError, TypeError):
        raise  # the environment lacks a package, or has one of another age; the model is not to blame
    except Exception as error:
        raise ModelError(str(error)) from error
    if session.dims not in {None, settings["dims"]}:
        raise ModelError(f"the model gives {session.dims} dimensions, not {settings['dims']}")
    if settings["rows"] != "raw":
        import orjson  # noqa: F401 - where it is missing, nothing may be said to run
    hello = {"provider": session.provider, "version": ort.__version__, "pid": os.getpid()}
    frames.write_frame(answers, frames.HELLO, frames.pack_facts(hello))
    embedder = _Embedder(settings, session, answers)
    for window in _ahead(lambda: _windows(texts, tokens)):
        embedder.embed(window)
    frames.write_frame(answers, frames.DONE, frames.pack_facts(dict(embedder.totals, peak_bytes=_peak_bytes())))


class _Window:
    def __init__(self) -> None:
        self.ids: list[Any] = []
        self.truncated = 0
        self.size = 0


def _windows(stream: BinaryIO, tokens: Tokens) -> Iterator[_Window]:
    """Yield full windows, and what there is at FLUSH and at END. An input that ends before: the tool is gone."""
    window = _Window()
    while True:
        frame = frames.read_frame(stream)
        if frame is None:
            os._exit(0)
        kind, payload = frame
        if kind == frames.END:
            break
        if kind == frames.FLUSH:
            if window.ids:
                yield window
                window = _Window()
            continue
        ids, truncated = tokens.encode(frames.unpack_texts(payload))
        window.ids += ids
        window.truncated += truncated
        window.size += len(payload)
        if len(window.ids) >= WINDOW_TEXTS or window.size >= WINDOW_BYTES:
            yield window
            window = _Window()
    if window.ids:
        yield window


def _ahead(make: Callable[[], Iterator[_Window]]) -> Iterator[_Window]:
    """Yield what the iterator yields, prepared one ahead in a thread of its own; its exceptions are raised here."""
    ready: queue.Queue[Any] = queue.Queue(maxsize=1)

    def work() -> None:
        try:
            for window in make():
                ready.put(window)
            ready.put(None)
        except BaseException as error:
            ready.put(error)

    threading.Thread(target=work, daemon=True).start()
    while True:
        window: Any | None = ready.get()
        if window is None:
            return
        if isinstance(window, BaseException):
            raise window
        yield window


class _Embedder:
    """Embeds one window after another and writes its rows; keeps the totals of the run."""

    def __init__(self, settings: dict[str, Any], session: Session, answers: BinaryIO) -> None:
        on_gpu = session.provider != CPU
        self._session = session
        self._answers = answers
        self._encoding = settings["rows"]
        self._dims = settings["dims"]
        self._budget = settings["gpu_batch_tokens" if on_gpu else "batch_tokens"]
        self._pool = ThreadPoolExecutor(1 if on_gpu else settings["threads"])
        self.totals = {"texts": 0, "truncated": 0, "tokens": 0, "padded": 0}

    def embed(self, window: _Window) -> None:
        """Embed a window and write its rows, with signs of life in between."""
        lengths = [len(one) for one in window.ids]
        batches = plan_batches(lengths, self._budget)
        rows = np.empty((len(lengths), self._dims), dtype=np.float32)

        def run(batch: list[int]) -> int:
            rows[batch] = self._session.run([window.ids[index] for index in batch])
            return len(batch)

        first, done, told = self.totals["texts"], 0, time.monotonic()
        for count in self._pool.map(run, batches):
            done += count
            if time.monotonic() - told > _HEARTBEAT_SECONDS:
                told = time.monotonic()
                frames.write_frame(self._answers, frames.PROGRESS, frames.pack_facts({"done": first + done}))
        for start in range(0, len(rows), _ROWS_PER_FRAME):
            part = rows[start : start + _ROWS_PER_FRAME]
            data = encode_rows(part, self._encoding, first + start)
            frames.write_frame(self._answers, frames.ROWS, frames.pack_rows(len(part), data))
        self.totals["texts"] += len(lengths)
        self.totals["truncated"] += window.truncated
        self.totals["tokens"] += sum(lengths)
        self.totals["padded"] += padded_tokens(lengths, batches)


def encode_rows(rows: Array, encoding: str, first: int) -> bytes:
    """Return rows [n, dims] as bytes: `raw` little-endian float32, `jsonl` objects, `text` numbers with spaces.

    Numbers are the shortest that read back as the same float32. `first` is the index of the first row.
    """
    if encoding == "raw":
        return bytes(rows.astype("<f4", copy=False).tobytes())
    import orjson

    option = orjson.OPT_SERIALIZE_NUMPY
    if encoding == "jsonl":
        option |= orjson.OPT_APPEND_NEWLINE
        return b"".join(
            orjson.dumps({"index": first + i, "embedding": row}, option=option) for i, row in enumerate(rows)
        )
    return b"".join(orjson.dumps(row, option=option)[1:-1].replace(b",", b" ") + b"\n" for row in rows)


def _peak_bytes() -> int | None:
    """Return the most memory this process held so far, None where the system does not say."""
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
