"""Plays the embedding worker: the same protocol, vectors made of text lengths, and every bad end.

The name of the model file says what to play. Python 3.9 syntax, standard library only, like the real one.
"""

import json
import os
import signal
import struct
import sys
import time
from pathlib import Path
from typing import Any, BinaryIO, Callable, Dict  # noqa: UP035 - as the real one

import inside  # type: ignore[import-not-found]  # made by whoever starts us

inside.__path__.append(str(Path(__file__).resolve().parents[3] / "imprint" / "inside"))

from inside import frames  # noqa: E402 - the real protocol


def main() -> None:
    settings = json.loads(sys.argv[1])
    play = Path(settings["model"]).stem
    texts_from, answers = os.fdopen(int(sys.argv[2]), "rb"), os.fdopen(int(sys.argv[3]), "wb")
    if play in AT_START:
        AT_START[play](answers)
    provider = "CUDAExecutionProvider" if settings["device"] == "gpu" and play == "gpu" else "CPUExecutionProvider"
    hello = {"provider": provider, "version": "0.0", "pid": os.getpid()}
    frames.write_frame(answers, frames.HELLO, frames.pack_facts(hello))
    count = 0
    while True:
        kind, payload = frames.read_frame(texts_from) or sys.exit(0)
        if kind == frames.END:
            break
        if kind == frames.FLUSH:
            continue
        if play in AT_WORK:
            AT_WORK[play](answers)
        texts = frames.unpack_texts(payload)
        data = b"".join(row(settings, count + index, text) for index, text in enumerate(texts))
        frames.write_frame(answers, frames.PROGRESS, frames.pack_facts({"done": count + len(texts)}))
        frames.write_frame(answers, frames.ROWS, frames.pack_rows(len(texts), data))
        count += len(texts)
    done = {"texts": count, "truncated": 0, "tokens": count, "padded": count, "peak_bytes": None}
    frames.write_frame(answers, frames.DONE, frames.pack_facts(done))


def print_and_sleep(answers: BinaryIO) -> None:
    answers.write(b"onnxruntime says hello on stdout")
    answers.flush()
    time.sleep(60)


def fail(answers: BinaryIO, code: str, message: str) -> None:
    frames.write_frame(answers, frames.FAILURE, frames.pack_facts({"code": code, "message": message}))
    sys.exit(0)


AT_START: Dict[str, Callable[[BinaryIO], None]] = {  # noqa: UP006 - as the real one
    "silent-start": lambda _: time.sleep(60),
    "no-library": lambda answers: fail(answers, "target-incomplete", "No module named 'numpy'"),
    "garbage": print_and_sleep,
}
AT_WORK: Dict[str, Callable[[BinaryIO], None]] = {  # noqa: UP006 - as the real one
    "killed": lambda _: os.kill(os.getpid(), signal.SIGKILL),
    "crashed": lambda _: os.kill(os.getpid(), signal.SIGSEGV),
    "hangs": lambda _: time.sleep(60),
    "quits": lambda _: sys.exit("Fatal: something is odd"),
    "out-of-memory": lambda answers: fail(answers, "out-of-memory", "bad allocation"),
}


def row(settings: Dict[str, Any], index: int, text: str) -> bytes:  # noqa: UP006
    vector = [float(len(text.encode()))] + [0.0] * (settings["dims"] - 1)
    if settings["rows"] == "raw":
        return struct.pack(f"<{len(vector)}f", *vector)
    if settings["rows"] == "jsonl":
        return json.dumps({"index": index, "embedding": vector}).encode() + b"\n"
    return " ".join(map(str, vector)).encode() + b"\n"


if __name__ == "__main__":
    main()
