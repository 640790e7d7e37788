"""Runs the model on a few texts under ONNX Runtime's profiler and says which provider ran which operations.

A main program of its own, beside the worker's: `placement.py` on the tool's side starts it and judges. Called with the
settings (JSON) and the file to answer in; one line is written as each stage begins, the last one is the answer.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any, Dict, List, Mapping, Sequence, Tuple  # noqa: UP035 - Python 3.9 runs this

RUNS = 3
"""Measured runs; one before them is not counted, since it compiles kernels and grows memory."""

TEXTS = (
    "A graphics processor computes many things at once.",
    "Where does this run?",
    "The longest of these sentences says nothing that matters, but it gives the model a little more to do than others.",
    "One",
)


def main() -> None:
    """Measure, and write the facts where nothing else writes."""
    stdout = os.dup(1)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # ONNX Runtime reads this as it loads; whoever starts us sets it too
    facts: Dict[str, Any] = {"stage": "load", "error": None, "provider": None, "operations": None}  # noqa: UP006

    def tell() -> None:
        line = ("\n" + json.dumps(facts) + "\n").encode("ascii")
        try:
            with Path(sys.argv[2]).open("ab") as file:
                file.write(line)
        except (IndexError, OSError):
            os.write(stdout, line)

    tell()
    try:
        observe(json.loads(sys.argv[1]), facts, tell)
        facts["stage"] = "done"
    except Exception as problem:  # whatever a provider raises is what we are here to report
        facts["error"] = (type(problem).__name__ + ": " + str(problem))[-4000:]
    tell()
    sys.stderr.flush()
    os._exit(0)


def observe(settings: Mapping[str, Any], facts: Dict[str, Any], tell: Any) -> None:  # noqa: UP006, ANN401
    """Fill `facts`, stage by stage. Raises what the model raises."""
    from .session import Session
    from .tokens import Tokens

    folder = Path(sys.argv[2]).parent if len(sys.argv) > 2 else Path(settings["model"]).parent
    session = Session(settings["model"], settings["device"], os.fspath(folder / "profile"))
    facts.update(stage="run", provider=session.provider)
    tell()
    ids, _ = Tokens(settings["tokenizer"], settings["max_tokens"]).encode(TEXTS)
    for _ in range(1 + RUNS):
        session.run(ids)
    profile = Path(session.end_profile())
    try:
        facts["operations"] = summarise(json.loads(profile.read_text("utf-8")))
    finally:
        profile.unlink()


def summarise(events: Sequence[Mapping[str, Any]]) -> List[Dict[str, Any]]:  # noqa: UP006
    """Return rows of provider, op, nodes, microseconds a run, and the size in bytes of the largest output.

    `events` is a profile; its first run is left out. Nodes of one operation are one row as long as the sizes of their
    outputs are of the same order, so that few rows stand for many nodes.
    """
    runs = [event for event in events if event.get("name") == "model_run"]
    begin = runs[0]["ts"] + runs[0]["dur"] if len(runs) > 1 else 0
    counted = max(1, len(runs) - 1)
    nodes: Dict[str, Dict[str, Any]] = {}  # noqa: UP006
    for event in events:
        about = event.get("args") or {}
        if event.get("cat") != "Node" or not event["name"].endswith("_kernel_time") or event["ts"] < begin:
            continue
        node = nodes.setdefault(event["name"], {"microseconds": 0.0, "largest": 0})
        node["key"] = (about.get("provider") or "unknown", about.get("op_name") or "unknown")
        node["microseconds"] += event["dur"] / counted
        node["largest"] = max(node["largest"], int(about.get("output_size") or 0))
    rows: Dict[Tuple[str, str, int], Dict[str, Any]] = {}  # noqa: UP006
    for node in nodes.values():
        provider, op = node["key"]
        row = rows.setdefault(
            (provider, op, node["largest"].bit_length() // 4),
            {"provider": provider, "op": op, "nodes": 0, "microseconds": 0.0, "largest": 0},
        )
        row["nodes"] += 1
        row["microseconds"] = round(row["microseconds"] + node["microseconds"], 1)
        row["largest"] = max(row["largest"], node["largest"])
    return [rows[key] for key in sorted(rows)]
