"""Checks of ONNX Runtime itself: how many builds there are, and what loads when it is loaded. Pure."""

from __future__ import annotations

import re

from imprint.diagnosis.circumstances import install, install_planned, reinstall, uninstall
from imprint.diagnosis.facts import Facts, Loaded
from imprint.diagnosis.findings import ERROR, OK, WARNING, Finding
from imprint.diagnosis.judging import finding, gpu_wanted, missing, skipped, what_embeddings_run_on
from imprint.diagnosis.standing import starts, verdict_of
from imprint.runtime.check.causes import plain
from imprint.runtime.check.outside import Outside, outside_cause
from imprint.runtime.verdict import BROKEN, STARTUP, Problem

_NO_MODULE = re.compile(r"No module named '(?P<name>[\w.]+)'")
_NUMPY = re.compile(r"_ARRAY_API not found|numpy\.core\.multiarray failed|compiled using NumPy 1|numpy\.dtype size")
_OLD_VC = re.compile(r"WinError 1114|DLL load failed while importing \w+: .*initialization routine failed")
_PACKAGES = {"google": "protobuf", "google.protobuf": "protobuf"}
"""Modules whose package has another name."""


def duplicates(facts: Facts) -> list[Finding]:
    """Judge how many builds of ONNX Runtime share the target."""
    check = "runtime:duplicates"
    if facts.runtimes is None:
        return missing(facts, check, "runtimes")
    builds = facts.runtimes.builds
    if len(builds) > 1:
        return [_several(facts, check, builds)]
    if builds:
        return [finding(facts, check, "ok", OK, f"{builds[0]} is the only ONNX Runtime build in the target")]
    if facts.loaded is not None and facts.loaded.version is not None:
        seen = f"ONNX Runtime {facts.loaded.version} comes from outside the environment, {facts.loaded.file}"
        return [finding(facts, check, "ok", OK, seen)]
    code = "not-installed" if facts.venv is not None else "install-incomplete"
    seen = f"no ONNX Runtime is installed in {facts.venv or 'the target'}"
    return [finding(facts, check, code, ERROR, seen, runs_on="none")]


def _several(facts: Facts, check: str, builds: tuple[str, ...]) -> Finding:
    runs_on = what_embeddings_run_on(facts)
    # What works today breaks at the next change; what runs elsewhere than it should is broken now.
    status = WARNING if runs_on == ("gpu" if gpu_wanted(facts) else "cpu") else ERROR
    seen = _installed(builds)
    if facts.loaded is not None and facts.loaded.package is not None:
        seen += f"; {facts.loaded.package} loads {facts.loaded.version or ''}".rstrip()
    if facts.runtimes is not None and facts.runtimes.requirers:
        seen += f"; required by {', '.join(facts.runtimes.requirers)}"
    names = dict.fromkeys(build.partition(" ")[0] for build in builds)
    words = {"uninstall_builds": uninstall(facts, *names), "install_planned": install_planned(facts)}
    return finding(facts, check, "duplicate-runtimes", status, seen, words=words)


def _installed(builds: tuple[str, ...]) -> str:
    """Say which builds there are: several, or one that is listed in several versions."""
    names = {build.partition(" ")[0] for build in builds}
    if len(names) > 1:
        return f"installed together: {', '.join(builds)}"
    versions = [build.partition(" ")[2] or "an unknown version" for build in builds]
    return f"{names.pop()} is listed {len(builds)} times, as {' and '.join(dict.fromkeys(versions))}"


def loads(facts: Facts) -> list[Finding]:  # noqa: PLR0911 - one for each way to fail, the earliest first
    """Judge what really loads, whatever the metadata says."""
    check = "runtime:loads"
    loaded = facts.loaded
    if loaded is None:
        return missing(facts, check, "loaded")
    if not starts(facts) and facts.interpreter is not None:
        return skipped(facts, check, "the target's interpreter does not start")
    if loaded.ended is not None and loaded.stage is not None:
        return [_ended(facts, check, loaded)]
    if loaded.error is not None:
        return _import_failed(facts, check, loaded)
    if not loaded.has_session:
        seen = f"`import onnxruntime` gives an empty module without InferenceSession ({loaded.file or 'no file'})"
        return [finding(facts, check, "runtime-hollow", ERROR, seen, words=_again(facts))]
    if loaded.cpu_error is not None:
        return [_cpu_failed(facts, check, loaded)]
    return [_mismatch(facts, check, loaded) or finding(facts, check, "ok", OK, f"{_named(loaded)} loads")]


def _named(loaded: Loaded) -> str:
    cuda = f" (CUDA {loaded.cuda})" if loaded.cuda else ""
    return f"{loaded.package or 'ONNX Runtime'} {loaded.version or 'of unknown version'}{cuda}"


