"""Judges what a check's child answered and how it ended. Pure: text and numbers in, a CheckResult out."""

from __future__ import annotations

import errno
import re
import sys
from collections.abc import Mapping
from typing import Any

from imprint.last_words import is_of_outside, what_ended_it
from imprint.planning.model import Device
from imprint.probing.host import ChildResult
from imprint.runtime.check.causes import Broken, broken_library, cause_in, missing_cudnn, plain
from imprint.runtime.check.reads import Needs, needs_from_json
from imprint.runtime.check.result import CPU, CUDA, STEPS, CheckResult, GpuMemory, Step
from imprint.values import Record, fields_of
from imprint.words import FailureKind, Outcome

_End = tuple[Outcome, FailureKind, str]
"""Outcome, kind and detail."""

LIMITS = {CPU: 1e-4, CUDA: 5e-3}
"""Largest error, relative to the largest wanted value. TF32, on by default on GPUs, keeps ten bits: about 1e-3."""

_FAILED: Mapping[str, FailureKind] = {"conv": "conv-failed", "matmul": "matmul-failed", "ort": "ort-failed"}

SCARCE = 300 * 1024 * 1024
"""Bytes. A context and cuBLAS's workspace alone take about this much: with less free, no failure says anything."""

_SHORT_OF_SOMETHING: Mapping[int, FailureKind] = {
    errno.EAGAIN: "out-of-memory",
    errno.ENOMEM: "out-of-memory",
    errno.ETXTBSY: "busy",
}
"""Why a process could not even be started although its interpreter is fine."""


def judge(provider: str, device: Device | None, ended: ChildResult, facts: Mapping[str, Any]) -> CheckResult:
    """Return what the check's end and the facts that it told amount to."""
    told = _Reply.of(provider, device, facts, ended.stderr)
    bad_end = _how_it_ended(ended)
    if bad_end is not None:
        return _of_bad_end(told, *bad_end)
    if not facts.get("complete"):
        return _without_answer(told, ended)
    if facts.get("error"):
        error = str(facts["error"])
        if cause := cause_in(error):
            return told.result(cause.outcome, cause.kind, cause.detail)
        return told.result("failed", "import-failed", plain(error))
    bad = next((name for name in STEPS if not told.steps[name].ok), None)
    return told.result("ok", None, None) if bad is None else _failed(told, bad)


class _Reply(Record):
    """What the child told, made safe.

    `sessions` has the providers of each step's session, `text` is all that it and its libraries wrote.
    """

    provider: str
    device: Device | None
    steps: Mapping[str, Step]
    sessions: Mapping[str, tuple[str, ...] | None]
    text: str
    at: str | None = None
    preload: str = ""
    build: Mapping[str, Any] = {}
    memory: GpuMemory | None = None
    libraries: Mapping[str, str] = {}
    lacks: tuple[str, ...] = ()
    mapped: tuple[str, ...] = ()
    reads: Needs | None = None

    @classmethod
    def of(cls, provider: str, device: Device | None, facts: Mapping[str, Any], stderr: str) -> _Reply:
        seen = facts.get("steps")
        seen = seen if isinstance(seen, dict) else {}
        errors = [str(step.get("error") or "") for step in seen.values() if isinstance(step, dict)]
        build = facts.get("build")
        libraries = facts.get("libraries")
        return cls(
            provider,
            device,
            {name: _step(seen.get(name), provider) for name in STEPS} if facts.get("complete") or seen else {},
            {name: _providers(seen.get(name)) for name in STEPS},
            "\n".join([*errors, stderr]),
            str(facts["at"]) if facts.get("at") in STEPS else None,
            str(facts.get("preload") or ""),
            build if isinstance(build, dict) else {},
            _memory(facts.get("memory")),
            {str(name): str(path) for name, path in libraries.items()} if isinstance(libraries, dict) else {},
            _texts(facts.get("lacks")),
            _texts(facts.get("mapped")),
            needs_from_json(facts.get("reads")),
        )

    @property
    def cuda(self) -> str | None:
        version = self.build.get("cuda")
        return version if isinstance(version, str) else None

    def result(
        self, outcome: Outcome, kind: FailureKind | None, detail: str | None, broken: Broken | None = None
    ) -> CheckResult:
        return CheckResult(
            outcome,
            kind,
            self.provider,
            self.device,
            detail,
            broken.library if broken else None,
            broken.wanted_by if broken else None,
            self.steps,
            _text(self.build.get("package")),
            _text(self.build.get("version")),
            broken.wheel if broken else None,
            self.memory,
            self.libraries,
            self.lacks,
            self.mapped,
            self.reads,
        )


def _how_it_ended(ended: ChildResult) -> _End | None:
    if ended.not_started is not None:
        return _not_started(ended.not_started)
    if ended.timed_out:
        return "inconclusive", "timeout", "the check did not finish in time"
    if ended.returncode is None:
        return "inconclusive", "killed", "it is not known how the check ended"
    return _exit(ended.returncode)


def _exit(code: int) -> _End | None:
    name = what_ended_it(code)
    if name is None:
        return None
    if is_of_outside(name):
        return "inconclusive", "killed", f"the check was killed from outside with {name}"
    return "crashed", "crashed", f"the check crashed with {name}"


