"""Doctor's part in the one verdict: the facts that the other commands go by, and what doctor tried besides. Pure."""

from __future__ import annotations

from imprint.diagnosis.circumstances import circumstances_of, command
from imprint.diagnosis.facts import Facts, Loaded, TargetFacts
from imprint.errors import ImprintError
from imprint.last_words import is_of_outside
from imprint.runtime.check.causes import plain
from imprint.runtime.check.proof import Proof
from imprint.runtime.check.result import CPU, CUDA
from imprint.runtime.distributions.damage import INTERRUPTED, together, words_of
from imprint.runtime.distributions.embedding_needs import lacking
from imprint.runtime.distributions.metadata import is_vendor
from imprint.runtime.verdict import Commands, Seen, TargetVerdict, decide
from imprint.values import replace
from imprint.words import RunsOn

GPU_PROVIDERS = frozenset({CUDA, "TensorrtExecutionProvider", "WebGpuExecutionProvider"})
"""The providers through which embeddings can run on a GPU."""


def verdict_of(facts: Facts) -> TargetVerdict | None:
    """Return the verdict about the target; None where nobody can know, since every command refuses to run there."""
    if facts.target.provisioned is False:
        return decide(Seen(facts.planned.plan, there=False, blocked=facts.planned.refusal, commands=_commands(facts)))
    if (facts.target.provisioned is None or _starts(facts)) and _unreadable(facts):
        return None
    return decide(seen_of(facts))


def _unreadable(facts: Facts) -> bool:
    """Whether what embedding reads first cannot be read: it may name another device, model or target."""
    states = (facts.failures[name] for name in ("target", "seen") if name in facts.failures)
    if any(error.specific_code.startswith("state-") for error in states):
        return True
    return facts.planned.plan is None and bool({"config", "plan"} & facts.failures.keys())


def seen_of(facts: Facts) -> Seen:
    """Return the facts of the verdict: what every command looks at, and over it what was tried here."""
    loaded = facts.runtime.loaded
    seen = facts.planned.seen or _derived(facts)
    tried = _tried(loaded) if loaded is not None else None
    if tried is not None and not tried.ok and (not seen.holds or seen.proof is None or seen.proof.ok):
        seen = replace(seen, proof=tried, changed=())
    model = seen.model or _of_a_model(facts.failures.get("model"))
    missed = seen.missed or ("the last start" if _missed(facts) else None)
    return replace(
        seen,
        starts=seen.starts and _starts(facts),
        model=model,
        missed=missed,
        session=_session(facts) if seen.gpu else None,
    )


def what_embeddings_run_on(facts: Facts) -> RunsOn | None:
    """Return it by the verdict that every command goes by; None where nobody can know."""
    verdict = verdict_of(facts)
    return None if verdict is None else verdict.runs_on


def gpu_build(facts: Facts) -> bool:
    """Whether what is installed, or what loads, is a build for GPUs."""
    loaded, builds = facts.runtime.loaded, facts.target.installed.builds
    return (loaded is not None and bool(GPU_PROVIDERS & set(loaded.available))) or any(
        build.startswith("onnxruntime-gpu") for build in builds
    )


def gpu_wanted(facts: Facts) -> bool:
    """Whether somebody wants a GPU here: the configuration, or a GPU build in an environment nobody configured."""
    settings = facts.settings
    if settings.asks_for_gpu:
        return True
    chosen_cpu = settings.device_asked == "cpu" and settings.device_set
    return not chosen_cpu and facts.target.venv is not None and gpu_build(facts)


def gpu_asked_of_runtime(facts: Facts) -> bool:
    """Whether embedding asks ONNX Runtime for a GPU: it does so for one that is planned and proved."""
    plan = facts.planned.plan
    if facts.settings.device_asked == "cpu":
        return False
    return plan is None or (plan.device is not None and facts.planned.proved and plan.build == facts.runtime.build)


def _starts(facts: Facts) -> bool:
    target = facts.target
    return target.provisioned is not None and (target.interpreter is None or target.starts)