def _ended(facts: Facts, check: str, loaded: Loaded) -> Finding:
    doing = {
        "import": "importing ONNX Runtime",
        "cpu": "making a session on the CPU",
        "gpu": "making a session on the GPU",
        "libraries": "looking for libraries",
    }.get(loaded.stage or "", "loading ONNX Runtime")
    matters = loaded.stage in {"import", "cpu"} or facts.device_asked in {"gpu", "auto"}
    hangs = ERROR if loaded.stage in {"import", "cpu"} else WARNING
    if loaded.ended == "timeout":
        return finding(facts, check, "runtime-hangs", hangs, f"{doing} did not finish in time")
    seen = f"{doing} crashed the process: {loaded.ended}"
    if loaded.ended in {"SIGKILL", "SIGTERM"}:
        seen = f"{doing} was killed from outside ({loaded.ended}), perhaps because memory ran out"
        return finding(facts, check, "runtime-hangs", hangs, seen)
    outside = outside_cause("\n".join([loaded.ended or "", loaded.error or "", loaded.talk]), facts.environ)
    if outside is not None:
        return _outside(facts, check, outside)
    if (started := _startup(facts, check)) is not None:
        return started
    code = "cpu-instruction-missing" if loaded.ended in {"SIGILL", "exit code 0xC000001D"} else "runtime-crashed"
    return finding(facts, check, code, ERROR if matters else WARNING, seen, words=_again(facts))


def _import_failed(facts: Facts, check: str, loaded: Loaded) -> list[Finding]:
    error = _decisive(facts, loaded.error or "")
    outside = outside_cause(f"{error}\n{loaded.talk}", facts.environ)
    if outside is not None:
        return [_outside(facts, check, outside)]
    module = _NO_MODULE.search(error)
    if module is not None and module["name"].split(".")[0] == "onnxruntime":
        if facts.runtimes is not None and not facts.runtimes.builds:
            return skipped(facts, check, "no ONNX Runtime is installed")
    elif module is not None or _NUMPY.search(error):
        return [_dependency(facts, check, module["name"] if module else "numpy", error)]
    if _OLD_VC.search(error):
        return [finding(facts, check, "msvc-runtime-old", ERROR, f"importing it fails: {_line(error)}")]
    if (started := _startup(facts, check)) is not None:
        return [started]
    seen = f"importing it fails: {_line(error)}"
    return [finding(facts, check, "runtime-import-failed", ERROR, seen, words=_again(facts))]


def _cpu_failed(facts: Facts, check: str, loaded: Loaded) -> Finding:
    error = loaded.cpu_error or ""
    outside = outside_cause(f"{error}\n{loaded.talk}", facts.environ)
    if outside is not None:
        return _outside(facts, check, outside)
    module = _NO_MODULE.search(error)
    if module is not None or _NUMPY.search(error):
        return _dependency(facts, check, module["name"] if module else "numpy", error)
    seen = f"{_named(loaded)} loads, but does not compute on the CPU: {_line(error)}"
    return finding(facts, check, "cpu-session-failed", ERROR, seen, words=_again(facts))


def _outside(facts: Facts, check: str, cause: Outside) -> Finding:
    return finding(facts, check, cause.code, ERROR, cause.seen, traits=cause.traits, words=cause.words)


def _dependency(facts: Facts, check: str, module: str, error: str) -> Finding:
    package = _PACKAGES.get(module, module.partition(".")[0])
    words = {"upgrade": install(facts, "--upgrade", package)}
    problem = _problem(facts)
    # Where setup installs it, every command names that.
    told = f"`{problem.fix}`" if problem is not None and problem.code == BROKEN and facts.refusal is None else None
    seen = f"importing it fails: {_line(error)}"
    return finding(facts, check, "dependency-missing", ERROR, seen, words=words, told=told)


def _decisive(facts: Facts, error: str) -> str:
    """Return what the check met where that names a module: ONNX Runtime tells of NumPy only that it failed."""
    verdict = verdict_of(facts)
    detail = verdict.seen.proof.detail if verdict is not None and verdict.seen.proof is not None else None
    return detail if detail is not None and _NO_MODULE.search(detail) else error


def _problem(facts: Facts) -> Problem | None:
    verdict = verdict_of(facts)
    return verdict.problem if verdict is not None else None


def _startup(facts: Facts, check: str) -> Finding | None:
    """Return the finding about a file of the owner's that runs at every start, where the verdict blames it."""
    problem = _problem(facts)
    return finding(facts, check, STARTUP, ERROR, problem.text) if problem and problem.code == STARTUP else None


def _mismatch(facts: Facts, check: str, loaded: Loaded) -> Finding | None:
    builds = facts.runtimes.builds if facts.runtimes is not None else ()
    if len(builds) != 1 or loaded.package is None or loaded.version is None:
        return None
    name, _, version = builds[0].partition(" ")
    local = version.partition("+")[0]
    if (name, local) == (loaded.package, loaded.version.partition("+")[0]):
        return None
    seen = f"{builds[0]} is listed, but {_named(loaded)} loads"
    return finding(facts, check, "build-mismatch", WARNING, seen, words=_again(facts))


def _again(facts: Facts) -> dict[str, str | None]:
    """Return the words of a remedy that installs ONNX Runtime again, where one build is installed."""
    builds = facts.runtimes.builds if facts.runtimes is not None else ()
    command = reinstall(facts, builds[0].partition(" ")[0]) if len(builds) == 1 else None
    return {"install_again": command, "reinstall": command}


def _line(text: str) -> str:
    return plain(text) or "no reason was given"
