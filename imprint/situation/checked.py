"""What a check that was made is recorded as, and what is told of one that failed."""

from __future__ import annotations

import os
from pathlib import Path

from imprint import clock
from imprint.causes.circumstances import here
from imprint.context import Context
from imprint.hints import helps
from imprint.planning.fingerprints import fingerprint_of
from imprint.planning.model import Device, Verdict
from imprint.results import Notice
from imprint.runtime import proofs
from imprint.runtime.check import proof
from imprint.runtime.check.outside import outside_cause
from imprint.runtime.check.run import CheckResult
from imprint.runtime.managed import generations
from imprint.runtime.target import Target
from imprint.situation.inputs import Inputs
from imprint.situation.targets import command_of
from imprint.state import last_run, verdicts
from imprint.state.findings import Findings


def record(context: Context, target: Target | None, inputs: Inputs, result: CheckResult, findings: Findings) -> None:
    """Record what a check proved: on a GPU as a verdict, on the CPU as the target's own proof.

    One that a GPU passed is noted in both places. An inconclusive check proved nothing and is not recorded. The caller
    holds the mutex.
    """
    if result.outcome == "inconclusive":
        return
    if target is not None and (result.device is None or result.ok):
        if target.managed:
            generations.note_check(context.home, target, result, context.environ)
        else:
            proofs.write(context.home, target, proof.proof_of(result, target, context.environ))
    if result.device is None:
        return
    if result.ok:
        # What a worker missed before is no longer the newest word on this GPU.
        last_run.forget(context.home)
    verdict = Verdict(
        build=inputs.plan.build or "",
        result="ok" if result.ok else "failed",
        kind=result.kind,
        time=clock.now(),
        fingerprint=fingerprint_of(inputs.plan, None, inputs.machine, inputs.builds),
        detail=None if result.ok else result.detail,
    )
    verdicts.record(context.home, verdict, findings)


def failure_of(result: CheckResult, venv: Path | None = None, *, retry: str | None = None) -> Notice:
    """Return the notice that a check which is not ok amounts to; `retry` is how a GPU is tried again."""
    name = name_of(result.device)
    if result.outcome == "inconclusive":
        return Notice(
            "check-inconclusive",
            f"the check on {name} proved nothing: {result.detail}",
            helps("when-device-is-free", command=command_of("setup", venv)),
        )
    setup = command_of("setup", venv)
    hint: str | None = retry or helps("retry-gpu", setup=setup)
    if result.device is None:
        outside = outside_cause(result.detail or "", os.environ)
        # What lies outside the runtime is not mended by installing it again.
        situation = here(os.environ, traits=["named" if venv is not None else "managed"])
        hint = outside.fix(situation) if outside is not None else helps("repair", setup=setup)
    return Notice("check-failed", f"the check on {name} failed ({result.kind}): {result.detail}", hint)


def lies_outside(result: CheckResult) -> bool:
    """Whether a check on the CPU failed because of something that no installation changes."""
    return result.device is None and outside_cause(result.detail or "", os.environ) is not None


def name_of(device: Device | None) -> str:
    """Return what a person calls the device of a check."""
    return "the CPU" if device is None else device.name or "the GPU"
