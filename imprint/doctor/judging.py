"""What every check shares: how a finding is made, and what embeddings run on. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from imprint.causes.catalogue import PERSON, Advice, as_one, catalogue, remedies_for
from imprint.doctor.facts import Facts, Loaded
from imprint.doctor.findings import SKIPPED, Finding
from imprint.doctor.situation import situation_of

CPU = "CPUExecutionProvider"
GPU_PROVIDERS = frozenset({"CUDAExecutionProvider", "TensorrtExecutionProvider", "WebGpuExecutionProvider"})
"""The providers through which embeddings can run on a GPU."""


def finding(  # noqa: PLR0913 - a finding has that many parts
    facts: Facts,
    check: str,
    code: str,
    status: str,
    seen: str,
    *,
    traits: Iterable[str] = (),
    words: Mapping[str, str | None] | None = None,
    told: str | None = None,
    runs_on: str | None = None,
) -> Finding:
    """Return a finding: meaning and remedies come from the catalogue, as they fit what is looked at.

    `traits` and `words` are what the check knows beyond the facts (a word that is None is not known); `told` is the
    remedy that an error brought along.
    """
    cause = catalogue().causes[code]
    known = {name: word for name, word in (words or {}).items() if word is not None}
    remedies = remedies_for(code, situation_of(facts).with_(*traits, **known))
    if told is not None:
        remedies = (Advice(cause.remedies[0].kind if cause.remedies else PERSON, told),)
    elif cause.remedies and not remedies and facts.refusal is not None:
        # What would help is refused there.
        remedies = (Advice(PERSON, "; ".join(filter(None, (facts.refusal.message, facts.refusal.hint)))),)
    where = runs_on or what_embeddings_run_on(facts)
    return Finding(check, code, status, seen, cause.means, where, as_one(remedies), remedies)


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
    return skipped(facts, check, f"could not be checked: {error.message}" if error else "was not checked")


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
