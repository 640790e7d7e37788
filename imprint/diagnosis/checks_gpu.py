"""Checks of the way from the installed build to the GPU: its libraries, its session, its proof. Pure."""

from __future__ import annotations

import re

from imprint.diagnosis.circumstances import install, uninstall
from imprint.diagnosis.facts import Facts, Library, Loaded
from imprint.diagnosis.findings import ERROR, OK, WARNING, Finding
from imprint.diagnosis.judging import (
    finding,
    gpu_build,
    gpu_wanted,
    missing,
    skipped,
    what_embeddings_run_on,
)
from imprint.diagnosis.libraries import DRIVER_LIBRARIES, cuda_major, family, package_of, wanted_libraries
from imprint.diagnosis.standing import GPU_PROVIDERS, verdict_of
from imprint.planning.model import Gpu
from imprint.planning.versions import dotted, parse_pair, parse_version
from imprint.runtime.check.causes import cause_in, plain
from imprint.runtime.check.outside import outside_cause
from imprint.runtime.check.result import CPU

_OLD_CARDS = (7, 5)
_LAST_CUDNN = (9, 11)
"""cuDNN 9.11 dropped GPUs below 7.5 (NVIDIA's release notes, read 2026-11-29)."""


def libraries(facts: Facts) -> list[Finding]:
    """Judge each CUDA library that the installed build needs: from a package, from the system, or missing."""
    check = "runtime:libraries"
    loaded = facts.loaded
    if loaded is None:
        return missing(facts, check, "loaded")
    versions = facts.runtimes.versions if facts.runtimes is not None else {}
    if not gpu_build(facts) and not (loaded.missing and family(loaded.missing)):
        return [finding(facts, check, "ok", OK, "the installed build needs no CUDA libraries")]
    found = [*_clashes(facts, check, versions)]
    short = _missing_library(facts, loaded)
    if short is not None:
        found.append(_short(facts, check, short))
    elif not _works(loaded):
        found += _odd_sources(facts, check, loaded)
    return found or [finding(facts, check, "ok", OK, _sources(loaded.libraries or ()))]


def severity(facts: Facts) -> str:
    """Return how much a fault on the way to the GPU matters: not at all where the CPU was chosen."""
    if not gpu_wanted(facts):
        return OK
    return ERROR if facts.device_asked == "gpu" else WARNING


def _works(loaded: Loaded) -> bool:
    return bool(loaded.session and loaded.session[0] in GPU_PROVIDERS and loaded.run_error is None)


def _missing_library(facts: Facts, loaded: Loaded) -> str | None:
    """Return the first library that is missing for the GPU; what the driver supplies is another check's."""
    if _works(loaded):
        return None
    if loaded.missing is not None and loaded.missing not in DRIVER_LIBRARIES:
        return loaded.missing
    absent = [one.name for one in loaded.libraries or () if one.required and one.source == "missing"]
    return absent[0] if absent and gpu_build(facts) else None


