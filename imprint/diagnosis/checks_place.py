"""Checks of what surrounds the runtime: state files, configuration, processor, model, disk. Pure."""

from __future__ import annotations

from imprint.diagnosis.circumstances import LOW_SPACE
from imprint.diagnosis.facts import Facts
from imprint.diagnosis.findings import ERROR, OK, WARNING, Finding
from imprint.diagnosis.judging import finding, missing, skipped
from imprint.diagnosis.standing import verdict_of
from imprint.errors import ImprintError, InvalidValueError, StateNewerError
from imprint.runtime.verdict import TOO_NEW
from imprint.sizes import in_units

MUCH_UNUSED = 1_000_000_000
"""Bytes that nothing uses above which it is worth a warning: a GPU set, or several of the CPU."""


def state_files(facts: Facts) -> list[Finding]:
    """Judge the home folder and the state files in it."""
    check = "state:files"
    found: list[Finding] = []
    if facts.home_error:
        # Where a runtime is set up, embedding needs to write nothing: an image, or a service that shares a home.
        status = WARNING if facts.provisioned else ERROR
        found.append(finding(facts, check, "home-not-writable", status, facts.home_error))
    told: set[str] = set()
    for name in ("verdicts", "target", "last", "receipt", "interrupted", "seen"):
        error = facts.failures.get(name)
        if error is not None and error.specific_code.startswith("state-") and error.message not in told:
            told.add(error.message)
            code = "state-newer" if isinstance(error, StateNewerError) else "state-unreadable"
            found.append(finding(facts, check, code, ERROR, error.message, told=error.hint))
    found += [finding(facts, check, aside.code, WARNING, aside.message, told=aside.hint) for aside in facts.asides]
    return found or [finding(facts, check, "ok", OK, f"the state files in {facts.home} can be used")]


def config_file(facts: Facts) -> list[Finding]:
    """Judge the configuration: file, keys, values, and environment variables that override them."""
    check = "config:file"
    error = facts.failures.get("config")
    if error is None:
        seen = f"the configuration is valid; model.device is {facts.device_asked}"
        return [
            finding(facts, check, "secret-exposed", WARNING, f"config.toml holds {name}", words={"key": name})
            for name in facts.exposed
        ] or [finding(facts, check, "ok", OK, seen)]
    return [finding(facts, check, config_code(error), ERROR, error.message, told=error.hint)]


def config_code(error: ImprintError) -> str:
    """Return the finding code of an error that reading the configuration raised."""
    if not isinstance(error, InvalidValueError):
        return "process-limit" if error.specific_code == "process-limit" else "config-unreadable"
    return "environment-invalid" if error.message.startswith("IMPRINT_") else "config-invalid"


def environment_names(facts: Facts) -> list[Finding]:
    """Judge the names of environment variables that begin with IMPRINT_."""
    check = "environment:names"
    return [
        finding(
            facts,
            check,
            "unknown-variable",
            WARNING,
            f"{name} is set, but Imprint does not know it",
            words={"near": f": did you mean {near}?" if near else ""},
        )
        for name, near in facts.unknown_variables
    ] or [finding(facts, check, "ok", OK, "no unknown IMPRINT_ variable is set")]


def processor(facts: Facts) -> list[Finding]:
    """Judge the processor's instruction sets."""
    check = "machine:processor"
    if facts.machine is None:
        return missing(facts, check, "machine")
    cpu, arch = facts.machine.cpu, facts.machine.platform.arch
    name = cpu.name or "the processor"
    if arch != "x86_64":
        return [finding(facts, check, "ok", OK, f"{name} ({arch or 'architecture unknown'})")]
    if cpu.flags is None:
        return skipped(facts, check, f"{name} does not report its instructions here")
    if "avx2" not in cpu.flags:
        return [finding(facts, check, "cpu-no-avx2", WARNING, f"{name} has no AVX2")]
    best = next((flag for flag in ("avx512_vnni", "avx_vnni", "avx512f", "avx2") if flag in cpu.flags), "avx2")
    return [finding(facts, check, "ok", OK, f"{name} has {best}")]


