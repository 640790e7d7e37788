"""Proves a target: runs `check_child.py` in it and judges what it saw.

The child is another process because a broken build can crash, hang or exhaust memory; each of these is an answer
here. `judge` is pure. Recording a verdict, and what follows from one, is decided elsewhere.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from imprint.planning.model import Device
from imprint.probing.children import run_child
from imprint.probing.host import ChildResult

CHILD = Path(__file__).with_name("check_child.py")
CHECK_ID = hashlib.sha256(CHILD.read_bytes()).hexdigest()[:16]
"""Names what the check does; a verdict counts only for the check that gave it."""

CPU = "CPUExecutionProvider"
CUDA = "CUDAExecutionProvider"

CPU_SECONDS = 60.0
GPU_SECONDS = 300.0
"""Deadlines. The first session on a GPU may compile every kernel, so these are generous: a timeout proves nothing."""

_OUTPUT_LIMIT = 256 * 1024
_STEPS = ("conv", "matmul", "ort")
_LIMITS = {CPU: 1e-4, CUDA: 5e-3}
"""Largest error, relative to the largest wanted value. TF32, on by default on GPUs, keeps ten bits: about 1e-3."""

_CRASHES = frozenset({"SIGSEGV", "SIGBUS", "SIGILL", "SIGABRT", "SIGFPE", "SIGTRAP", "SIGSYS"})
_NO_KERNEL = re.compile(
    r"no kernel image|cudaErrorNoKernelImageForDevice|CUDA failure 209\b|unsupported toolchain|CUDA failure 222\b"
)
_NO_MEMORY = re.compile(
    r"out of memory|std::bad_alloc|MemoryError|cudaErrorMemoryAllocation|CUDNN_STATUS_ALLOC_FAILED"
    r"|CUBLAS_STATUS_ALLOC_FAILED|Failed to allocate memory|CUDA failure 2\b",
    re.IGNORECASE,
)
_BUSY = re.compile(r"busy or unavailable|cudaErrorDevicesUnavailable|CUDA failure 46\b", re.IGNORECASE)
_CAUSES = (
    (_NO_MEMORY, "inconclusive", "out-of-memory", "the device ran out of memory"),
    (_BUSY, "inconclusive", "busy", "the device is busy or unavailable"),
    (_NO_KERNEL, "failed", "no-kernel", "this build has no code for this GPU"),
)
_MISSING = re.compile(
    r"(?:Failed to load(?: library)? (?P<wanted_by>\S+) with error: |Failed to load \S+: )?"
    r"(?P<library>[\w.+-]+\.so[\w.]*): cannot open shared object file"
)
_MISSING_WINDOWS = re.compile(r"which depends on \"(?P<library>[^\"]+)\" which is missing")


@dataclass(frozen=True, slots=True)
class Step:
    """One computation: whether its numbers are right, the largest relative error, or why there is none."""

    ok: bool
    error: str | None = None
    max_error: float | None = None
    seconds: float | None = None
    providers: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What a check proved.

    `outcome` is ok, failed, crashed or inconclusive; `kind` says how, None when ok. failed: library-missing,
    conv-failed, matmul-failed, ort-failed, wrong-numbers, wrong-device, no-kernel, provider-failed, import-failed,
    not-started. crashed: crashed. inconclusive: timeout, out-of-memory, busy, killed. `detail` is one sentence
    fragment; `library` and `wanted_by` are set with library-missing.
    """

    outcome: str
    kind: str | None
    provider: str
    device: Device | None
    detail: str | None = None
    library: str | None = None
    wanted_by: str | None = None
    steps: Mapping[str, Step] = field(default_factory=dict)
    package: str | None = None
    version: str | None = None

    @property
    def ok(self) -> bool:
        """Whether the target computes what it should, where it should."""
        return self.outcome == "ok"

    def to_json(self) -> dict[str, Any]:
        """Return the `data` of `imprint check --json`."""
        device: dict[str, Any] = {"kind": "cpu" if self.provider == CPU else "gpu", "provider": self.provider}
        if self.device is not None:
            device |= {"index": self.device.index, "uuid": self.device.uuid, "name": self.device.name}
        return {
            "outcome": self.outcome,
            "kind": self.kind,
            "detail": self.detail,
            "library": self.library,
            "wanted_by": self.wanted_by,
            "device": device,
            "package": self.package,
            "version": self.version,
            "steps": {
                name: {"ok": step.ok, "error": step.error, "max_error": step.max_error, "seconds": step.seconds}
                for name, step in self.steps.items()
            },
            "placement": None,
        }


