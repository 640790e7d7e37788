"""Checks of the environment that holds ONNX Runtime: interpreter, files, changes under way. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from imprint.diagnosis.circumstances import reinstall, shell
from imprint.diagnosis.facts import Damage, Facts
from imprint.diagnosis.findings import ERROR, OK, WARNING, Finding
from imprint.diagnosis.judging import finding, missing, skipped
from imprint.diagnosis.standing import build_names, verdict_of
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


def interpreter(facts: Facts) -> list[Finding]:  # noqa: PLR0911 - one for each way to fail, the earliest first
    """Judge whether there is a target and its interpreter starts."""
    check = "target:interpreter"
    if facts.provisioned is False:
        seen = f"no runtime is set up in {facts.home}"
        return [finding(facts, check, "not-installed", ERROR, seen, runs_on="none")]
    error = facts.failures.get("target")
    if error is not None and error.specific_code in _OUTSIDE:
        return [finding(facts, check, error.specific_code, ERROR, error.message, told=error.hint, runs_on="none")]
    if error is not None and error.specific_code == "not-an-environment":
        return [finding(facts, check, "not-an-environment", ERROR, error.message, told=error.hint, runs_on="none")]
    if facts.refused is not None:
        code, seen = facts.refused.specific_code, facts.refused.message
        return [finding(facts, check, code, ERROR, seen, told=facts.refused.hint, runs_on="none")]
    found = facts.interpreter
    if found is None:
        return missing(facts, check, "target")
    if found.code in _OUTSIDE:
        return [finding(facts, check, found.code, ERROR, found.error or "", told=found.hint, runs_on="none")]
    if not found.present:
        seen = found.error or f"{found.path} is gone"
        return [finding(facts, check, "interpreter-gone", ERROR, seen, runs_on="none")]
    if found.version is None:
        seen = found.error or f"{found.path} does not start"
        return [finding(facts, check, "interpreter-unusable", ERROR, seen, runs_on="none")]
    series = ".".join(found.version.split(".")[:2])
    if found.made_for is not None and found.made_for.rstrip("t") != series:
        seen = f"{found.path} is Python {found.version}, and its packages are those of Python {found.made_for}"
        return [finding(facts, check, "interpreter-changed", ERROR, seen)]
    return [finding(facts, check, "ok", OK, f"Python {found.version} at {found.path} starts")]


def integrity(facts: Facts) -> list[Finding]:
    """Judge every installed package against its RECORD."""
    check = "target:integrity"
    if facts.runtimes is None:
        return missing(facts, check, "runtimes")
    found = [_damaged(facts, check, code, damages) for code, damages in _grouped(facts)]
    if found:
        return found
    how = "sizes and hashes" if facts.runtimes.hashed else "sizes"
    count = facts.runtimes.distributions
    seen = f"all {count} packages are intact ({how} match)"
    builds = build_names(facts)
    if len(builds) > 1 and facts.runtimes.damages:
        seen = f"all packages but {' and '.join(sorted(builds))}, which share their files, are intact ({how} match)"
    return [finding(facts, check, "ok", OK, seen)]


def for_embedding(facts: Facts) -> list[Finding]:
    """Judge whether what embedding needs besides ONNX Runtime is there."""
    check = "target:embedding"
    if facts.runtimes is None:
        return missing(facts, check, "runtimes")
    verdict = verdict_of(facts)
    problem = next((one for one in verdict.problems if one.code == LACKING), None) if verdict is not None else None
    if problem is not None:
        return [finding(facts, check, LACKING, ERROR, f"`imprint embed` does not run here: {problem.text}")]
    return [finding(facts, check, "ok", OK, "nothing that `imprint embed` needs besides ONNX Runtime is missing")]


def _grouped(facts: Facts) -> Iterable[tuple[str, list[Damage]]]:
    """Return damages by distribution and code; what another check explains is left out."""
    runtimes = facts.runtimes
    groups: dict[tuple[str, str], list[Damage]] = {}
    for damage in runtimes.damages if runtimes is not None else ():
        several = runtimes is not None and len(runtimes.builds) > 1 and damage.distribution in build_names(facts)
        if several and damage.kind in {"size", "hash", "missing"}:
            continue  # two builds over one folder: each has files of the other
        if facts.venv is not None and not _concerns(damage) and damage.kind == "no-installer":
            continue  # other installers than pip and uv do not write it
        groups.setdefault((damage.distribution, _code(facts, damage)), []).append(damage)
    return [(code, damages) for (_, code), damages in groups.items()]


def _concerns(damage: Damage) -> bool:
    return _CONCERNED.fullmatch(damage.distribution) is not None


def _code(facts: Facts, damage: Damage) -> str:
    simple = {
        "no-record": "metadata-damaged",
        "no-metadata": "metadata-damaged",
        "hollow": "runtime-hollow",
        "dangling": "links-dangling",
    }
    if damage.kind in simple:
        return simple[damage.kind]
    interrupted = facts.runtimes is not None and any(
        other.kind == "no-installer" for other in facts.runtimes.damages if other.distribution == damage.distribution
    )
    vendor = damage.distribution.startswith("nvidia-")
    # Only somebody else's environment is ever changed package by package.
    if vendor and damage.kind == "missing" and not interrupted and facts.venv is not None:
        return "shared-files-removed"
    return "install-incomplete"


def _damaged(facts: Facts, check: str, code: str, damages: list[Damage]) -> Finding:
    first = damages[0]
    concerned = facts.venv is None or _concerns(first)
    seen = f"{first.distribution}: {', '.join(words_of(one.kind, one.count, one.example) for one in damages)}"
    mine = facts.venv is None or first.distribution in build_names(facts) or is_vendor(first.distribution)
    # What its owner put there in a version of his own is in no lock of ours.
    traits = [*(() if mine else ("theirs",)), *(() if concerned else ("unconcerned",))]
    recorded = first.kind not in {"no-record", "no-metadata"}
    words = {"reinstall": reinstall(facts, first.distribution, recorded=recorded)}
    return finding(facts, check, code, ERROR if concerned else WARNING, seen, traits=traits, words=words)


def leftovers(facts: Facts) -> list[Finding]:
    """Judge files that a killed pip left behind."""
    check = "target:leftovers"
    if facts.runtimes is None:
        return missing(facts, check, "runtimes")
    found = facts.runtimes.leftovers
    if not found:
        return [finding(facts, check, "ok", OK, "a killed pip left nothing behind")]
    size = in_units(sum(one for _, one in found))
    names = ", ".join(f"`{path.replace(chr(92), '/').rpartition('/')[2]}`" for path, _ in found)
    words = {"folders": joined(["rm", *(path for path, _ in found)], shell(facts)).partition(" ")[2], "size": size}
    seen = f"a killed pip left {names} in {facts.runtimes.packages}: {size} that nothing uses"
    return [finding(facts, check, "leftovers", WARNING, seen, words=words)]


def vendor_build(facts: Facts) -> list[Finding]:
    """Judge whether `setup` would replace a vendor's own build, and its provider with it."""
    check = "target:vendor-build"
    if facts.runtimes is None:
        return missing(facts, check, "runtimes")
    names = sorted(name for name in build_names(facts) if name not in OURS)
    if not names or facts.venv is None:
        return [finding(facts, check, "ok", OK, "there is no vendor's build of ONNX Runtime")]
    return [finding(facts, check, "vendor-build-replaced", OK, replaced_sentence(names))]


