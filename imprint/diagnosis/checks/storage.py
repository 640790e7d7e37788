"""The model's files, the disk, and the proof of everything before: one real embedding. Pure."""

from __future__ import annotations

from imprint.diagnosis.checking import COPIES, DISK, UNUSED, check, missing
from imprint.diagnosis.circumstances import LOW_SPACE
from imprint.diagnosis.facts import Disk, Facts, Unused
from imprint.diagnosis.findings import ERROR, WARNING, Observation, ok, skipped
from imprint.diagnosis.standing import verdict_of
from imprint.errors import ImprintError
from imprint.runtime.verdict import TOO_NEW
from imprint.sizes import in_units

MUCH_UNUSED = 1_000_000_000
"""Bytes that nothing uses above which it is worth a warning: a GPU set, or several of the CPU."""


@check("model:files", "the files of the configured model")
def model_files(facts: Facts) -> Observation:
    """Judge the files of the configured model."""
    error = facts.failures.get("model")
    if error is None:
        return skipped("was not checked") if facts.home.model is None else ok(f"{facts.home.model} is on disk")
    if error.specific_code in {"model-damaged", "model-unreadable"}:
        return Observation(error.specific_code, ERROR, error.message, told=_what_helps(facts, error))
    verdict = verdict_of(facts)
    if verdict is not None and not verdict.seen.there:
        return skipped(f"{error.message}; `{verdict.seen.commands.setup}` installs it with the runtime")
    return Observation("model-missing", ERROR, error.message, told=_what_helps(facts, error))


def _what_helps(facts: Facts, error: ImprintError) -> str | None:
    """Return the error's own hint; None where setup would help and refuses, so that the refusal is told."""
    by_setup = error.specific_code in {"model-missing", "model-damaged"}
    return None if by_setup and facts.planned.refusal is not None else error.hint


@check("disk:space", "free space where Imprint keeps its files", DISK)
def disk_space(_: Facts, disk: Disk) -> Observation:
    """Judge the free space where the home lies."""
    seen = f"{in_units(disk.free)} are free in {disk.where}"
    needed = disk.needed or 0
    if disk.free >= max(needed, LOW_SPACE):
        return ok(seen)
    change = f", the planned change needs {in_units(needed)}" if needed else ""
    return Observation("disk-low", WARNING, seen + change)


@check("disk:unused", "runtimes and downloads that nothing uses", UNUSED, slow="unused")
def disk_unused(_: Facts, unused: Unused) -> Observation:
    """Judge what lies in the home and is used by nothing."""
    parts = [
        f"{in_units(unused.generations)} in old runtimes" if unused.generations else "",
        f"{in_units(unused.cache)} in the cache that nothing installed uses" if unused.cache else "",
    ]
    seen = f"unused: {' and '.join(filter(None, parts)) or 'nothing'}"
    if unused.kept:
        seen += f"; {in_units(unused.kept)} in the cache are kept for `--retry-gpu` until `imprint prune`"
    little = unused.generations + unused.cache < MUCH_UNUSED
    return ok(seen) if little else Observation("space-unused", WARNING, seen)


@check("disk:links", "whether runtimes share their files with the cache", COPIES)
def disk_links(facts: Facts, copies: bool) -> Observation:
    """Judge whether runtimes share their files with the cache."""
    if not copies:
        return ok("the cache and the runtimes are on one file system, so files can be linked")
    seen = f"the cache and the runtimes in {facts.home.path} are on different file systems"
    return Observation("cache-on-other-disk", WARNING, seen)


@check("embedding:run", "one real embedding", slow="embedded")
def real_embedding(facts: Facts) -> Observation:
    """Judge one real embedding: it is the proof of everything before."""
    done, error = facts.runtime.embedded, facts.failures.get("embedded")
    if done is not None:
        return ok(f"a text became {done.dims} numbers on {done.provider} in {done.seconds:.1f} s")
    if "config" in facts.failures:
        return skipped("the configuration cannot be read; see config:file")
    if facts.target.venv is not None:
        return _not_tried(facts)
    if error is None or "model" in facts.failures:
        return missing(facts, "model" if "model" in facts.failures else "embedded")
    if error.specific_code == "timed-out":
        return Observation("embedding-failed", WARNING, error.message)
    code = error.specific_code if error.specific_code in {TOO_NEW, "process-limit"} else "embedding-failed"
    return Observation(code, ERROR, error.message, told=error.hint)


def _not_tried(facts: Facts) -> Observation:
    """Return what is known of an embedding in somebody's own environment, where none is made."""
    verdict = verdict_of(facts)
    newer = next((one for one in verdict.problems if one.code == TOO_NEW), None) if verdict is not None else None
    if newer is not None:
        return Observation(TOO_NEW, ERROR, newer.text, told=newer.hint)
    return skipped("it would write compiled files; `imprint embed --venv PATH TEXT` tries it")