def run_check(
    python: Path, device: Device | None, environ: Mapping[str, str], *, deadline: float | None = None
) -> CheckResult:
    """Run the check with the interpreter `python`: on `device`, pinned by its UUID, or on the CPU when it is None.

    Takes at most `deadline` seconds and a bounded amount of memory whatever the child does, and never raises for
    what the child does.
    """
    provider = CPU if device is None else CUDA
    seconds = deadline if deadline is not None else (CPU_SECONDS if device is None else GPU_SECONDS)
    # -I: nothing of the surroundings (PYTHONPATH, the current folder, user site) may change what is loaded.
    argv = [os.fspath(python), "-I", os.fspath(CHILD), provider]
    ended = run_child(argv, deadline=seconds, environ=child_environment(environ, device), limit=_OUTPUT_LIMIT)
    return judge(provider, device, ended)


def child_environment(environ: Mapping[str, str], device: Device | None) -> dict[str, str]:
    """Return the environment for code in a target: ours, with the planned GPU as the only one to be seen.

    Without a UUID the index counts, in the order of the bus, as the machine document has it.
    """
    passed = {name: value for name, value in environ.items() if not name.startswith("PYTHON")}
    if device is not None:
        passed["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
        if device.uuid is not None:
            passed["CUDA_VISIBLE_DEVICES"] = device.uuid
        elif device.index is not None:
            passed["CUDA_VISIBLE_DEVICES"] = str(device.index)
    return passed


def judge(provider: str, device: Device | None, ended: ChildResult) -> CheckResult:
    """Return what the child's end and its answer amount to."""
    outcome, kind, detail = _how_it_ended(ended)
    if outcome is not None:
        return CheckResult(outcome, kind, provider, device, detail)
    facts = _answer(ended.stdout)
    if facts is None:
        return _without_answer(provider, device, ended)
    steps = {name: _step(facts["steps"].get(name), provider) for name in _STEPS}
    build = facts.get("build") or {}
    if facts.get("error"):
        told = _Told(provider, device, {}, build, f"{facts['error']}\n{ended.stderr}")
        return told.result("failed", "import-failed", facts["error"])
    told = _Told(
        provider, device, steps, build, "\n".join([*(step.error or "" for step in steps.values()), ended.stderr])
    )
    bad = next((name for name in _STEPS if not steps[name].ok), None)
    if bad is None:
        return told.result("ok", None, None)
    return _failed(told, bad)


@dataclass(frozen=True, slots=True)
class _Told:
    """What is the same in every result of one run; `text` is all the child and its libraries wrote."""

    provider: str
    device: Device | None
    steps: Mapping[str, Step]
    build: Mapping[str, Any]
    text: str

    def result(
        self,
        outcome: str,
        kind: str | None,
        detail: str | None,
        library: str | None = None,
        wanted_by: str | None = None,
    ) -> CheckResult:
        return CheckResult(
            outcome,
            kind,
            self.provider,
            self.device,
            detail,
            library,
            wanted_by,
            self.steps,
            self.build.get("package"),
            self.build.get("version"),
        )


def _how_it_ended(ended: ChildResult) -> tuple[str | None, str | None, str | None]:
    if ended.not_started is not None:
        return "failed", "not-started", f"the target's interpreter does not start: {ended.not_started}"
    if ended.timed_out:
        return "inconclusive", "timeout", "the check did not end in time"
    code = ended.returncode
    if code is None or code >= 0:
        if sys.platform == "win32" and code is not None and code >= 0xC0000000:
            return "crashed", "crashed", f"the check crashed with code 0x{code:08X}"
        return None, None, None
    name = _signal_name(-code)
    if name in _CRASHES:
        return "crashed", "crashed", f"the check crashed with {name}"
    return "inconclusive", "killed", f"the check was ended from outside with {name}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _answer(stdout: str) -> dict[str, Any] | None:
    for line in reversed(stdout.splitlines()):
        try:
            facts = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(facts, dict) and isinstance(facts.get("steps"), dict):
            return facts
    return None


def _without_answer(provider: str, device: Device | None, ended: ChildResult) -> CheckResult:
    told = _Told(provider, device, {}, {}, ended.stderr)
    if _NO_MEMORY.search(ended.stderr):
        return told.result("inconclusive", "out-of-memory", "the check ran out of memory")
    last = next((line.strip() for line in reversed(ended.stderr.splitlines()) if line.strip()), "no output")
    detail = f"the check gave no answer (exit code {ended.returncode}): {last[:300]}"
    return told.result("failed", "import-failed", detail)


def _step(seen: object, provider: str) -> Step:
    if not isinstance(seen, dict):
        return Step(ok=False, error="the check said nothing about this step")
    error = seen.get("error")
    max_error = seen.get("max_error")
    providers = seen.get("providers")
    right = isinstance(max_error, int | float) and max_error <= _LIMITS[provider]
    placed = isinstance(providers, list) and bool(providers) and providers[0] == provider
    return Step(
        ok=bool(seen.get("ok")) and right and placed,
        error=str(error) if error else None,
        max_error=float(max_error) if isinstance(max_error, int | float) else None,
        seconds=seen.get("seconds"),
        providers=tuple(map(str, providers)) if isinstance(providers, list) else None,
    )


def _failed(told: _Told, name: str) -> CheckResult:
    """Judge the first step that is not ok, from the causes that explain the most to those that explain the least."""
    step = told.steps[name]
    if step.error is None:
        if step.providers is not None and step.providers[:1] != (told.provider,):
            where = ", ".join(step.providers) or "nothing"
            return told.result("failed", "wrong-device", f"{name} ran on {where} instead of {told.provider}")
        size = "not a number or of the wrong shape" if step.max_error is None else f"off by {step.max_error:.1e}"
        return told.result("failed", "wrong-numbers", f"{name} computed wrong numbers: {size}")
    return _raised(told, name, step.error)


def _raised(told: _Told, name: str, error: str) -> CheckResult:
    available = told.build.get("available")
    if isinstance(available, list) and told.provider not in available:
        detail = f"the installed {told.build.get('package') or 'package'} has no {told.provider}"
        return told.result("failed", "wrong-device", detail)
    text = f"{error}\n{told.text}"
    for pattern, outcome, kind, detail in _CAUSES:
        if pattern.search(text):
            return told.result(outcome, kind, detail)
    nothing_loaded = all(other.providers is None for other in told.steps.values())
    found = _MISSING.search(told.text) or _MISSING_WINDOWS.search(told.text)
    if found is None or not nothing_loaded:
        kind = "provider-failed" if nothing_loaded else f"{name}-failed"
        return told.result("failed", kind, _first_line(error))
    wanted_by = re.split(r"[/\\]", found.groupdict().get("wanted_by") or "")[-1] or None
    by = f", which {wanted_by} needs," if wanted_by else ""
    detail = f"{found['library']}{by} was not found"
    return told.result("failed", "library-missing", detail, found["library"], wanted_by)


def _first_line(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text).strip().splitlines()[0][:300]
