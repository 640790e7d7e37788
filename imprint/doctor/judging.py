"""What every check shares: how a finding is made, what embeddings run on, and the commands that fixes name. Pure."""

from __future__ import annotations

import shlex

from imprint.doctor.codes import CODES
from imprint.doctor.facts import Facts, Loaded
from imprint.doctor.findings import SKIPPED, Finding

CPU = "CPUExecutionProvider"
GPU_PROVIDERS = frozenset({"CUDAExecutionProvider", "TensorrtExecutionProvider", "WebGpuExecutionProvider"})
"""The providers through which embeddings can run on a GPU."""


def finding(  # noqa: PLR0913 - a finding has that many parts
    facts: Facts, check: str, code: str, status: str, seen: str, *, fix: str | None = None, runs_on: str | None = None
) -> Finding:
    """Return a finding; what is not given comes from the table of codes and from the facts."""
    explanation = CODES[code]
    where = runs_on or what_embeddings_run_on(facts)
    if facts.refusal is not None and "imprint setup --venv" in (fix or ""):
        # A command that is refused mends nothing.
        fix = f"{facts.refusal.message}; {facts.refusal.hint}"
    return Finding(check, code, status, seen, explanation.means, where, fix or explanation.fix)


def skipped(facts: Facts, check: str, why: str) -> list[Finding]:
    """Return the finding of a check that cannot judge, with the reason."""
    return [finding(facts, check, "skipped", SKIPPED, why)]


def missing(facts: Facts, check: str, name: str) -> list[Finding]:
    """Skip a check whose fact could not be gathered; the reason is the error that stopped it."""
    error = facts.failures.get(name)
    if error is None and facts.provisioned is False:
        return skipped(facts, check, "no runtime is set up")
    if error is None and not starts(facts):
        return skipped(facts, check, "the target's interpreter does not start")
    return skipped(facts, check, f"could not be looked at: {error.message}" if error else "was not looked at")


def starts(facts: Facts) -> bool:
    """Whether the target's interpreter is there and answered."""
    return facts.interpreter is not None and facts.interpreter.present and facts.interpreter.version is not None


def gpu_build(facts: Facts) -> bool:
    """Whether what is installed, or what loads, is a build for GPUs."""
    loaded, builds = facts.loaded, facts.runtimes.builds if facts.runtimes is not None else ()
    return (loaded is not None and bool(GPU_PROVIDERS & set(loaded.available))) or any(
        build.startswith("onnxruntime-gpu") for build in builds
    )


def gpu_wanted(facts: Facts) -> bool:
    """Whether somebody wants a GPU here: the configuration, or a GPU build in an environment nobody configured."""
    if facts.device_asked in {"gpu", "auto"}:
        return True
    chosen_cpu = facts.device_asked == "cpu" and facts.device_set
    return not chosen_cpu and facts.venv is not None and gpu_build(facts)


def gpu_asked_of_runtime(facts: Facts) -> bool:
    """Whether embedding asks ONNX Runtime for a GPU: it does so for one that is planned and proved."""
    if facts.device_asked == "cpu":
        return False
    if facts.plan is None:
        return True
    return facts.plan.device is not None and facts.proved and facts.plan.build == facts.installed_build


def what_embeddings_run_on(facts: Facts) -> str:
    """Return cpu, gpu or none: from the embedding that was made, else from what loads, else from what is recorded."""
    if facts.provisioned is False or (facts.interpreter is not None and not starts(facts)):
        return "none"
    if facts.embedded is not None:
        return "cpu" if facts.embedded.provider == CPU else "gpu"
    if facts.loaded is not None:
        return _by_loading(facts, facts.loaded)
    if facts.provisioned is None or broken(facts):
        return "none"
    return "gpu" if gpu_asked_of_runtime(facts) and facts.proved else "cpu"


def _by_loading(facts: Facts, loaded: Loaded) -> str:
    if loaded.error or not loaded.has_session or loaded.stage in {"import", "cpu"} or loaded.cpu_error:
        return "none"
    if not gpu_asked_of_runtime(facts) or facts.missed_gpu:
        return "cpu"
    if loaded.stage == "gpu" or (loaded.run_error and loaded.session and loaded.session[0] != CPU):
        return "none"
    # The list of what is available describes the build; it counts only where no session was tried.
    providers = loaded.session[:1] if loaded.session is not None else loaded.available
    return "gpu" if GPU_PROVIDERS & set(providers) else "cpu"


def broken(facts: Facts) -> bool:
    """Whether the files of ONNX Runtime itself are known to be damaged."""
    damages = facts.runtimes.damages if facts.runtimes is not None else ()
    builds = build_names(facts)
    return any(damage.distribution in builds and damage.kind not in {"no-record", "no-metadata"} for damage in damages)


def build_names(facts: Facts) -> frozenset[str]:
    """Return the names of the installed builds of ONNX Runtime; a plug-in is none."""
    return (
        frozenset(build.partition(" ")[0] for build in facts.runtimes.builds if build)
        if facts.runtimes
        else frozenset()
    )


def setup(facts: Facts, *flags: str) -> str:
    """Return the command that brings the target in order, in backticks."""
    venv = ["--venv", shlex.quote(facts.venv)] if facts.venv is not None else []
    return f"`{' '.join(['imprint', 'setup', *venv, *flags])}`"


def repair(facts: Facts) -> str:
    """Return the command that installs anew."""
    return setup(facts, "--repair")


def check_command(facts: Facts, *flags: str) -> str:
    """Return the command that proves the target again, in backticks."""
    venv = ["--venv", shlex.quote(facts.venv)] if facts.venv is not None else []
    return f"`{' '.join(['imprint', 'check', *venv, *flags])}`"


def recreate(facts: Facts) -> str:
    """Return what to run when the target's interpreter is of no use any more."""
    if facts.venv is None:
        return "`imprint setup`"
    path = shlex.quote(facts.venv)
    return f"recreate the environment: `python3 -m venv --clear {path}`, then `imprint setup --venv {path}`"


def install(facts: Facts, *requirements: str) -> str:
    """Return the command that installs packages into the target, in backticks."""
    python = shlex.quote(facts.interpreter.path if facts.interpreter is not None else "python")
    wanted = " ".join(shlex.quote(requirement) for requirement in requirements)
    how = f"{python} -m pip install" if _has_pip(facts) else f"uv pip install --python {python}"
    return f"`{how} {wanted}`"


def reinstall(facts: Facts, name: str, *, recorded: bool) -> str:
    """Return the command that installs a package again in the version that is there, in backticks.

    `recorded`: it has a RECORD; pip cannot uninstall what has none, and then only writes over it.
    """
    version = facts.runtimes.versions.get(name) if facts.runtimes is not None else None
    wanted = name if version is None else f"{name}=={version}"
    if not _has_pip(facts):
        return install(facts, "--no-deps", "--reinstall", wanted)
    return install(facts, "--no-deps", "--force-reinstall" if recorded else "--ignore-installed", wanted)


def _has_pip(facts: Facts) -> bool:
    return facts.runtimes is not None and "pip" in facts.runtimes.versions
