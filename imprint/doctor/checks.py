"""The checks, in the order in which they are told: each a judgement over gathered facts that reads nothing itself.

A check returns its findings; one that lacks a fact is skipped with the reason, and one that crashes is reported as
that and stops no other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from imprint.doctor.facts import Damage, Facts
from imprint.doctor.findings import CODES, ERROR, OK, SKIPPED, STATUSES, WARNING, Finding
from imprint.errors import ImprintError, InvalidValueError, StateNewerError

LOW_SPACE = 500_000_000
"""Free bytes below which the disk is called nearly full even when nothing has to be downloaded."""

GPU_ABSENT = frozenset(
    {"device-cpu", "no-nvidia-gpu", "vendor-not-nvidia", "os-no-gpu-build", "arch-no-gpu-build"},
)
"""Plan codes that say there is no GPU to use here: with `auto` the CPU is then what was asked for."""


@dataclass(frozen=True, slots=True)
class Check:
    """One check: its stable id, what it looks at, and its judgement."""

    id: str
    about: str
    judge: Callable[[Facts], Iterable[Finding]]


def run(checks: Sequence[Check], facts: Facts) -> list[Finding]:
    """Return the findings of the checks, in order, whatever happens inside one of them."""
    findings: list[Finding] = []
    for check in checks:
        try:
            findings += list(check.judge(facts))
        except Exception as error:
            seen = f"{type(error).__name__}: {error}"
            findings.append(_finding(facts, check.id, "check-crashed", ERROR, seen))
    return findings


def counts(findings: Iterable[Finding]) -> dict[str, int]:
    """Return how many findings have each status."""
    statuses = [finding.status for finding in findings]
    return {status: statuses.count(status) for status in STATUSES}


def _finding(  # noqa: PLR0913 - a finding has that many parts
    facts: Facts, check: str, code: str, status: str, seen: str, *, fix: str | None = None, runs_on: str | None = None
) -> Finding:
    explanation = CODES[code]
    return Finding(check, code, status, seen, explanation.means, runs_on or facts.runs_on, fix or explanation.fix)


def _skipped(facts: Facts, check: str, why: str) -> list[Finding]:
    return [_finding(facts, check, "skipped", SKIPPED, why)]


def _missing(facts: Facts, check: str, name: str) -> list[Finding]:
    """Skip a check whose fact could not be gathered, with the reason."""
    error = facts.failures.get(name)
    return _skipped(facts, check, f"could not be looked at: {error.message}" if error else "was not looked at")


def state_files(facts: Facts) -> list[Finding]:
    """Judge the home folder and the state files in it."""
    found: list[Finding] = []
    if facts.home_error:
        found.append(_finding(facts, "state:files", "home-not-writable", ERROR, facts.home_error))
    for name in ("verdicts", "target"):
        error = facts.failures.get(name)
        if error is not None:
            code = "state-newer" if isinstance(error, StateNewerError) else "state-unreadable"
            found.append(_finding(facts, "state:files", code, ERROR, error.message, fix=error.hint))
    found += [
        _finding(facts, "state:files", "state-set-aside", WARNING, aside.message, fix=aside.hint)
        for aside in facts.asides
    ]
    return found or [_finding(facts, "state:files", "ok", OK, f"the state files in {facts.home} can be used")]


def config_file(facts: Facts) -> list[Finding]:
    """Judge the configuration: file, keys, values, and environment variables that override them."""
    error = facts.failures.get("config")
    if error is None:
        return [
            _finding(
                facts, "config:file", "ok", OK, f"the configuration is valid; model.device is {facts.device_asked}"
            )
        ]
    return [_finding(facts, "config:file", config_code(error), ERROR, error.message, fix=error.hint)]


def config_code(error: ImprintError) -> str:
    """Return the finding code of an error that reading the configuration raised."""
    if not isinstance(error, InvalidValueError):
        return "config-unreadable"
    return "environment-invalid" if error.message.startswith("IMPRINT_") else "config-invalid"


def environment_names(facts: Facts) -> list[Finding]:
    """Judge the names of environment variables that begin with IMPRINT_."""
    return [
        _finding(
            facts,
            "environment:names",
            "unknown-variable",
            WARNING,
            f"{name} is set and means nothing",
            fix=f"unset it, or did you mean {near}?" if near else None,
        )
        for name, near in facts.unknown_variables
    ] or [_finding(facts, "environment:names", "ok", OK, "no unknown IMPRINT_ variable is set")]


def target_interpreter(facts: Facts) -> list[Finding]:
    """Judge whether there is a target and its interpreter starts."""
    check = "target:interpreter"
    if facts.provisioned is False:
        seen = f"no runtime is set up in {facts.home}"
        return [_finding(facts, check, "not-installed", ERROR, seen, runs_on="none")]
    found = facts.interpreter
    if found is None:
        return _missing(facts, check, "target")
    if not found.present or found.version is None:
        seen = f"{found.path} {'does not start' if found.present else 'is gone'}"
        seen += f": {found.error}" if found.error else ""
        return [_finding(facts, check, "interpreter-gone", ERROR, seen, runs_on="none")]
    return [_finding(facts, check, "ok", OK, f"Python {found.version} at {found.path} starts")]


def target_integrity(facts: Facts) -> list[Finding]:
    """Judge every installed package against its RECORD."""
    check = "target:integrity"
    if facts.provisioned is False:
        return _skipped(facts, check, "no runtime is set up")
    if facts.runtimes is None:
        return _missing(facts, check, "runtimes")
    if not facts.runtimes.damages:
        how = "sizes and hashes" if facts.runtimes.hashed else "sizes"
        seen = f"{facts.runtimes.distributions} packages are as their RECORD says ({how})"
        return [_finding(facts, check, "ok", OK, seen)]
    return [_damaged(facts, check, damage) for damage in facts.runtimes.damages]


def _damaged(facts: Facts, check: str, damage: Damage) -> Finding:
    code = {"no-record": "metadata-damaged", "no-metadata": "metadata-damaged", "hollow": "runtime-hollow"}.get(
        damage.kind, "install-incomplete"
    )
    example = f", for example {damage.example}" if damage.example else ""
    what = {
        "missing": f"{damage.count} files are missing{example}",
        "size": f"{damage.count} files have another size than recorded{example}",
        "hash": f"{damage.count} files have another content than recorded{example}",
        "no-record": "its RECORD is missing",
        "no-metadata": "its METADATA is missing",
        "no-installer": "its installation did not end",
        "hollow": f"its modules are gone{example}",
    }.get(damage.kind, f"{damage.kind}{example}")
    return _finding(facts, check, code, ERROR, f"{damage.distribution}: {what}")


def runtime_duplicates(facts: Facts) -> list[Finding]:
    """Judge how many builds of ONNX Runtime share the target."""
    check = "runtime:duplicates"
    if facts.provisioned is False:
        return _skipped(facts, check, "no runtime is set up")
    if facts.runtimes is None:
        return _missing(facts, check, "runtimes")
    builds = facts.runtimes.builds
    if len(builds) > 1:
        return [_finding(facts, check, "duplicate-runtimes", ERROR, f"installed together: {', '.join(builds)}")]
    if not builds:
        seen = "no ONNX Runtime is installed in the target"
        return [_finding(facts, check, "install-incomplete", ERROR, seen, runs_on="none")]
    return [_finding(facts, check, "ok", OK, f"{builds[0]} is the only ONNX Runtime in the target")]


def embedding_device(facts: Facts) -> list[Finding]:
    """Judge what embeddings run on against what was asked; `seen` carries the plan's reason word for word."""
    check = "runtime:embedding-device"
    plan = facts.plan
    if plan is None:
        return _missing(facts, check, "plan")
    if plan.build is None:
        return [_finding(facts, check, "no-build", ERROR, plan.reason, fix=plan.hint)]
    if plan.pending and facts.provisioned:
        have = f"{plan.installed.build} {plan.installed.version or ''}".rstrip() if plan.installed else "nothing"
        seen = f"planned is {plan.build} {plan.version or ''}".rstrip() + f", installed is {have}: {plan.reason}"
        return [_finding(facts, check, "change-pending", WARNING, seen)]
    if plan.device is not None:
        return [_finding(facts, check, "ok-gpu", OK, f"planned is {plan.build}: {plan.reason}")]
    by_choice = facts.device_asked == "cpu" or (facts.device_asked == "auto" and plan.code in GPU_ABSENT)
    if by_choice:
        return [_finding(facts, check, "ok-cpu", OK, f"the CPU is used: {plan.reason}")]
    return [_finding(facts, check, "gpu-unavailable", WARNING, plan.reason, fix=plan.hint)]


