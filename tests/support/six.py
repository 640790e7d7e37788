"""What six commands say of one environment, side by side, and what must never be said together."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from imprint.context import Context
from imprint.errors import ImprintError
from imprint.operations.check import check
from imprint.operations.doctor import DoctorOptions, diagnose
from imprint.operations.embed import EmbedOptions, embed
from imprint.operations.plan import PlanOptions, plan
from imprint.operations.setup import Seams, SetupOptions, setup
from imprint.operations.status import status
from imprint.results import Notice, Result
from imprint.runtime.check.run import run_check
from imprint.situation.verdict import Prove


@dataclass(frozen=True)
class Said:
    """One command's answer: its data (None where it was refused), the codes of its remarks, its exit code."""

    data: dict[str, Any] | None
    warnings: tuple[str, ...]
    errors: tuple[str, ...]

    @property
    def exit(self) -> int:
        """The exit code, as far as 0 and 1 go."""
        return 1 if self.errors else 0


@dataclass(frozen=True)
class Story:
    """What each of the six says; `embed` None where no real model can run."""

    status: Said
    setup: Said
    plan: Said
    check: Said
    doctor: Said
    embed: Said | None

    @property
    def plan_exit(self) -> int:
        """The exit code of `plan --check`."""
        return self.plan.exit or (100 if self.plan.data is not None and self.plan.data["pending"] else 0)

    def line(self, name: str) -> str:
        """Return one line for people who compare."""
        found = (self.doctor.data or {"findings": ()})["findings"]
        told = sorted({one["code"] for one in found if one["status"] in {"warning", "error"}})
        parts = [
            f"status {_runs(self.status)} exit {self.status.exit}: {_line(self.status)}",
            f"setup {_runs(self.setup, 'status')}",
            f"plan --check {self.plan_exit}",
            f"check {(self.check.data or {}).get('outcome', self.check.errors)} {' '.join(self.check.warnings)}",
            f"doctor {_runs(self.doctor)} exit {self.doctor.exit} {','.join(told)}".rstrip(),
        ]
        if self.embed is not None:
            parts.append(f"embed {(self.embed.data or {}).get('runs_on', self.embed.errors)}")
        return f"{name}: " + " | ".join(parts)


def ask(context: Context, prefix: Path, *, prove: Prove = run_check, embeds: bool = True) -> Story:
    """Ask all six about the environment at `prefix`; `check` comes last, since it records what it finds."""
    seams = Seams(check=prove)
    dry = SetupOptions(venv=prefix, dry_run=True)
    return Story(
        status=_said(lambda: status(context, prefix, prove=prove)),
        setup=_said(lambda: setup(context, dry, lambda _: None, seams=seams)),
        plan=_said(lambda: plan(context, PlanOptions(venv=prefix, check=True), prove=prove)),
        doctor=_said(lambda: diagnose(context, DoctorOptions(venv=prefix), prove=prove)),
        embed=_said(lambda: _embed(context, prefix)) if embeds else None,
        check=_said(lambda: check(context, prefix, prove=prove)),
    )


def contradictions(story: Story) -> list[str]:
    """Return what two of the six say that cannot both be so; empty where they tell one story."""
    found = [*_what_it_runs_on(story), *_what_is_wrong(story)]
    data = story.status.data
    if data is None:
        return found
    if (story.status.exit == 0) != data["embeds"]:
        found.append("the exit code of status is not about whether embeddings run")
    wanted = 100 if data["pending"] else 0 if data["embeds"] else 1
    if story.plan.data is not None and story.plan.data["build"] is not None and story.plan_exit != wanted:
        found.append(f"plan --check exits {story.plan_exit}, and status is pending={data['pending']}")
    if story.check.data is not None and (story.check.exit == 0) != data["embeds"]:
        found.append(f"check exits {story.check.exit}, status says {_line(story.status)}")
    if data["embeds"] and not data["line"].startswith("embeddings run on"):
        found.append("the line does not say that embeddings run")
    if not data["embeds"] and not data["line"].startswith("embeddings do not run"):
        found.append("the line claims that embeddings run")
    return found


def _what_it_runs_on(story: Story) -> list[str]:
    places = {"status": _runs(story.status), "doctor": _runs(story.doctor)}
    if story.setup.data is not None:
        places["setup"] = _runs(story.setup, "status")
    found = [] if len(set(places.values())) == 1 else [f"they differ in what it runs on: {places}"]
    ok = (story.check.data or {}).get("outcome") == "ok"
    if ok != (places["status"] != "none"):
        found.append(f"check says {ok}, status says {places['status']}")
    if story.embed is not None and (story.embed.data is not None) != bool((story.status.data or {}).get("embeds")):
        found.append(f"embed ends with {story.embed.errors or 'rows'}, status says {_line(story.status)}")
    if story.embed is not None and story.embed.data is not None and story.embed.data["runs_on"] != places["status"]:
        found.append(f"embed ran on {story.embed.data['runs_on']}, status says {places['status']}")
    return found


def _what_is_wrong(story: Story) -> list[str]:
    problem = (story.status.data or {}).get("problem") or {}
    found = []
    findings: Sequence[dict[str, Any]] = (story.doctor.data or {"findings": ()})["findings"]
    told = {one["code"] for one in findings if one["status"] in {"warning", "error"}}
    named = told | {one["code"] for one in findings} & {"packages-missing"}
    if any(one["id"] == "model:files" and one["status"] != "ok" for one in findings):
        named |= {"model-missing", "model-damaged"}
    if problem and problem["code"] in {"packages-missing", "model-missing", "model-damaged"}:
        found += [] if problem["code"] in named else [f"doctor does not name what status names: {problem}"]
    elif problem and not told:
        found.append(f"status says {problem}, doctor finds nothing wrong")
    if story.doctor.exit and story.status.data is not None and not problem and not story.status.data["pending"]:
        found.append(f"doctor finds {sorted(told)}, status finds nothing wrong")
    if problem and story.check.data is not None and not (story.check.warnings or story.check.errors):
        found.append(f"status says {problem}, check says nothing")
    return found


def _embed(context: Context, prefix: Path) -> Result[Any]:
    options = EmbedOptions(texts=("a text",), format="text", venv=prefix)
    return embed(context, options, lambda _: None, stdin=io.BytesIO, stdout=io.BytesIO())


def _said(command: Any) -> Said:  # noqa: ANN401 - any of the six
    try:
        result: Result[Any] = command()
    except ImprintError as error:
        return Said(None, (), (Notice.of(error).code,))
    return Said(dict(result.data), tuple(one.code for one in result.warnings), tuple(one.code for one in result.errors))


def _runs(said: Said, key: str | None = None) -> str:
    data = said.data if key is None or said.data is None else said.data[key]
    return "none" if data is None else str(data["runs_on"])


def _line(said: Said) -> str:
    return str(said.data["line"]) if said.data is not None else str(said.errors)
