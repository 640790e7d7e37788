"""The circumstances of what doctor looks at, and the commands that its remedies name. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from imprint.causes.circumstances import Circumstances
from imprint.diagnosis.facts import Facts
from imprint.planning.model import Plan
from imprint.quoting import CMD, POWERSHELL, SH, joined, quoted
from imprint.sizes import in_units

LOW_SPACE = 500_000_000
"""Free bytes below which the disk is called nearly full even when nothing has to be downloaded."""
_PACKAGES = {"cpu": "onnxruntime"}
"""The distribution of a build of ours, where it is not `onnxruntime-gpu`."""


def circumstances_of(facts: Facts) -> Circumstances:
    """Return where a remedy has to work."""
    found = facts.around.with_(*_traits(facts), home=quoted(facts.home, shell(facts)))
    words = {}
    if facts.venv is not None:
        words["path"] = quoted(facts.venv, shell(facts))
    if facts.refusal is None:
        words["setup"] = command(facts, "setup")
    words["check"] = command(facts, "check")
    words["free"] = _free_first(facts)
    if facts.plan is not None and facts.plan.build is not None and facts.plan.version is not None:
        words["planned"] = f"ONNX Runtime {facts.plan.version}"
    if facts.plan is not None and facts.plan.hint is not None:
        words["hint"] = facts.plan.hint
    if facts.runtimes is not None and facts.runtimes.gpu_size:
        words["saving"] = f", which frees {in_units(facts.runtimes.gpu_size)}"
    known = {name: text for name, text in found.words.items() if name != "setup" or facts.refusal is None}
    return Circumstances(found.traits, {**known, **words})


def _traits(facts: Facts) -> Iterable[str]:
    yield "managed" if facts.venv is None else "named"
    if facts.refusal is None:
        yield "changeable"
    yield from facts.kinds
    if facts.device_asked in {"gpu", "auto"}:
        yield "asked-gpu"
    if facts.device_asked == "cpu" and not facts.device_set:
        yield "default-device"
    if facts.machine is not None:
        yield from (name for name in ("wsl", "container") if getattr(facts.machine.platform, name))
    if facts.plan is not None:
        yield from _of_plan(facts, facts.plan)


def _of_plan(facts: Facts, plan: Plan) -> Iterable[str]:
    yield "cpu-planned" if plan.device is None else "gpu-planned"
    if plan.build is not None and plan.build == facts.installed_build:
        yield "as-planned"
    if plan.pending:
        yield "pending"
    if plan.provisional and not plan.pending:
        yield "kept"


def shell(facts: Facts) -> str:
    """Return the shell that commands are written for."""
    if "windows" not in facts.around.traits:
        return SH
    return POWERSHELL if "powershell" in facts.around.traits else CMD


def command(facts: Facts, *words: str) -> str:
    """Return a command of ours about what is looked at."""
    venv = ["--venv", facts.venv] if facts.venv is not None else []
    return joined(["imprint", words[0], *venv, *words[1:]], shell(facts))


def install(facts: Facts, *requirements: str) -> str:
    """Return the command that installs packages into the target, in backticks."""
    return f"`{joined([*_installer(facts, 'install'), *requirements], shell(facts))}`"


def uninstall(facts: Facts, *names: str) -> str:
    """Return the command that removes packages from the target, in backticks."""
    flags = ["-y"] if _has_pip(facts) else []
    return f"`{joined([*_installer(facts, 'uninstall'), *flags, *names], shell(facts))}`"


def _installer(facts: Facts, verb: str) -> list[str]:
    python = facts.interpreter.path if facts.interpreter is not None else "python"
    return [python, "-m", "pip", verb] if _has_pip(facts) else [facts.uv, "pip", verb, "--python", python]


def _free_first(facts: Facts) -> str:
    """Return what has to be said before a remedy that needs more space than there is."""
    runtimes = facts.runtimes
    if runtimes is None or runtimes.free is None:
        return ""
    needed = max(runtimes.size or 0, LOW_SPACE)
    if runtimes.free >= needed:
        return ""
    return f"free at least {in_units(needed - runtimes.free)} on the disk of {runtimes.packages}, then "


def reinstall(facts: Facts, name: str, *, recorded: bool = True) -> str:
    """Return the command that installs a package again in the version that is there, in backticks.

    `recorded`: it has a RECORD; pip cannot uninstall what has none, and then only writes over it.
    """
    version = facts.runtimes.versions.get(name) if facts.runtimes is not None else None
    wanted = name if version is None else f"{name}=={version}"
    if not _has_pip(facts):
        return install(facts, "--no-deps", "--reinstall", wanted)
    return install(facts, "--no-deps", "--force-reinstall" if recorded else "--ignore-installed", wanted)


def install_planned(facts: Facts) -> str | None:
    """Return the command that installs the planned build, in backticks; None where none is planned."""
    plan = facts.plan
    if plan is None or plan.build is None or plan.version is None:
        return None
    return install(facts, f"{_PACKAGES.get(plan.build, 'onnxruntime-gpu')}=={plan.version}")


def _has_pip(facts: Facts) -> bool:
    return facts.runtimes is not None and "pip" in facts.runtimes.versions