def model_files(facts: Facts) -> list[Finding]:
    """Judge the files of the configured model."""
    check = "model:files"
    error = facts.failures.get("model")
    if error is not None:
        code = "model-missing" if error.specific_code in {"model-missing", "failed"} else "model-damaged"
        return [_finding(facts, check, code, ERROR, error.message, fix=error.hint)]
    if facts.model is None:
        return _skipped(facts, check, "was not looked at")
    return [_finding(facts, check, "ok", OK, f"{facts.model} is on disk")]


def disk_space(facts: Facts) -> list[Finding]:
    """Judge the free space where the home lies."""
    check = "disk:space"
    disk = facts.disk
    if disk is None:
        return _missing(facts, check, "disk")
    seen = f"{disk.free / 1e9:.1f} GB are free in {disk.where}"
    needed = disk.needed or 0
    if disk.free < max(needed, LOW_SPACE):
        return [_finding(facts, check, "disk-low", WARNING, f"{seen}, the planned change needs {needed / 1e9:.1f} GB")]
    return [_finding(facts, check, "ok", OK, seen)]


CHECKS: tuple[Check, ...] = (
    Check("state:files", "the home folder and the state files in it", state_files),
    Check("config:file", "the configuration file and the variables that override it", config_file),
    Check("environment:names", "environment variables that begin with IMPRINT_ and mean nothing", environment_names),
    Check("target:interpreter", "the runtime's own Python", target_interpreter),
    Check("target:integrity", "every installed file against its package's RECORD", target_integrity),
    Check("runtime:duplicates", "more than one ONNX Runtime over the same folder", runtime_duplicates),
    Check("runtime:embedding-device", "what embeddings run on, why, and what is pending", embedding_device),
    Check("model:files", "the files of the configured model", model_files),
    Check("disk:space", "free space where Imprint keeps its files", disk_space),
)
"""Every check, in order."""
