"""`status`: the one authoritative line about what embeddings run on, and the facts behind it."""

from __future__ import annotations

from pathlib import Path

from imprint.context import Context
from imprint.hints import helps
from imprint.provisioning.retrying import failed_build, retry_hint
from imprint.results import Notice, Result
from imprint.runtime.check.run import run_check
from imprint.runtime.verdict import decide
from imprint.situation.inputs import gather
from imprint.situation.reading import notices_of
from imprint.situation.status import Status, status_of
from imprint.situation.targets import target_of
from imprint.situation.verdict import Prove, default_hint, errors_of, look_at
from imprint.state import last_run
from imprint.state.findings import Findings

__all__ = ["Status", "status"]


def status(context: Context, venv: Path | None = None, *, prove: Prove = run_check) -> Result[Status]:
    """Return the authoritative line and its facts, of the managed target or of the environment `venv`.

    Nothing is started while a recorded check holds; else the check runs on the CPU, and is not recorded. No hardware is
    read when the CPU is asked for. An error of the result where embeddings do not run. Raises StateError and
    StateNewerError for state that cannot be used, and ImprintError for a `venv` that is no environment.
    """
    findings = Findings()
    target = target_of(context, venv, findings)
    inputs = gather(context, target, findings=findings)
    last = last_run.read(context.home, findings) if venv is None else None
    verdict = decide(
        look_at(context, target, inputs.plan, gpu_proved=inputs.proved, prove=prove, last=last, findings=findings)
    )
    warnings = [*notices_of(findings), *([gpu_missed()] if verdict.missed else [])]
    errors = errors_of(verdict)
    hint = default_hint(context, inputs.plan, target.prefix if venv is not None and target is not None else None)
    if (failed := failed_build(inputs)) is not None:
        hint = retry_hint(context, inputs, failed, venv)
    return Result(status_of(verdict, hint), tuple(warnings), errors)


def gpu_missed() -> Notice:
    """Return what `status` says beside its line while the last worker missed the GPU."""
    message = "you asked for a GPU, but the last embedding ran on the CPU"
    return Notice("gpu-not-used", message, helps("check-says-why", command="imprint check"))
