"""The circumstances of what doctor looks at, and the commands that its remedies name. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from imprint.causes.circumstances import Circumstances
from imprint.diagnosis.facts import Facts, Runtimes
from imprint.planning.model import Plan
from imprint.quoting import CMD, POWERSHELL, SH, joined, quoted
from imprint.sizes import in_units

LOW_SPACE = 500_000_000
"""Free bytes below which the disk is called nearly full even when nothing has to be downloaded."""
_PACKAGES = {"cpu": "onnxruntime"}
"""The distribution of a build of ours, where it is not `onnxruntime-gpu`."""


def circumstances_of(facts: Facts) -> Circumstances:
    """Return where a remedy has to work."""
    plan, allowed = facts.planned.plan, facts.planned.refusal is None
    around = facts.system.around
    words = {name: text for name, text in around.words.items() if name != "setup"}
    words |= {"home": quoted(facts.home.path, shell(facts)), "check": command(facts, "check")}
    if facts.target.venv is not None:
        words["path"] = quoted(facts.target.venv, shell(facts))
    if allowed:
        words["setup"] = command(facts, "setup")
    words["free"] = _free_first(facts.target.installed)
    if plan is not None and plan.build is not None and plan.version is not None:
        words["planned"] = f"ONNX Runtime {plan.version}"
    if plan is not None and plan.hint is not None:
        words["hint"] = plan.hint
    if facts.target.installed.gpu_size:
        words["saving"] = f", which frees {in_units(facts.target.installed.gpu_size)}"
    return Circumstances(around.traits.union(_traits(facts)), words)


def _traits(facts: Facts) -> Iterable[str]:
    settings, machine = facts.settings, facts.system.machine
    yield "managed" if facts.target.venv is None else "named"
    if facts.planned.refusal is None:
        yield "changeable"
    yield from facts.target.kinds
    if facts.home.foreign:
        yield "foreign-home"
    if settings.asks_for_gpu:
        yield "asked-gpu"
    if settings.device_asked == "cpu" and not settings.device_set:
        yield "default-device"
    if machine is not None:
        yield from (name for name in ("wsl", "container") if getattr(machine.platform, name))
    if facts.planned.plan is not None:
        yield from _of_plan(facts, facts.planned.plan)


def _of_plan(facts: Facts, plan: Plan) -> Iterable[str]:
    yield "cpu-planned" if plan.device is None else "gpu-planned"
    if plan.build is not None and plan.build == facts.runtime.build:
        yield "as-planned"
    if plan.pending:
        yield "pending"
    if plan.provisional and not plan.pending:
        yield "kept"


def shell(facts: Facts) -> str:
    """Return the shell that commands are written for."""
    if "windows" not in facts.system.around.traits:
        return SH
    return POWERSHELL if "powershell" in facts.system.around.traits else CMD


def command(facts: Facts, *words: str) -> str:
    """Return a command of ours about what is looked at."""
    venv = facts.target.venv
    named = ["--venv", venv] if venv is not None else []
    return joined(["imprint", words[0], *named, *words[1:]], shell(facts))


def install(facts: Facts, *requirements: str) -> str:
    """Return the command that installs packages into the target, in backticks."""
    return f"`{joined([*_installer(facts, 'install'), *requirements], shell(facts))}`"


def uninstall(facts: Facts, *names: str) -> str:
    """Return the command that removes packages from the target, in backticks."""
    flags = ["-y"] if _has_pip(facts) else []
    return f"`{joined([*_installer(facts, 'uninstall'), *flags, *names], shell(facts))}`"


def _installer(facts: Facts, verb: str) -> list[str]:
    found = facts.target.interpreter
    python = found.path if found is not None else "python"
    return [python, "-m", "pip", verb] if _has_pip(facts) else [facts.system.uv, "pip", verb, "--python", python]


def _free_first(runtimes: Runtimes) -> str:
    """Return what has to be said before a remedy that needs more space than there is."""
    needed = max(runtimes.size or 0, LOW_SPACE)
    if runtimes.free is None or runtimes.free >= needed:
        return ""
    return f"free at least {in_units(needed - runtimes.free)} on the disk of {runtimes.packages}, then "


def reinstall(facts: Facts, name: str, *, recorded: bool = True) -> str:
    """Return the command that installs a package again in the version that is there, in backticks.

    `recorded`: it has a RECORD; pip cannot uninstall what has none, and then only writes over it.
    """
    version = facts.target.installed.versions.get(name)
    wanted = name if version is None else f"{name}=={version}"
    if not _has_pip(facts):
        return install(facts, "--no-deps", "--reinstall", wanted)
    return install(facts, "--no-deps", "--force-reinstall" if recorded else "--ignore-installed", wanted)


def remove_first(facts: Facts, paths: Sequence[str]) -> str:
    """Return what has to be said before the command of an installer that would fail, or wait for ever, over `paths`."""
    if not paths:
        return ""
    named = joined(["rm", "-r", *paths], shell(facts))
    return f"`{named}`, then " if shell(facts) == SH else f"delete {named.removeprefix('rm -r ')}, then "


def install_planned(facts: Facts) -> str | None:
    """Return the command that installs the planned build, in backticks; None where none is planned."""
    plan = facts.planned.plan
    if plan is None or plan.build is None or plan.version is None:
        return None
    return install(facts, f"{_PACKAGES.get(plan.build, 'onnxruntime-gpu')}=={plan.version}")


def _has_pip(facts: Facts) -> bool:
    return "pip" in facts.target.installed.versions