def model_files(facts: Facts) -> list[Finding]:
    """Judge the files of the configured model."""
    check = "model:files"
    error = facts.failures.get("model")
    if error is None:
        seen = f"{facts.model} is on disk"
        return skipped(facts, check, "was not checked") if facts.model is None else [_ok(facts, check, seen)]
    if error.specific_code in {"model-damaged", "model-unreadable"}:
        return [finding(facts, check, error.specific_code, ERROR, error.message, told=error.hint)]
    verdict = verdict_of(facts)
    if verdict is not None and not verdict.seen.there:
        return skipped(facts, check, f"{error.message}; `{verdict.seen.commands.setup}` installs it with the runtime")
    return [finding(facts, check, "model-missing", ERROR, error.message, told=error.hint)]


def disk_space(facts: Facts) -> list[Finding]:
    """Judge the free space where the home lies."""
    check = "disk:space"
    disk = facts.disk
    if disk is None:
        return missing(facts, check, "disk")
    seen = f"{in_units(disk.free)} are free in {disk.where}"
    needed = disk.needed or 0
    if disk.free < max(needed, LOW_SPACE):
        change = f", the planned change needs {in_units(needed)}" if needed else ""
        return [finding(facts, check, "disk-low", WARNING, seen + change)]
    return [_ok(facts, check, seen)]


def disk_unused(facts: Facts) -> list[Finding]:
    """Judge what lies in the home and is used by nothing."""
    check = "disk:unused"
    unused = facts.unused
    if unused is None:
        return missing(facts, check, "unused")
    parts = [
        f"{in_units(unused.generations)} in old runtimes" if unused.generations else "",
        f"{in_units(unused.cache)} in the cache that nothing installed uses" if unused.cache else "",
    ]
    seen = " and ".join(part for part in parts if part) or "nothing"
    if unused.kept:
        seen += f"; {in_units(unused.kept)} in the cache are kept for `--retry-gpu` until `imprint prune`"
    if unused.generations + unused.cache < MUCH_UNUSED:
        return [_ok(facts, check, f"unused: {seen}")]
    return [finding(facts, check, "space-unused", WARNING, f"unused: {seen}")]


def disk_links(facts: Facts) -> list[Finding]:
    """Judge whether runtimes share their files with the cache."""
    check = "disk:links"
    if facts.copies is None:
        return missing(facts, check, "copies")
    if facts.copies:
        seen = f"the cache and the runtimes in {facts.home} are on different file systems"
        return [finding(facts, check, "cache-on-other-disk", WARNING, seen)]
    return [_ok(facts, check, "the cache and the runtimes are on one file system, so files can be linked")]


def real_embedding(facts: Facts) -> list[Finding]:
    """Judge one real embedding: it is the proof of everything before."""
    check = "embedding:run"
    done, error = facts.embedded, facts.failures.get("embedded")
    if done is not None:
        return [_ok(facts, check, f"a text became {done.dims} numbers on {done.provider} in {done.seconds:.1f} s")]
    if "config" in facts.failures:
        return skipped(facts, check, "the configuration cannot be read; see config:file")
    if facts.venv is not None:
        return [_not_tried(facts, check)]
    if error is None or "model" in facts.failures:
        return missing(facts, check, "model") if "model" in facts.failures else missing(facts, check, "embedded")
    if error.specific_code == "timed-out":
        return [finding(facts, check, "embedding-failed", WARNING, error.message)]
    code = error.specific_code if error.specific_code in {TOO_NEW, "process-limit"} else "embedding-failed"
    return [finding(facts, check, code, ERROR, error.message, told=error.hint)]


def _not_tried(facts: Facts, check: str) -> Finding:
    """Return what is known of an embedding in somebody's own environment, where none is made."""
    verdict = verdict_of(facts)
    newer = next((one for one in verdict.problems if one.code == TOO_NEW), None) if verdict is not None else None
    if newer is not None:
        return finding(facts, check, TOO_NEW, ERROR, newer.text, told=newer.hint)
    why = "it would write compiled files; `imprint embed --venv PATH TEXT` tries it"
    return skipped(facts, check, why)[0]


def _ok(facts: Facts, check: str, seen: str) -> Finding:
    return finding(facts, check, "ok", OK, seen)
