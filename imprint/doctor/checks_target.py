"""Checks of the environment that holds ONNX Runtime: interpreter, files, changes under way. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from imprint.doctor.checks_place import LOW_SPACE
from imprint.doctor.facts import Damage, Facts
from imprint.doctor.findings import ERROR, OK, WARNING, Finding
from imprint.doctor.judging import build_names, finding, missing, recreate, reinstall, repair, setup, skipped
from imprint.runtime.metadata import is_vendor
from imprint.runtime.space import in_units

_CONCERNED = re.compile(
    r"onnxruntime|onnxruntime-.*|nvidia-.*|numpy|protobuf|flatbuffers|packaging|sympy|coloredlogs|tokenizers|orjson"
)
"""What embedding needs of an environment; damage to anything else in somebody's own is no reason to fail."""


def interpreter(facts: Facts) -> list[Finding]:  # noqa: PLR0911 - one for each way to fail, the earliest first
    """Judge whether there is a target and its interpreter starts."""
    check = "target:interpreter"
    if facts.provisioned is False:
        seen = f"no runtime is set up in {facts.home}"
        return [finding(facts, check, "not-installed", ERROR, seen, fix=setup(facts), runs_on="none")]
    error = facts.failures.get("target")
    if error is not None and error.specific_code == "not-an-environment":
        return [finding(facts, check, "not-an-environment", ERROR, error.message, fix=error.hint, runs_on="none")]
    found = facts.interpreter
    if found is None:
        return missing(facts, check, "target")
    if not found.present:
        seen = found.error or f"{found.path} is gone"
        return [finding(facts, check, "interpreter-gone", ERROR, seen, fix=recreate(facts), runs_on="none")]
    if found.version is None:
        seen = found.error or f"{found.path} does not start"
        return [finding(facts, check, "interpreter-unusable", ERROR, seen, fix=recreate(facts), runs_on="none")]
    series = ".".join(found.version.split(".")[:2])
    if found.made_for is not None and found.made_for.rstrip("t") != series:
        seen = f"{found.path} is Python {found.version}, and its packages are those of Python {found.made_for}"
        return [finding(facts, check, "interpreter-changed", ERROR, seen, fix=recreate(facts))]
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
    seen = f"{facts.runtimes.distributions} packages are as their RECORD says ({how})"
    return [finding(facts, check, "ok", OK, seen)]


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
    seen = f"{first.distribution}: {', '.join(_what(damage) for damage in damages)}"
    return finding(facts, check, code, ERROR if concerned else WARNING, seen, fix=_fix(facts, code, first, concerned))


def _what(damage: Damage) -> str:
    example = f", for example {damage.example}" if damage.example and damage.count > 1 else ""
    example = example or (f" ({damage.example})" if damage.example else "")
    files = "1 file" if damage.count == 1 else f"{damage.count} files"
    is_, has = ("is", "has") if damage.count == 1 else ("are", "have")
    return {
        "missing": f"{files} {is_} missing{example}",
        "size": f"{files} {has} another size than recorded{example}",
        "hash": f"{files} {has} another content than recorded{example}",
        "no-record": "its RECORD is missing",
        "no-metadata": "its METADATA is missing",
        "no-installer": "its installation did not end",
        "hollow": f"its modules are gone{example}",
        "dangling": f"{files} {is_} a link that leads nowhere{example}",
    }.get(damage.kind, f"{damage.kind}{example}")


def _fix(facts: Facts, code: str, damage: Damage, concerned: bool) -> str:
    if not concerned:
        return f"{_again(facts, damage)}, if you use that package"
    mine = facts.venv is None or damage.distribution in build_names(facts) or is_vendor(damage.distribution)
    # What its owner put there in a version of his own is in no lock of ours.
    fix = repair(facts) if mine else _again(facts, damage)
    if mine and code == "metadata-damaged":
        fix += " removes what it left and installs it anew"
    runtimes = facts.runtimes
    if runtimes is not None and runtimes.free is not None:
        needed = max(runtimes.size or 0, LOW_SPACE)
        if runtimes.free < needed:
            return f"free at least {in_units(needed - runtimes.free)} on the disk of {runtimes.packages}, then {fix}"
    return fix


def _again(facts: Facts, damage: Damage) -> str:
    return reinstall(facts, damage.distribution, recorded=damage.kind not in {"no-record", "no-metadata"})


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
    seen = f"{error}; planned is {plan.build} {plan.version or ''}".rstrip()
    fix = "use an environment that you may write, or `imprint setup` without `--venv`, which keeps its own under "
    return [finding(facts, check, "install-tree-read-only", WARNING, seen, fix=f"{fix}{facts.home} (`IMPRINT_HOME`)")]


def changes(facts: Facts) -> list[Finding]:
    """Judge changes that are under way or did not end."""
    check = "target:changes"
    found = []
    if facts.interrupted:
        seen = f"a change of {facts.venv or 'the runtime'} was begun and did not end"
        found.append(finding(facts, check, "change-interrupted", ERROR, seen, fix=setup(facts)))
    if facts.busy is not None:
        found.append(finding(facts, check, "busy", WARNING, f"{facts.busy} is changing the runtime"))
    if facts.provisioned is None and not found:
        return skipped(facts, check, "the target is not known")
    return found or [finding(facts, check, "ok", OK, "no change is under way")]