def _short(facts: Facts, check: str, name: str) -> Finding:
    loaded = facts.loaded or Loaded()
    major = cuda_major(loaded, facts.wheel)
    versions = facts.runtimes.versions if facts.runtimes is not None else {}
    gone = {damage.distribution for damage in facts.runtimes.damages} if facts.runtimes is not None else set()
    package = package_of(name, major)
    by = f", which {loaded.wanted_by} needs," if loaded.wanted_by else ""
    seen = f"{name}{by} was not found"
    status = severity(facts)
    there = [one for one in loaded.libraries or () if one.name == name and one.source in {"wheel", "torch"}]
    stub = str(versions.get(f"{package}-cu{major}")) if package and major else ""
    if stub.startswith("0.0"):
        seen += f"; {package}-cu{major} {stub} is a placeholder"
        words = {"install": install(facts, package or "")}
        return finding(facts, check, "placeholder-package", status, seen, words=words)
    if there or (package in versions and package not in gone):
        where = there[0].path if there else f"in the package {package} {versions.get(package or '')}"
        traits = ["old-runtime"] if _cannot_preload(loaded) else []
        return finding(facts, check, "libs-present-not-loaded", status, f"{seen}; it is {where}", traits=traits)
    if package in gone:
        return skipped(facts, check, f"{seen}; see target:integrity")[0]
    other = _other_major(name, package, versions)
    if other is not None:
        seen += f"; {other} {versions[other]} is installed, for another CUDA version"
        return finding(facts, check, "cuda-major-mismatch", status, seen, words={"bring": _bring(facts, name)})
    absent = [one.name for one in loaded.libraries or () if one.required and one.source == "missing"]
    if others := [one for one in absent if one != name]:
        seen += f"; also missing: {', '.join(others)}"
    needed = (
        absent
        if loaded.libraries
        else [one for one, required in wanted_libraries(facts.wheel, major, "linux") if required]
    )
    words = {"bring": _bring(facts, *dict.fromkeys([name, *needed]))}
    return finding(facts, check, "runtime-libs-missing", status, seen, words=words)


def _other_major(name: str, package: str | None, versions: object) -> str | None:
    if package is None or not isinstance(versions, dict):
        return None
    stem = re.sub(r"-cu\d+$", "", package)
    others = {f"{stem}-cu12", f"{stem}-cu11", stem, f"{stem}-cu13"} - {package}
    if family(name) in {"cudnn", "curand"}:
        return None  # their numbers say nothing about CUDA's
    return next((other for other in sorted(others) if other in versions), None)


def _cannot_preload(loaded: Loaded) -> bool:
    """Whether it is older than 1.21, the first that has `preload_dlls`."""
    old = parse_version(loaded.version or "")
    return loaded.package is not None and old is not None and old < (1, 21)


def _bring(facts: Facts, *names: str) -> str:
    """Return what installs the packages of missing libraries, at the versions that were tried where those are known."""
    major = cuda_major(facts.loaded, facts.wheel)
    packages = dict.fromkeys(package for name in names if (package := package_of(name, major)) is not None)
    if not packages:
        return f"install the package that holds {names[0]}"
    pinned = [f"{name}=={facts.tested[name]}" if name in facts.tested else name for name in packages]
    return install(facts, *pinned)


def _clashes(facts: Facts, check: str, versions: object) -> list[Finding]:
    """Judge NVIDIA's packages among themselves."""
    if not isinstance(versions, dict):
        return []
    status = severity(facts)
    found = []
    both = [name for name in ("nvidia-cudnn-cu11", "nvidia-cudnn-cu12", "nvidia-cudnn-cu13") if name in versions]
    if len(both) > 1:
        major = cuda_major(facts.loaded, facts.wheel)
        keep = f"nvidia-cudnn-cu{major}" if f"nvidia-cudnn-cu{major}" in both else both[-1]
        words = {"uninstall": uninstall(facts, *both), "install": install(facts, keep)}
        seen = f"installed together: {', '.join(f'{name} {versions[name]}' for name in both)}"
        found.append(finding(facts, check, "cudnn-clash", status if status == OK else WARNING, seen, words=words))
    old = _old_card(facts)
    cudnn = parse_version(versions.get("nvidia-cudnn-cu12"))
    if old is not None and cudnn is not None and cudnn >= _LAST_CUDNN:
        seen = f"cuDNN {versions['nvidia-cudnn-cu12']} has no code for {old.name} ({old.compute_capability})"
        words = {"install": install(facts, "nvidia-cudnn-cu12==9.10.*")}
        found.append(finding(facts, check, "cudnn-too-new", status, seen, words=words))
    return found


