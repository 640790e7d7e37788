"""The way from the installed build to the GPU: its CUDA libraries, and a session on it. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from imprint.diagnosis.checking import LOADED, check
from imprint.diagnosis.circumstances import install, uninstall
from imprint.diagnosis.facts import Facts, Library, Loaded
from imprint.diagnosis.findings import ERROR, OK, WARNING, Observation, ok, skipped
from imprint.diagnosis.libraries import DRIVER_LIBRARIES, cuda_major, family, package_of, wanted_libraries
from imprint.diagnosis.standing import GPU_PROVIDERS, gpu_build, gpu_wanted, what_embeddings_run_on
from imprint.planning.builds import Wheel
from imprint.planning.model import Gpu
from imprint.planning.versions import dotted, parse_pair, parse_version
from imprint.runtime.check.causes import cause_in, plain
from imprint.runtime.check.result import CPU
from imprint.words import FindingStatus

_OLD_CARDS = (7, 5)
_LAST_CUDNN = (9, 11)
"""cuDNN 9.11 dropped GPUs below 7.5 (NVIDIA's release notes, read 2026-11-29)."""


@check("runtime:libraries", "the CUDA libraries of a GPU build, and where each one is", LOADED)
def libraries(facts: Facts, loaded: Loaded) -> Observation | list[Observation]:
    """Judge each CUDA library that the installed build needs: from a package, from the system, or missing."""
    if not gpu_build(facts) and not (loaded.missing and family(loaded.missing)):
        return ok("the installed build needs no CUDA libraries")
    found = _clashes(facts)
    short = _missing_library(facts, loaded)
    if short is not None:
        found.append(_short(facts, loaded, short))
    elif not _works(loaded):
        found += _odd_sources(facts, loaded)
    return found or ok(_sources(loaded.libraries or ()))


def severity(facts: Facts) -> FindingStatus:
    """Return how much a fault on the way to the GPU matters: not at all where the CPU was chosen."""
    if not gpu_wanted(facts):
        return OK
    return ERROR if facts.settings.insists_on_gpu else WARNING


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


def _short(facts: Facts, loaded: Loaded, name: str) -> Observation:
    """Judge a library that was not found: where it is all the same, or what would bring it."""
    major = cuda_major(loaded, facts.runtime.wheel)
    versions = facts.target.installed.versions
    gone = {damage.distribution for damage in facts.target.installed.damages}
    package = package_of(name, major)
    by = f", which {loaded.wanted_by} needs," if loaded.wanted_by else ""
    seen = f"{name}{by} was not found"
    status = severity(facts)
    there = [one for one in loaded.libraries or () if one.name == name and one.source in {"wheel", "torch"}]
    stub = str(versions.get(f"{package}-cu{major}")) if package and major else ""
    if stub.startswith("0.0"):
        seen += f"; {package}-cu{major} {stub} is a placeholder"
        return Observation("placeholder-package", status, seen, words={"install": install(facts, package or "")})
    if there or (package in versions and package not in gone):
        where = there[0].path if there else f"in the package {package} {versions.get(package or '')}"
        traits = ("old-runtime",) if _cannot_preload(loaded) else ()
        return Observation("libs-present-not-loaded", status, f"{seen}; it is {where}", traits)
    if package in gone:
        return skipped(f"{seen}; see target:integrity")
    other = _other_major(name, package, versions)
    if other is not None:
        seen += f"; {other} {versions[other]} is installed, for another CUDA version"
        return Observation("cuda-major-mismatch", status, seen, words={"bring": _bring(facts, name)})
    absent = [one.name for one in loaded.libraries or () if one.required and one.source == "missing"]
    if others := [one for one in absent if one != name]:
        seen += f"; also missing: {', '.join(others)}"
    linked = wanted_libraries(facts.runtime.wheel, major, "linux")
    needed = absent if loaded.libraries else [one for one, required in linked if required]
    words = {"bring": _bring(facts, *dict.fromkeys([name, *needed]))}
    return Observation("runtime-libs-missing", status, seen, words=words)


def _other_major(name: str, package: str | None, versions: Mapping[str, str | None]) -> str | None:
    if package is None or family(name) in {"cudnn", "curand"}:
        return None  # their numbers say nothing about CUDA's
    stem = re.sub(r"-cu\d+$", "", package)
    others = {f"{stem}-cu12", f"{stem}-cu11", stem, f"{stem}-cu13"} - {package}
    return next((other for other in sorted(others) if other in versions), None)


def _cannot_preload(loaded: Loaded) -> bool:
    """Whether it is older than 1.21, the first that has `preload_dlls`."""
    old = parse_version(loaded.version or "")
    return loaded.package is not None and old is not None and old < (1, 21)


def _bring(facts: Facts, *names: str) -> str:
    """Return what installs the packages of missing libraries, at the versions that were tried where those are known."""
    major = cuda_major(facts.runtime.loaded, facts.runtime.wheel)
    packages = dict.fromkeys(package for name in names if (package := package_of(name, major)) is not None)
    if not packages:
        return f"install the package that holds {names[0]}"
    tested = facts.runtime.tested
    pinned = [f"{name}=={tested[name]}" if name in tested else name for name in packages]
    return install(facts, *pinned)


def _clashes(facts: Facts) -> list[Observation]:
    """Judge NVIDIA's packages among themselves."""
    versions, status = facts.target.installed.versions, severity(facts)
    found = []
    both = [name for name in ("nvidia-cudnn-cu11", "nvidia-cudnn-cu12", "nvidia-cudnn-cu13") if name in versions]
    if len(both) > 1:
        major = cuda_major(facts.runtime.loaded, facts.runtime.wheel)
        keep = f"nvidia-cudnn-cu{major}" if f"nvidia-cudnn-cu{major}" in both else both[-1]
        words = {"uninstall": uninstall(facts, *both), "install": install(facts, keep)}
        seen = f"installed together: {', '.join(f'{name} {versions[name]}' for name in both)}"
        found.append(Observation("cudnn-clash", status if status == OK else WARNING, seen, words=words))
    old = _old_card(facts)
    cudnn = parse_version(versions.get("nvidia-cudnn-cu12"))
    if old is not None and cudnn is not None and cudnn >= _LAST_CUDNN:
        seen = f"cuDNN {versions['nvidia-cudnn-cu12']} has no code for {old.name} ({old.compute_capability})"
        words = {"install": install(facts, "nvidia-cudnn-cu12==9.10.*")}
        found.append(Observation("cudnn-too-new", status, seen, words=words))
    return found


def _old_card(facts: Facts) -> Gpu | None:
    device = facts.planned.plan.device if facts.planned.plan is not None else None
    chosen = [gpu for gpu in _gpus(facts) if device is None or gpu.uuid == device.uuid]
    pair = parse_pair(chosen[0].compute_capability) if chosen else None
    return chosen[0] if pair is not None and pair < _OLD_CARDS else None


def _gpus(facts: Facts) -> tuple[Gpu, ...]:
    machine = facts.system.machine
    return (machine.nvidia.gpus if machine is not None else None) or ()


def _odd_sources(facts: Facts, loaded: Loaded) -> list[Observation]:
    """Judge libraries that are all there, where the GPU still is not used and the driver is not to blame."""
    if facts.system.machine is None or facts.system.machine.nvidia.status != "ok":
        return []
    sources = {one.source for one in loaded.libraries or () if one.source != "missing"}
    if "system" in sources and sources & {"wheel", "torch"}:
        return [Observation("libs-mixed-sources", severity(facts), _sources(loaded.libraries or ()))]
    versions = facts.target.installed.versions
    odd = {
        name: wanted
        for name, wanted in facts.runtime.tested.items()
        if name.startswith("nvidia-") and versions.get(name) not in {None, wanted}
    }
    if not odd:
        return []
    seen = ", ".join(f"{name} {versions[name]} (tried: {wanted})" for name, wanted in odd.items())
    words = {"install": install(facts, *(f"{name}=={wanted}" for name, wanted in odd.items()))}
    return [Observation("libs-untested", severity(facts), seen, words=words)]


def _sources(found: tuple[Library, ...]) -> str:
    if not found:
        return "which CUDA libraries are there is not known"
    places = {"wheel": "from packages", "torch": "from torch", "system": "from the system", "missing": "missing"}
    grouped = {where: [one.name for one in found if one.source == source] for source, where in places.items()}
    return "; ".join(f"{where}: {', '.join(names)}" for where, names in grouped.items() if names)


@check("runtime:session", "a session that asks for the GPU, and a run on it", LOADED)
def session(facts: Facts, loaded: Loaded) -> Observation:
    """Judge the session that asked for the GPU: whether it got it, and whether it computes there."""
    if loaded.session is None:
        why = "the installed build has no CUDA provider" if loaded.error is None else "ONNX Runtime does not load"
        return skipped(why) if loaded.error or loaded.stage else ok(why)
    if loaded.session[:1] == (CPU,) or not loaded.session:
        return _refused(facts, loaded)
    if loaded.run_error is not None:
        return _run_failed(facts, loaded.run_error)
    asked, plan = facts.settings.device_asked, facts.planned.plan
    if what_embeddings_run_on(facts) == "gpu" or asked is None:
        return Observation("ok-gpu", OK, f"a session runs on {loaded.session[0]}")
    status: FindingStatus = OK if asked == "cpu" else WARNING
    seen = f"a session runs on {loaded.session[0]}, but embeddings do not ask for it"
    if status == WARNING and plan is not None:
        seen += f": {plan.reason}"
    return Observation("provider-not-requested", status, seen)


def _refused(facts: Facts, loaded: Loaded) -> Observation:
    machine, settings = facts.system.machine, facts.settings
    status = machine.nvidia.status if machine is not None else None
    in_container = machine is not None and machine.platform.container and settings.insists_on_gpu
    if _missing_library(facts, loaded) is not None:
        return skipped("a library is missing; see runtime:libraries")
    if status in {"none", "driver-missing"} and not in_container:
        seen = f"{loaded.package or 'the GPU build'} {loaded.version or ''} is installed, but there is no usable GPU"
        return Observation("gpu-build-without-gpu", WARNING if settings.asks_for_gpu else OK, seen)
    if status != "ok":
        return skipped("the driver does not work; see gpu:driver")
    why = plain(loaded.run_error or loaded.talk) or "no reason was given"
    return Observation("provider-failed", severity(facts), f"a session that asked for the GPU runs on the CPU: {why}")


def _run_failed(facts: Facts, error: str) -> Observation:
    status = severity(facts)
    cause = cause_in(error)
    if cause is None or cause.kind != "no-kernel":
        if cause is not None and cause.outcome == "inconclusive":
            status = min(status, WARNING, key=[OK, WARNING, ERROR].index)
        return Observation("gpu-run-failed", status, f"running on the GPU fails: {plain(error)}")
    card = next(iter(_gpus(facts)), None)
    name = f"{card.name or 'the GPU'} ({card.compute_capability or 'capability unknown'})" if card else "this GPU"
    has = _capabilities(facts.runtime.wheel)
    seen = f"the build has no code for {name}{f', only for {has}' if has else ''}"
    return Observation("no-kernel-for-gpu", ERROR if status != OK else OK, seen, words={"capabilities": has})


def _capabilities(wheel: Wheel | None) -> str | None:
    if wheel is None:
        return None
    native = [f"{dotted(one.capability)}{'a' if one.exact else ''}" for one in wheel.native]
    ptx = [f"{dotted(one.capability)} and later through PTX" for one in wheel.ptx]
    return ", ".join([*native, *ptx]) or None
