"""Tries the ONNX Runtime of a target in a child and reads what the child said.

The child is another process because a broken build can crash or hang; each of these is an answer here. Nothing in the
target is changed, not even a compiled file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from imprint import last_words
from imprint.diagnosis.facts import Library, Loaded
from imprint.planning.model import Device
from imprint.probing.host import ChildResult
from imprint.runtime.check.causes import broken_library
from imprint.runtime.check.children import ask_child, child_arguments, child_environment

SECONDS = 60.0
"""How long loading, two sessions and finding the libraries may take; the first session on a GPU is slow."""

_TALK = 2000


def try_runtime(  # noqa: PLR0913 - all but the first three are keywords
    python: Path,
    environ: Mapping[str, str],
    names: Sequence[tuple[str, bool]],
    *,
    device: Device | None = None,
    gpu: bool = True,
    deadline: float = SECONDS,
) -> Loaded:
    """Load and try ONNX Runtime with the interpreter `python`; never raises for what the child does.

    With `gpu` a build that has the CUDA provider is asked for it, on `device` alone when one is given. `names` are
    the libraries to find, each with whether it is required.
    """
    request = json.dumps({"gpu": gpu, "names": [name for name, _ in names]})
    argv = child_arguments(python, "probe", request)
    return judge(*ask_child(argv, child_environment(environ, device), deadline), dict(names))


def judge(ended: ChildResult, said: Mapping[str, Any], required: Mapping[str, bool]) -> Loaded:
    """Return what a child's facts and its end amount to."""
    build = said.get("build") or {}
    how = how_it_ended(ended)
    text = "\n".join([str(said.get("run_error") or ""), ended.stderr])
    broken = broken_library(text, "", build.get("cuda"))
    missing = broken if broken is not None and broken.flaw is None else None
    session = said.get("session")
    return Loaded(
        package=build.get("package"),
        version=build.get("version"),
        cuda=build.get("cuda"),
        file=build.get("file"),
        available=tuple(build.get("available") or ()),
        has_session=bool(said.get("has_session")),
        error=said.get("error"),
        sends=said.get("sends"),
        ended=how,
        stage=(said.get("at") or "import") if how is not None else None,
        session=tuple(session) if session is not None else None,
        run_error=said.get("run_error"),
        cpu_error=said.get("cpu_error"),
        missing=missing.library if missing is not None else None,
        wanted_by=missing.wanted_by if missing is not None else None,
        talk=ended.stderr.strip()[-_TALK:],
        libraries=_libraries(said.get("libraries"), required),
    )


def how_it_ended(ended: ChildResult) -> str | None:
    """Return how a child ended that did not end well: `timeout`, a signal's name, an exit code; None when it did."""
    if ended.not_started is not None:
        return f"not started: {ended.not_started}"
    if ended.timed_out:
        return "timeout"
    code = ended.returncode
    if not code:
        return None
    return last_words.what_ended_it(code) or last_words.how_it_ended(code)


def _libraries(said: Sequence[Mapping[str, Any]] | None, required: Mapping[str, bool]) -> tuple[Library, ...] | None:
    if said is None:
        return None
    return tuple(
        Library(one["name"], one["source"], one["path"], required.get(one["name"], True), bool(one["loaded"]))
        for one in said
    )