def _not_started(why: str) -> _End:
    found = re.match(r"\[Errno (\d+)\]", why)
    kind = _SHORT_OF_SOMETHING.get(int(found[1])) if found else None
    detail = f"the target's interpreter does not start: {why}"
    return ("inconclusive", kind, detail) if kind else ("failed", "not-started", detail)


def _of_bad_end(told: _Reply, outcome: Outcome, kind: FailureKind, detail: str) -> CheckResult:
    where = f" in the step {told.at}" if told.at and kind in {"crashed", "timeout"} else ""
    if outcome != "crashed":
        return told.result(outcome, kind, detail + where)
    cause = cause_in(told.text)
    if cause is not None and cause.kind == "out-of-memory":
        # C++ that nobody catches turns a lack of memory into an abort.
        return told.result(cause.outcome, cause.kind, cause.detail)
    broken = missing_cudnn(told.text, told.libraries, told.cuda, _system())
    return told.result(outcome, kind, f"{detail}{where}" + (f": {broken.sentence}" if broken else ""), broken)


def _without_answer(told: _Reply, ended: ChildResult) -> CheckResult:
    if cause := cause_in(ended.stderr):
        return told.result(cause.outcome, cause.kind, cause.detail)
    where = f" in the step {told.at}" if told.at else ""
    detail = f"the check gave no answer{where} (exit code {ended.returncode}): {plain(ended.stderr) or 'no output'}"
    return told.result("failed", "import-failed" if told.at is None else _FAILED[told.at], detail)


def _step(seen: object, provider: str) -> Step:
    if not isinstance(seen, dict):
        return Step(ok=False, error="the check reported nothing about this step")
    error, providers, placed = seen.get("error"), _providers(seen), seen.get("placed")
    max_error, seconds = _number(seen.get("max_error")), _number(seen.get("seconds"))
    counts = {str(name): count for name, count in placed.items()} if isinstance(placed, dict) else None
    right = max_error is not None and max_error <= LIMITS[provider]
    there = providers is not None and providers[:1] == (provider,)
    there = there and (counts is None or set(counts) == {provider})
    return Step(
        ok=bool(seen.get("ok")) and right and there,
        error=plain(str(error)) if error else None,
        max_error=max_error,
        seconds=seconds,
        placed=counts,
    )


def _providers(seen: object) -> tuple[str, ...] | None:
    """Return the providers of a step's session, None where there was none."""
    found = seen.get("providers") if isinstance(seen, dict) else None
    return tuple(map(str, found)) if isinstance(found, list) else None


def _failed(told: _Reply, name: str) -> CheckResult:
    """Judge the first step that is not ok, from the causes that explain the most to those that explain the least."""
    step = told.steps[name]
    if step.error is None:
        elsewhere = sorted(set(step.placed or ()) - {told.provider})
        if (providers := told.sessions[name]) is not None and (providers[:1] != (told.provider,) or elsewhere):
            where = ", ".join(elsewhere or providers) or "nothing"
            return told.result("failed", "wrong-device", f"{name} ran on {where} instead of {told.provider}")
        size = "not a number, or the wrong shape" if step.max_error is None else f"off by {step.max_error:.1e}"
        return told.result("failed", "wrong-numbers", f"{name} computed wrong numbers: {size}")
    return _raised(told, name, step.error)


def _raised(told: _Reply, name: str, error: str) -> CheckResult:
    available = told.build.get("available")
    if isinstance(available, list) and told.provider not in available:
        detail = f"the installed {told.build.get('package') or 'package'} has no {told.provider}"
        return told.result("failed", "wrong-device", detail)
    if cause := cause_in(told.text):
        return told.result(cause.outcome, cause.kind, cause.detail)
    free = None if told.memory is None else told.memory.total_bytes - told.memory.used_before_bytes
    if free is not None and free < SCARCE:
        return told.result("inconclusive", "out-of-memory", f"only {free >> 20} MiB of the GPU's memory were free")
    nothing_loaded = all(providers is None for providers in told.sessions.values())
    if not nothing_loaded:
        broken = missing_cudnn(told.text, told.libraries, told.cuda, _system()) if name == "conv" else None
        detail = f"{name} does not run: {broken.sentence if broken else error}"
        return told.result("failed", _FAILED[name], detail, broken)
    broken = broken_library(told.text, told.preload, told.cuda)
    if broken is None:
        return told.result("failed", "provider-failed", f"{told.provider} does not start: {error}")
    return told.result("failed", "provider-failed" if broken.flaw else "library-missing", broken.sentence, broken)


def _memory(seen: object) -> GpuMemory | None:
    names = fields_of(GpuMemory)
    if not isinstance(seen, dict) or not all(isinstance(seen.get(name), int) for name in names):
        return None
    return GpuMemory(**{name: seen[name] for name in names})


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _texts(value: object) -> tuple[str, ...]:
    return tuple(text for text in value if isinstance(text, str)) if isinstance(value, list) else ()


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _system() -> str:
    return "windows" if sys.platform == "win32" else "linux"
