"""What doctor prints: problems first, the rest as a count, and every finding with `--all`."""

from dataclasses import replace
from typing import Any

import pytest

from imprint.context import Context
from imprint.diagnosis.checks import CHECKS, run
from imprint.diagnosis.facts import Damage, Facts
from imprint.diagnosis.findings import counts
from imprint.diagnosis.standing import verdict_of
from imprint.errors import ImprintError, StateNewerError, UsageError
from imprint.operations.doctor import Report, explain_code
from imprint.paths import Home
from imprint_cli.render_doctor import render_explanation, render_findings
from support.recorded import ENVIRONMENT, GPU_PLAN, MANAGED, changed


def shown(facts: Facts, **options: bool) -> list[str]:
    findings, verdict = run(CHECKS, facts), verdict_of(facts)
    runs_on, embeds = (None, False) if verdict is None else (verdict.runs_on, verdict.embeds)
    return render_findings(Report(runs_on, embeds, tuple(findings), counts(findings)), **options).splitlines()


def test_one_fault_is_not_hidden_among_what_is_well() -> None:
    damaged = replace(MANAGED.target.runtimes, damages=(Damage("onnxruntime", "missing", 1, "onnxruntime/x.py"),))  # type: ignore[type-var]
    lines = shown(changed(MANAGED, runtimes=damaged))
    assert lines[0].startswith("ERROR   target:integrity: onnxruntime: 1 file is missing")
    assert lines[3] == "        fix: `imprint setup --repair`"
    assert sum(line.startswith("ok ") for line in lines) <= 1
    assert lines[-1].startswith("1 error, 0 warnings, ")
    assert lines[-1].endswith("(`--all` shows all)")


def test_errors_come_before_warnings() -> None:
    facts = changed(ENVIRONMENT, unknown_variables=(("IMPRINT_X", None),), interrupted=True)
    words = [line.split()[0] for line in shown(facts) if not line.startswith(" ")]
    assert words[:2] == ["ERROR", "warning"]


def test_all_shows_every_finding() -> None:
    every = shown(MANAGED, everything=True)
    for check in CHECKS:
        assert [line for line in every if f" {check.id}: " in line], check.id
    assert "--all" not in every[-1]
    assert len(shown(MANAGED)) < 6


def test_a_gpu_that_waits_is_told_with_what_to_type_and_what_it_costs() -> None:
    waiting = changed(MANAGED, waiting=replace_plan(download_bytes=1_400_000_000))
    lines = shown(waiting)
    assert lines[0] == (
        "note    gpu:waiting: NVIDIA L4 could be used (cuda13 1.31.1), but model.device is cpu, the default"
    )
    assert lines[2] == (
        "        to use it: `imprint config set model.device auto`, then `imprint setup` (a download of 1.4 GB)"
    )
    named = shown(changed(ENVIRONMENT, waiting=replace_plan()))
    assert any("`imprint setup --venv /srv/app/.venv`" in line for line in named)


def replace_plan(download_bytes: int | None = None) -> Any:  # noqa: ANN401 - a plan
    from imprint.values import replace as changed

    return changed(GPU_PLAN, download_bytes=download_bytes)


def test_where_no_gpu_waits_the_default_is_told_once() -> None:
    assert sum("the CPU is the default" in line for line in shown(MANAGED)) == 1
    assert not [line for line in shown(changed(MANAGED, device_set=True)) if "default" in line]


def test_an_explanation_and_what_is_near_an_unknown_code() -> None:
    context = Context(Home.__new__(Home), {})
    one = render_explanation(explain_code(context, "gpu-lost-in-container").payload)
    assert one.splitlines()[1:] == ["what helps: restart the container"]
    several = render_explanation(explain_code(context, "driver-mismatch").payload)
    assert several.splitlines()[1] == "what helps:"
    assert any(line.startswith("- in a container: ") for line in several.splitlines())
    with pytest.raises(UsageError) as near:
        explain_code(context, "driver-to-old")
    assert "`driver-too-old`" in (near.value.hint or "")
    with pytest.raises(UsageError) as far:
        explain_code(context, "nonsense")
    assert "did you mean" not in (far.value.hint or "")
    assert "docs/troubleshooting.md" in (far.value.hint or "")


def test_an_environment_that_lacks_what_embedding_needs_is_not_said_to_embed() -> None:
    """Its ONNX Runtime works, and `status` says the same of embeddings."""
    versions = {name: version for name, version in ENVIRONMENT.target.runtimes.versions.items() if name != "orjson"}  # type: ignore[union-attr]
    lines = shown(changed(ENVIRONMENT, runtimes=replace(ENVIRONMENT.target.runtimes, versions=versions)))  # type: ignore[type-var]
    assert any(
        line.startswith("ERROR   target:embedding: `imprint embed` does not run here: orjson is missing")
        for line in lines
    )
    assert lines[-2] == "embeddings do not run; ONNX Runtime runs on: cpu"


def test_where_embeddings_do_not_run_no_line_says_what_they_run_on() -> None:
    damaged = {"model": ImprintError("the model all-minilm-l6-v2 is damaged", code="model-damaged")}
    lines = shown(changed(MANAGED, failures=damaged, model=None))
    assert lines[0].startswith("ERROR   model:files: ")
    assert [line.strip() for line in lines if "runs on" in line or "run on" in line] == [
        "embeddings do not run; ONNX Runtime runs on: cpu"
    ] * 2


def test_where_it_is_not_known_nothing_says_that_the_cpu_is_used() -> None:
    newer = {"target": StateNewerError("`current.json` was written by a newer version of Imprint")}
    lines = shown(changed(MANAGED, failures=newer, provisioned=None), everything=True)
    assert [line for line in lines if "the CPU is used" in line] == []
    assert "skipped runtime:embedding-device: what embeddings run on is not known; see the other findings" in lines