def writable(facts: Facts) -> list[Finding]:
    """Judge whether somebody's own environment could be changed, where the plan wants that."""
    check = "target:writable"
    if facts.venv is None:
        return [finding(facts, check, "ok", OK, "Imprint's own runtimes are replaced as a whole, never changed")]
    if facts.runtimes is None or facts.runtimes.packages is None:
        return missing(facts, check, "runtimes")
    error = facts.runtimes.write_error
    if error is None:
        return [finding(facts, check, "ok", OK, f"{facts.runtimes.packages} can be changed")]
    plan = facts.plan
    if plan is None or not (plan.pending or facts.runtimes.damages):
        return [finding(facts, check, "ok", OK, f"{error}; nothing has to be changed there")]
    wanted = f"{plan.build} {plan.version}" if plan.version else f"{plan.build}"
    seen = f"{error}, and {wanted} should be installed there"
    return [finding(facts, check, "install-tree-read-only", WARNING, seen)]


def changes(facts: Facts) -> list[Finding]:
    """Judge changes that are in progress or did not finish."""
    check = "target:changes"
    found = []
    if facts.interrupted:
        seen = f"a change of {facts.venv or 'the runtime'} started but did not finish"
        found.append(finding(facts, check, "change-interrupted", ERROR, seen))
    if facts.busy is not None:
        found.append(finding(facts, check, "busy", WARNING, f"{facts.busy} is changing the runtime"))
    if facts.provisioned is None and not found:
        return skipped(facts, check, "the target is not known")
    return found or [finding(facts, check, "ok", OK, "no change is in progress")]
