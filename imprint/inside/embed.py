"""The embedding worker's main program: claims the pipes for its protocol and turns every failure into an answer.

Takes its settings as one JSON argument, and after it the descriptors to read texts from and to answer in; without them
(Windows cannot pass any) these are stdin and stdout. Whatever libraries print to stdout goes to stderr: they do print
there. The libraries are imported only after that, so that one that is missing or broken is an answer too.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from typing import BinaryIO

from . import frames

CODES = {
    "ModuleNotFoundError": "target-incomplete",
    "ImportError": "target-incomplete",
    "AttributeError": "target-incomplete",
    "TypeError": "target-incomplete",
    "BadVectorError": "bad-vector",
    "OutOfMemoryError": "out-of-memory",
    "MemoryError": "out-of-memory",
    "ModelError": "model-unusable",
}
"""The code of a failure by the name of its exception; any other is `worker-failed`."""


def main() -> None:
    """Run until the input ends; the exit status is 0 then, also where nobody reads our answers any more."""
    texts, answers = _claim_pipes()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the tool decides what an interrupt means
    try:
        from .serve import serve

        serve(json.loads(sys.argv[1]), texts, answers)
    except BrokenPipeError:
        pass
    except Exception as error:  # everything becomes an answer
        _fail(answers, error)
    # No time is spent on tearing down libraries, and a reader blocked on stdin is not waited for.
    sys.stderr.flush()
    os._exit(0)


def _claim_pipes() -> tuple[BinaryIO, BinaryIO]:
    given = [int(number) for number in sys.argv[2:4]]
    source, private = given or (0, os.dup(1))
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    if sys.platform == "win32":
        import msvcrt

        msvcrt.setmode(private, os.O_BINARY)
    texts = os.fdopen(source, "rb") if given else sys.stdin.buffer
    return texts, os.fdopen(private, "wb", buffering=1024 * 1024)


def _fail(answers: BinaryIO, error: Exception) -> None:
    name = type(error).__name__
    # Where a message is long, its reason stands last.
    facts = {"code": CODES.get(name, "worker-failed"), "message": (str(error) or name)[-2000:]}
    facts["version"] = str(getattr(sys.modules.get("onnxruntime"), "__version__", ""))
    with contextlib.suppress(BrokenPipeError):
        frames.write_frame(answers, frames.FAILURE, frames.pack_facts(facts))
