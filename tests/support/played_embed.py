"""Embeds one text on a played worker, as `imprint embed --json` would say it."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

from imprint.context import Context
from imprint.operations.embed import EmbedOptions, embed
from imprint.results import Empty, Result
from imprint_cli.exits import explain
from imprint_cli.machine import envelope

PLAYED = Path(__file__).parents[1] / "embedding" / "played_worker"


def main() -> int:
    """Print the envelope and return the exit code."""
    try:
        result = embed(
            Context.of_process(),
            EmbedOptions(texts=("one text",)),
            lambda _: None,
            stdin=io.BytesIO,
            stdout=io.BytesIO(),
            worker_package=PLAYED,
        )
    except Exception as error:
        remark, code = explain(error, ["embed"])
        sys.stdout.write(json.dumps(envelope("embed", Result(Empty(), (), (remark,)))))
        return code
    sys.stdout.write(json.dumps(envelope("embed", result)))
    return 0