def _old_card(facts: Facts) -> Gpu | None:
    device = facts.plan.device if facts.plan is not None else None
    gpus = facts.machine.nvidia.gpus if facts.machine is not None else None
    chosen = [gpu for gpu in gpus or () if device is None or gpu.uuid == device.uuid]
    pair = parse_pair(chosen[0].compute_capability) if chosen else None
    return chosen[0] if pair is not None and pair < _OLD_CARDS else None


def _odd_sources(facts: Facts, check: str, loaded: Loaded) -> list[Finding]:
    """Judge libraries that are all there, where the GPU still is not used and the driver is not to blame."""
    if facts.machine is None or facts.machine.nvidia.status != "ok":
        return []
    sources = {one.source for one in loaded.libraries or () if one.source != "missing"}
    if "system" in sources and sources & {"wheel", "torch"}:
        return [finding(facts, check, "libs-mixed-sources", severity(facts), _sources(loaded.libraries or ()))]
    versions = facts.runtimes.versions if facts.runtimes is not None else {}
    odd = {
        name: wanted
        for name, wanted in facts.tested.items()
        if name.startswith("nvidia-") and versions.get(name) not in {None, wanted}
    }
    if not odd:
        return []
    seen = ", ".join(f"{name} {versions[name]} (tried: {wanted})" for name, wanted in odd.items())
    words = {"install": install(facts, *(f"{name}=={wanted}" for name, wanted in odd.items()))}
    return [finding(facts, check, "libs-untested", severity(facts), seen, words=words)]


def _sources(found: tuple[Library, ...]) -> str:
    if not found:
        return "which CUDA libraries are there is not known"
    places = {"wheel": "from packages", "torch": "from torch", "system": "from the system", "missing": "missing"}
    grouped = {where: [one.name for one in found if one.source == source] for source, where in places.items()}
    return "; ".join(f"{where}: {', '.join(names)}" for where, names in grouped.items() if names)


def session(facts: Facts) -> list[Finding]:
    """Judge the session that asked for the GPU: whether it got it, and whether it computes there."""
    check = "runtime:session"
    loaded = facts.loaded
    if loaded is None:
        return missing(facts, check, "loaded")
    if loaded.session is None:
        why = "the installed build has no CUDA provider" if loaded.error is None else "ONNX Runtime does not load"
        return skipped(facts, check, why) if loaded.error or loaded.stage else [finding(facts, check, "ok", OK, why)]
    if loaded.session[:1] == (CPU,) or not loaded.session:
        return [_refused(facts, check, loaded)]
    if loaded.run_error is not None:
        return [_run_failed(facts, check, loaded.run_error)]
    if what_embeddings_run_on(facts) == "gpu" or facts.device_asked is None:
        return [finding(facts, check, "ok-gpu", OK, f"a session runs on {loaded.session[0]}")]
    status = OK if facts.device_asked == "cpu" else WARNING
    seen = f"a session runs on {loaded.session[0]}, but embeddings do not ask for it"
    if status == WARNING and facts.plan is not None:
        seen += f": {facts.plan.reason}"
    return [finding(facts, check, "provider-not-requested", status, seen)]


def _refused(facts: Facts, check: str, loaded: Loaded) -> Finding:
    status = facts.machine.nvidia.status if facts.machine is not None else None
    if _missing_library(facts, loaded) is not None:
        return skipped(facts, check, "a library is missing; see runtime:libraries")[0]
    if status in {"none", "driver-missing"} and not _in_container(facts):
        asked = facts.device_asked in {"gpu", "auto"}
        seen = f"{loaded.package or 'the GPU build'} {loaded.version or ''} is installed, but there is no usable GPU"
        return finding(facts, check, "gpu-build-without-gpu", WARNING if asked else OK, seen)
    if status != "ok":
        return skipped(facts, check, "the driver does not work; see gpu:driver")[0]
    seen = f"a session that asked for the GPU runs on the CPU: {_last_error(loaded)}"
    return finding(facts, check, "provider-failed", severity(facts), seen)


