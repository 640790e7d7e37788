"""Runs the model on a few texts under ONNX Runtime's profiler and says which provider ran which operations.

Arguments: the settings (JSON), and the file to answer in. It judges nothing; `embedding/placement.py` does.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .answering import Answer, of_error

RUNS = 3
"""Measured runs; one before them is not counted, since it compiles kernels and grows memory."""

TEXTS = (
    "A graphics processor computes many things at once.",
    "Where does this run?",
    "The longest of these sentences says nothing that matters, but it gives the model a little more to do than others.",
    "One",
)


def main() -> None:
    """Measure, and tell as each stage begins."""
    answer = Answer(error=None, provider=None, operations=None)
    answer.tell("load")
    try:
        observe(json.loads(sys.argv[1]), answer)
    except Exception as problem:  # whatever a provider raises is what we are here to report
        answer.end(error=of_error(problem))
    answer.end()


def observe(settings: Mapping[str, Any], answer: Answer) -> None:
    """Add the provider and its operations, stage by stage. Raises what the model raises."""
    from .session import Session
    from .tokens import Tokens

    folder = Path(sys.argv[2]).parent if len(sys.argv) > 2 else Path(settings["model"]).parent
    session = Session(settings["model"], settings["device"], os.fspath(folder / "profile"))
    answer.tell("run", provider=session.provider)
    ids, _ = Tokens(settings["tokenizer"], settings["max_tokens"]).encode(TEXTS)
    for _ in range(1 + RUNS):
        session.run(ids)
    profile = Path(session.end_profile())
    try:
        answer.facts["operations"] = summarise(json.loads(profile.read_text("utf-8")))
    finally:
        profile.unlink()


def summarise(events: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return rows of provider, op, nodes, microseconds a run, and the size in bytes of the largest output.

    `events` is a profile; its first run is left out. Nodes of one operation are one row as long as the sizes of their
    outputs are of the same order, so that few rows stand for many nodes.
    """
    runs = [event for event in events if event.get("name") == "model_run"]
    begin = runs[0]["ts"] + runs[0]["dur"] if len(runs) > 1 else 0
    counted = max(1, len(runs) - 1)
    nodes: dict[str, dict[str, Any]] = {}
    for event in events:
        about = event.get("args") or {}
        if event.get("cat") != "Node" or not event["name"].endswith("_kernel_time") or event["ts"] < begin:
            continue
        node = nodes.setdefault(event["name"], {"microseconds": 0.0, "largest": 0})
        node["key"] = (about.get("provider") or "unknown", about.get("op_name") or "unknown")
        node["microseconds"] += event["dur"] / counted
        node["largest"] = max(node["largest"], int(about.get("output_size") or 0))
    rows: dict[tuple[str, str, int], dict[str, Any]] = {}
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
