"""The checks, in the order in which they are told: each a judgement over gathered facts that reads nothing itself.

A check that lacks a fact is skipped with the reason, and one that crashes is reported as that and stops no other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from imprint.diagnosis import (
    checks_device,
    checks_driver,
    checks_gpu,
    checks_outside,
    checks_place,
    checks_privacy,
    checks_runtime,
    checks_target,
)
from imprint.diagnosis.facts import Facts
from imprint.diagnosis.findings import ERROR, Finding
from imprint.diagnosis.judging import finding
from imprint.diagnosis.standing import verdict_of

SUM = "runtime:embedding-device"
"""The check that sums up."""


@dataclass(frozen=True, slots=True)
class Check:
    """One check: its stable id, what it looks at, and its judgement.

    `slow` names the fact that only this check needs and that takes seconds; it is gathered when the check is chosen.
    """

    id: str
    about: str
    judge: Callable[[Facts], Iterable[Finding]]
    slow: str | None = None


def run(checks: Sequence[Check], facts: Facts) -> list[Finding]:
    """Return the findings of the checks, in order, whatever happens inside one of them."""
    findings: list[Finding] = []
    for check in checks:
        try:
            findings += list(check.judge(facts))
        except Exception as error:
            seen = f"{type(error).__name__}: {error}"
            findings.append(finding(facts, check.id, "check-crashed", ERROR, seen))
    return [_unexplained(facts, found) for found in findings] if _nobody_says_why(facts, findings) else findings


def _nobody_says_why(facts: Facts, findings: Sequence[Finding]) -> bool:
    """Whether embeddings do not run, and no check has found out why."""
    verdict = verdict_of(facts)
    return verdict is not None and not verdict.embeds and all(found.status != ERROR for found in findings)


def _unexplained(facts: Facts, found: Finding) -> Finding:
    """Return the finding that sums up with the reason that the verdict gives; any other as it is."""
    verdict = verdict_of(facts)
    problem = verdict.problem if verdict is not None else None
    if found.id != SUM or problem is None:
        return found
    reason = f": {facts.plan.reason}" if facts.plan is not None else ""
    seen = f"embeddings do not run: {problem.text}{reason}"
    return finding(facts, SUM, "embedding-failed", ERROR, seen, told=problem.hint)


CHECKS: tuple[Check, ...] = (
    Check("state:files", "the home folder and the state files in it", checks_place.state_files),
    Check("config:file", "the configuration file and the variables that override it", checks_place.config_file),
    Check(
        "environment:names",
        "environment variables that begin with IMPRINT_ but that Imprint does not know",
        checks_place.environment_names,
    ),
    Check(
        "system:access",
        "whether Imprint can read what it needs from the system, and start processes",
        checks_outside.system,
    ),
    Check("target:interpreter", "the Python that ONNX Runtime is installed for", checks_target.interpreter),
    Check("target:integrity", "every installed file against its package's RECORD", checks_target.integrity),
    Check("target:leftovers", "files that a killed pip left behind", checks_target.leftovers),
    Check("target:vendor-build", "a vendor's build that `setup` would replace", checks_target.vendor_build),
    Check("target:writable", "whether an environment of your own can be changed", checks_target.writable),
    Check("target:changes", "changes that are in progress or did not finish", checks_target.changes),
    Check("target:embedding", "what `imprint embed` needs besides ONNX Runtime", checks_target.for_embedding),
    Check("runtime:duplicates", "more than one ONNX Runtime in the same folder", checks_runtime.duplicates),
    Check("runtime:loads", "what ONNX Runtime really is, by loading it in a separate process", checks_runtime.loads),
    Check(
        "environment:python",
        "Python as your own programs start it: PYTHONPATH, sitecustomize, importing ONNX Runtime",
        checks_outside.own_import,
    ),
    Check("runtime:libraries", "the CUDA libraries of a GPU build, and where each one is", checks_gpu.libraries),
    Check("runtime:session", "a session that asks for the GPU, and a run on it", checks_gpu.session),
    Check(
        "runtime:telemetry",
        "whether your own programs with this ONNX Runtime send usage data",
        checks_privacy.telemetry,
    ),
    Check("machine:processor", "the processor's instructions", checks_place.processor),
    Check("gpu:driver", "the NVIDIA driver and the GPUs it shows", checks_driver.driver),
    Check("gpu:waiting", "whether a GPU is unused because the CPU is the default", checks_device.waiting),
    Check("gpu:nodes", "whether this user may open the GPUs' device nodes", checks_driver.nodes),
    Check("gpu:memory", "the GPU memory that IMPRINT_VRAM_GB declares", checks_driver.declared_memory),
    Check("runtime:proof", "the last check, and whether it still applies", checks_gpu.proof),
    Check(SUM, "what embeddings run on, and why", checks_device.embedding_device),
    Check("model:files", "the files of the configured model", checks_place.model_files),
    Check("disk:space", "free space where Imprint keeps its files", checks_place.disk_space),
    Check("disk:unused", "runtimes and downloads that nothing uses", checks_place.disk_unused, "unused"),
    Check("disk:links", "whether runtimes share their files with the cache", checks_place.disk_links),
    Check("embedding:run", "one real embedding", checks_place.real_embedding, "embedded"),
)
"""Every check, in order: what is quick first."""
