"""The environment that holds ONNX Runtime: interpreter, files, changes under way. Pure."""

from __future__ import annotations

import re

from imprint.diagnosis.checking import RUNTIMES, check, missing
from imprint.diagnosis.circumstances import reinstall, remove_first, shell
from imprint.diagnosis.facts import Damage, Facts, Interpreter, Runtimes, TargetFacts
from imprint.diagnosis.findings import ERROR, OK, WARNING, Observation, ok, skipped
from imprint.diagnosis.standing import verdict_of
from imprint.quoting import joined
from imprint.runtime.distributions.damage import words_of
from imprint.runtime.distributions.metadata import is_vendor
from imprint.runtime.distributions.vendors import OURS, replaced_sentence
from imprint.runtime.verdict import LACKING
from imprint.sizes import in_units

_CONCERNED = re.compile(
    r"onnxruntime|onnxruntime-.*|nvidia-.*|numpy|protobuf|flatbuffers|packaging|sympy|coloredlogs|tokenizers|orjson"
)
"""What embedding needs of an environment; damage to anything else in somebody's own is no reason to fail."""

_OUTSIDE = frozenset({"file-denied", "folder-denied", "noexec-disk", "process-limit"})
"""What keeps an interpreter from starting though nothing is wrong with it."""

_CODES = {
    "no-record": "metadata-damaged",
    "no-metadata": "metadata-damaged",
    "odd-record": "metadata-damaged",
    "odd-metadata": "metadata-damaged",
    "hollow": "runtime-hollow",
    "dangling": "links-dangling",
}
"""Codes of damage by its kind, where that says all."""


@check("target:interpreter", "the Python that ONNX Runtime is installed for")
def interpreter(facts: Facts) -> Observation:
    """Judge whether there is a target and its interpreter starts."""
    if facts.target.provisioned is False:
        return _none("not-installed", f"no runtime is set up in {facts.home.path}")
    error = facts.failures.get("target")
    if error is None or error.specific_code not in {*_OUTSIDE, "not-an-environment"}:
        error = facts.target.refused
    if error is not None:
        return _none(error.specific_code, error.message, error.hint)
    found = facts.target.interpreter
    return missing(facts, "target") if found is None else _started(found)


def _started(found: Interpreter) -> Observation:
    if found.code in _OUTSIDE:
        return _none(found.code, found.error or "", found.hint)
    if not found.present:
        return _none("interpreter-gone", found.error or f"{found.path} is gone")
    if found.version is None:
        return _none("interpreter-unusable", found.error or f"{found.path} does not start")
    series = ".".join(found.version.split(".")[:2])
    if found.made_for is not None and found.made_for.rstrip("t") != series:
        seen = f"{found.path} is Python {found.version}, and its packages are those of Python {found.made_for}"
        return Observation("interpreter-changed", ERROR, seen)
    return ok(f"Python {found.version} at {found.path} starts")


def _none(code: str, seen: str, told: str | None = None) -> Observation:
    return Observation(code, ERROR, seen, told=told, runs_on="none")


@check("target:integrity", "every installed file against its package's RECORD", RUNTIMES)
def integrity(facts: Facts, runtimes: Runtimes) -> Observation | list[Observation]:
    """Judge every installed package against its RECORD."""
    found = [_damaged(facts, code, damages) for code, damages in _grouped(facts.target, runtimes)]
    how, builds = "sizes and hashes" if runtimes.hashed else "sizes", facts.target.build_names
    if not found and len(builds) > 1 and runtimes.damages:
        return ok(f"all packages but {' and '.join(sorted(builds))}, which share their files, are intact ({how} match)")
    return found or ok(f"all {runtimes.distributions} packages are intact ({how} match)")


def _grouped(target: TargetFacts, runtimes: Runtimes) -> list[tuple[str, list[Damage]]]:
    """Return damages by distribution and code; what another check explains is left out."""
    groups: dict[tuple[str, str], list[Damage]] = {}
    for damage in runtimes.damages:
        several = len(runtimes.builds) > 1 and damage.distribution in target.build_names
        if several and damage.kind in {"size", "hash", "missing"}:
            continue  # two builds over one folder: each has files of the other
        if target.venv is not None and not _concerns(damage) and damage.kind == "no-installer":
            continue  # other installers than pip and uv do not write it
        groups.setdefault((damage.distribution, _code(target, damage)), []).append(damage)
    return [(code, damages) for (_, code), damages in groups.items()]


def _concerns(damage: Damage) -> bool:
    return _CONCERNED.fullmatch(damage.distribution) is not None