def _in_container(facts: Facts) -> bool:
    return bool(facts.machine is not None and facts.machine.platform.container and facts.device_asked == "gpu")


def _last_error(loaded: Loaded) -> str:
    return plain(loaded.run_error or loaded.talk) or "no reason was given"


def _run_failed(facts: Facts, check: str, error: str) -> Finding:
    status = severity(facts)
    cause = cause_in(error)
    if cause is None or cause.kind != "no-kernel":
        if cause is not None and cause.outcome == "inconclusive":
            status = min(status, WARNING, key=[OK, WARNING, ERROR].index)
        return finding(facts, check, "gpu-run-failed", status, f"running on the GPU fails: {plain(error)}")
    gpus = facts.machine.nvidia.gpus if facts.machine is not None else None
    card = next(iter(gpus or ()), None)
    name = f"{card.name or 'the GPU'} ({card.compute_capability or 'capability unknown'})" if card else "this GPU"
    has = _capabilities(facts)
    seen = f"the build has no code for {name}{f', only for {has}' if has else ''}"
    words = {"capabilities": has or None}
    return finding(facts, check, "no-kernel-for-gpu", ERROR if status != OK else OK, seen, words=words)


def _capabilities(facts: Facts) -> str:
    wheel = facts.wheel
    if wheel is None:
        return ""
    native = [f"{dotted(one.capability)}{'a' if one.exact else ''}" for one in wheel.native]
    ptx = [f"{dotted(one.capability)} and later through PTX" for one in wheel.ptx]
    return ", ".join([*native, *ptx])


def _fails_outside(loaded: Loaded | None, facts: Facts) -> bool:
    """Whether ONNX Runtime does not load now because of something that no installation changes."""
    said = "" if loaded is None else "\n".join([loaded.error or loaded.cpu_error or loaded.ended or "", loaded.talk])
    return outside_cause(said, facts.environ) is not None


def _computes_now(facts: Facts) -> bool:
    """Whether the check passes on the CPU, by what every command goes by."""
    verdict = verdict_of(facts)
    return (
        verdict is not None and verdict.runs_on != "none" and verdict.seen.proof is not None and verdict.seen.proof.ok
    )


def proof(facts: Facts) -> list[Finding]:  # noqa: PLR0911 - one for each answer, the gravest first
    """Judge the last recorded check and whether it still counts."""
    check = "runtime:proof"
    found = facts.proof
    if facts.provisioned is False:
        return skipped(facts, check, "no runtime is set up")
    planned = facts.plan is not None and facts.plan.device is not None and facts.plan.build == facts.installed_build
    if found is None:
        if planned and facts.venv is None:
            return [
                finding(facts, check, "not-proved", WARNING, "no check of the installed GPU build is recorded here")
            ]
        return [finding(facts, check, "ok", OK, "no check is recorded, and none is needed")]
    when = f"on {found.time}" if found.time else "at an unknown time"
    if found.changed:
        changed = ", ".join(name.replace("_", " ") for name in found.changed)
        seen = f"the last check was made {when}; since then changed: {changed}"
        status = WARNING if planned else OK
        return [finding(facts, check, "check-stale", status, seen)]
    if found.result != "ok":
        seen = f"the check {when} failed{f' ({found.kind})' if found.kind else ''}"
        if not found.on_gpu and _computes_now(facts):
            return [finding(facts, check, "ok", OK, f"{seen}, but it passes now")]
        if not found.on_gpu and _fails_outside(facts.loaded, facts):
            return skipped(facts, check, f"{seen}, for what runtime:loads names; nothing has to be installed again")
        if not found.on_gpu:
            return [finding(facts, check, "check-failed", ERROR, seen, traits=["checked-cpu"])]
        status = WARNING if gpu_wanted(facts) else OK
        return [finding(facts, check, "check-failed", status, seen)]
    return [finding(facts, check, "ok", OK, f"the check {when} passed")]