def _commands(facts: Facts) -> Commands:
    return Commands(*(command(facts, verb) for verb in ("setup", "check", "doctor")))


def _derived(facts: Facts) -> Seen:
    """Return what can be said where the commands' own facts could not be gathered, or were recorded without them."""
    loaded, plan, target = facts.runtime.loaded, facts.planned.plan, facts.target
    builds = target.runtimes.builds if target.runtimes is not None else ("unknown",)
    proof = facts.planned.proof
    failed = proof is not None and proof.result != "ok" and not proof.on_gpu and not proof.changed
    kept = Proof("failed", proof.kind, time=proof.time) if failed and proof is not None else None
    lacks = lacking(target.runtimes.versions) if target.venv is not None and target.runtimes is not None else ()
    version = builds[0].partition(" ")[2] if builds else None
    return Seen(
        plan,
        there=target.venv is None or bool(builds) or (loaded is not None and loaded.version is not None),
        managed=target.venv is None,
        build=facts.runtime.build,
        version=(loaded.version if loaded is not None else None) or version or None,
        refused=target.refused,
        damage=_damage(target),
        proof=kept or (_tried(loaded) if loaded is not None else None),
        lacks=lacks if target.starts else (),
        model=_of_a_model(facts.failures.get("model")),
        gpu=gpu_asked_of_runtime(facts),
        mendable=target.venv is not None or (plan is not None and plan.build != facts.runtime.build),
        commands=_commands(facts),
        environ=facts.settings.environ,
        around=circumstances_of(facts),
    )


def _of_a_model(error: ImprintError | None) -> ImprintError | None:
    return error if error is not None and error.specific_code.startswith("model-") else None


def _damage(target: TargetFacts) -> tuple[str, ...]:
    names = target.build_names
    interrupted = (INTERRUPTED,) if target.interrupted else ()
    if len(names) > 1:
        return (*interrupted, together(sorted(names)))
    return interrupted + tuple(
        f"{damage.distribution}: {words_of(damage.kind, damage.count, damage.example)}"
        for damage in target.installed.damages
        if target.venv is None or damage.distribution in names or is_vendor(damage.distribution)
    )


def _tried(loaded: Loaded) -> Proof:
    """Return what loading it here proves; it is less than a check, which compares numbers."""
    if loaded.stage in {"import", "cpu"} and loaded.ended is not None:
        return _ended("importing it" if loaded.stage == "import" else "a session on the CPU", loaded.ended)
    if loaded.error is not None:
        return Proof("failed", "import-failed", plain(loaded.error))
    if not loaded.has_session:
        return Proof("failed", "import-failed", "it has no InferenceSession")
    if loaded.cpu_error is not None:
        return Proof("failed", "ort-failed", plain(loaded.cpu_error))
    return Proof("ok", provider=CPU)


def _ended(doing: str, how: str) -> Proof:
    if how == "timeout":
        return Proof("inconclusive", "timeout", f"{doing} did not finish in time")
    if is_of_outside(how):
        return Proof("inconclusive", "killed", f"{doing} was killed from outside ({how})")
    return Proof("crashed", "crashed", f"{doing} ended with {how}")


def _session(facts: Facts) -> RunsOn | None:
    """Return where a session that asked for the GPU ended up just now; None where none was tried."""
    loaded, embedded = facts.runtime.loaded, facts.runtime.embedded
    if embedded is not None and embedded.provider != CPU:
        return "gpu"
    if loaded is None:
        return None
    if loaded.stage == "gpu" or (loaded.run_error and loaded.session and loaded.session[0] != CPU):
        return "none"
    # The list of what is available describes the build; it counts only where no session was tried.
    providers = loaded.session[:1] if loaded.session is not None else loaded.available
    return "gpu" if GPU_PROVIDERS & set(providers) else "cpu"


def _missed(facts: Facts) -> bool:
    embedded = facts.runtime.embedded
    return facts.planned.missed_gpu or (embedded is not None and embedded.provider == CPU)