def _code(target: TargetFacts, damage: Damage) -> str:
    others = [other.kind for other in target.installed.damages if other.distribution == damage.distribution]
    vendor = damage.distribution.startswith("nvidia-")
    # Only somebody else's environment is ever changed package by package.
    if vendor and damage.kind == "missing" and "no-installer" not in others and target.venv is not None:
        return "shared-files-removed"
    return _CODES.get(damage.kind, "install-incomplete")


def _damaged(facts: Facts, code: str, damages: list[Damage]) -> Observation:
    first, named = damages[0], facts.target.venv is not None
    concerned = not named or _concerns(first)
    seen = f"{first.distribution}: {', '.join(words_of(one.kind, one.count, one.example) for one in damages)}"
    mine = not named or first.distribution in facts.target.build_names or is_vendor(first.distribution)
    # What its owner put there in a version of his own is in no lock of ours.
    traits = (*(() if mine else ("theirs",)), *(() if concerned else ("unconcerned",)))
    recorded = first.kind not in {"no-record", "no-metadata", "odd-record", "odd-metadata"}
    again = reinstall(facts, first.distribution, recorded=recorded)
    words = {"reinstall": remove_first(facts, first.blocking) + again}
    return Observation(code, ERROR if concerned else WARNING, seen, traits, words)


@check("target:leftovers", "files that a killed pip left behind", RUNTIMES)
def leftovers(facts: Facts, runtimes: Runtimes) -> Observation:
    """Judge files that a killed pip left behind."""
    found = runtimes.leftovers
    if not found:
        return ok("a killed pip left nothing behind")
    size = in_units(sum(one for _, one in found))
    names = ", ".join(f"`{path.replace(chr(92), '/').rpartition('/')[2]}`" for path, _ in found)
    words = {"folders": joined(["rm", *(path for path, _ in found)], shell(facts)).partition(" ")[2], "size": size}
    seen = f"a killed pip left {names} in {runtimes.packages}: {size} that nothing uses"
    return Observation("leftovers", WARNING, seen, words=words)


@check("target:vendor-build", "a vendor's build that `setup` would replace", RUNTIMES)
def vendor_build(facts: Facts, _: Runtimes) -> Observation:
    """Judge whether `setup` would replace a vendor's own build, and its provider with it."""
    names = sorted(facts.target.build_names - OURS)
    if not names or facts.target.venv is None:
        return ok("there is no vendor's build of ONNX Runtime")
    return Observation("vendor-build-replaced", OK, replaced_sentence(names))


@check("target:writable", "whether an environment of your own can be changed")
def writable(facts: Facts) -> Observation:
    """Judge whether somebody's own environment could be changed, where the plan wants that."""
    if facts.target.venv is None:
        return ok("Imprint's own runtimes are replaced as a whole, never changed")
    runtimes, plan = facts.target.installed, facts.planned.plan
    if runtimes.packages is None:
        return missing(facts, "runtimes")
    if runtimes.write_error is None:
        return ok(f"{runtimes.packages} can be changed")
    if plan is None or not (plan.pending or runtimes.damages):
        return ok(f"{runtimes.write_error}; nothing has to be changed there")
    wanted = f"{plan.build} {plan.version}" if plan.version else f"{plan.build}"
    seen = f"{runtimes.write_error}, and {wanted} should be installed there"
    return Observation("install-tree-read-only", WARNING, seen)


@check("target:changes", "changes that are in progress or did not finish")
def changes(facts: Facts) -> Observation | list[Observation]:
    """Judge changes that are in progress or did not finish."""
    target, found = facts.target, []
    if target.interrupted:
        seen = f"a change of {target.venv or 'the runtime'} started but did not finish"
        found.append(Observation("change-interrupted", ERROR, seen))
    if target.busy is not None:
        found.append(Observation("busy", WARNING, f"{target.busy} is changing the runtime"))
    if not found and target.provisioned is None:
        return skipped("the target is not known")
    return found or ok("no change is in progress")


@check("target:embedding", "what `imprint embed` needs besides ONNX Runtime", RUNTIMES)
def for_embedding(facts: Facts, _: Runtimes) -> Observation:
    """Judge whether what embedding needs besides ONNX Runtime is there."""
    verdict = verdict_of(facts)
    problem = next((one for one in verdict.problems if one.code == LACKING), None) if verdict is not None else None
    if problem is not None:
        return Observation(LACKING, ERROR, f"`imprint embed` does not run here: {problem.text}")
    return ok("nothing that `imprint embed` needs besides ONNX Runtime is missing")
