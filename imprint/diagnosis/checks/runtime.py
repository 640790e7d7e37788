"""ONNX Runtime itself: how many builds there are, and what loads, for Imprint and for the user's own programs. Pure."""

from __future__ import annotations

import re

from imprint.diagnosis.checking import LOADED, RUNTIMES, check
from imprint.diagnosis.circumstances import install, install_planned, reinstall, uninstall
from imprint.diagnosis.facts import Facts, Loaded, Runtimes
from imprint.diagnosis.findings import ERROR, WARNING, Observation, ok, skipped
from imprint.diagnosis.standing import gpu_wanted, verdict_of, what_embeddings_run_on
from imprint.last_words import is_of_outside
from imprint.runtime.check.causes import plain
from imprint.runtime.check.outside import outside_cause
from imprint.runtime.verdict import BROKEN, STARTUP, Problem
from imprint.words import FindingStatus

_NO_MODULE = re.compile(r"No module named '(?P<name>[\w.]+)'")
_NUMPY = re.compile(r"_ARRAY_API not found|numpy\.core\.multiarray failed|compiled using NumPy 1|numpy\.dtype size")
_OLD_VC = re.compile(r"WinError 1114|DLL load failed while importing \w+: .*initialization routine failed")
_PACKAGES = {"google": "protobuf", "google.protobuf": "protobuf"}
"""Modules whose package has another name."""


_DOING = {
    "import": "importing ONNX Runtime",
    "cpu": "making a session on the CPU",
    "gpu": "making a session on the GPU",
    "libraries": "looking for libraries",
}
_SHOWN = 60
"""Characters of what a start prints that are shown."""


@check("runtime:duplicates", "more than one ONNX Runtime in the same folder", RUNTIMES)
def duplicates(facts: Facts, runtimes: Runtimes) -> Observation:
    """Judge how many builds of ONNX Runtime share the target."""
    builds, loaded, venv = runtimes.builds, facts.runtime.loaded, facts.target.venv
    if len(builds) > 1:
        return _several(facts, runtimes)
    if builds:
        return ok(f"{builds[0]} is the only ONNX Runtime build in the target")
    if loaded is not None and loaded.version is not None:
        return ok(f"ONNX Runtime {loaded.version} comes from outside the environment, {loaded.file}")
    code = "not-installed" if venv is not None else "install-incomplete"
    return Observation(code, ERROR, f"no ONNX Runtime is installed in {venv or 'the target'}", runs_on="none")


def _several(facts: Facts, runtimes: Runtimes) -> Observation:
    # What works today breaks at the next change; what runs elsewhere than it should is broken now.
    status: FindingStatus = (
        WARNING if what_embeddings_run_on(facts) == ("gpu" if gpu_wanted(facts) else "cpu") else ERROR
    )
    seen, loaded = _installed(runtimes.builds), facts.runtime.loaded
    if loaded is not None and loaded.package is not None:
        seen += f"; {loaded.package} loads {loaded.version or ''}".rstrip()
    if runtimes.requirers:
        seen += f"; required by {', '.join(runtimes.requirers)}"
    names = dict.fromkeys(build.partition(" ")[0] for build in runtimes.builds)
    words = {"uninstall_builds": uninstall(facts, *names), "install_planned": install_planned(facts)}
    return Observation("duplicate-runtimes", status, seen, words=words)


def _installed(builds: tuple[str, ...]) -> str:
    """Say which builds there are: several, or one that is listed in several versions."""
    names = {build.partition(" ")[0] for build in builds}
    if len(names) > 1:
        return f"installed together: {', '.join(builds)}"
    versions = [build.partition(" ")[2] or "an unknown version" for build in builds]
    return f"{names.pop()} is listed {len(builds)} times, as {' and '.join(dict.fromkeys(versions))}"


@check("runtime:loads", "what ONNX Runtime really is, by loading it in a separate process", LOADED)
def loads(facts: Facts, loaded: Loaded) -> Observation:
    """Judge what really loads, whatever the metadata says."""
    if not facts.target.starts and facts.target.interpreter is not None:
        return skipped("the target's interpreter does not start")
    if loaded.ended is not None and loaded.stage is not None:
        return _ended(facts, loaded, loaded.ended)
    if loaded.error is not None:
        return _import_failed(facts, loaded, loaded.error)
    if not loaded.has_session:
        seen = f"`import onnxruntime` gives an empty module without InferenceSession ({loaded.file or 'no file'})"
        return Observation("runtime-hollow", ERROR, seen, words=_again(facts))
    if loaded.cpu_error is not None:
        return _cpu_failed(facts, loaded, loaded.cpu_error)
    return _mismatch(facts, loaded) or ok(f"{_named(loaded)} loads")


def _named(loaded: Loaded) -> str:
    cuda = f" (CUDA {loaded.cuda})" if loaded.cuda else ""
    return f"{loaded.package or 'ONNX Runtime'} {loaded.version or 'of unknown version'}{cuda}"


def _ended(facts: Facts, loaded: Loaded, ended: str) -> Observation:
    doing = _DOING.get(loaded.stage or "", "loading ONNX Runtime")
    early = loaded.stage in {"import", "cpu"}
    hangs: FindingStatus = ERROR if early else WARNING
    if ended == "timeout":
        return Observation("runtime-hangs", hangs, f"{doing} did not finish in time")
    if is_of_outside(ended):
        seen = f"{doing} was killed from outside ({ended}), perhaps because memory ran out"
        return Observation("runtime-hangs", hangs, seen)
    if (blamed := _outside(facts, ended, loaded.error or "", loaded.talk) or _startup(facts)) is not None:
        return blamed
    code = "cpu-instruction-missing" if ended in {"SIGILL", "0xC000001D"} else "runtime-crashed"
    status: FindingStatus = ERROR if early or facts.settings.asks_for_gpu else WARNING
    return Observation(code, status, f"{doing} crashed the process: {ended}", words=_again(facts))


def _import_failed(facts: Facts, loaded: Loaded, said: str) -> Observation:
    error = _decisive(facts, said)
    if (blamed := _outside(facts, error, loaded.talk)) is not None:
        return blamed
    module, runtimes = _NO_MODULE.search(error), facts.target.runtimes
    if module is not None and module["name"].split(".")[0] == "onnxruntime":
        if runtimes is not None and not runtimes.builds:
            return skipped("no ONNX Runtime is installed")
    elif (broken := _dependency(facts, error)) is not None:
        return broken
    seen = f"importing it fails: {_line(error)}"
    if _OLD_VC.search(error):
        return Observation("msvc-runtime-old", ERROR, seen)
    return _startup(facts) or Observation("runtime-import-failed", ERROR, seen, words=_again(facts))


def _cpu_failed(facts: Facts, loaded: Loaded, error: str) -> Observation:
    seen = f"{_named(loaded)} loads, but does not compute on the CPU: {_line(error)}"
    blamed = _outside(facts, error, loaded.talk) or _dependency(facts, error)
    return blamed or Observation("cpu-session-failed", ERROR, seen, words=_again(facts))


def _outside(facts: Facts, *said: str) -> Observation | None:
    """Return the cause outside of the target that a failure names."""
    cause = outside_cause("\n".join(said), facts.settings.environ)
    return None if cause is None else Observation(cause.code, ERROR, cause.seen, tuple(cause.traits), cause.words)


def _dependency(facts: Facts, error: str) -> Observation | None:
    """Return the package besides ONNX Runtime that a failure names: one that is missing, or NumPy of the wrong age."""
    module = _NO_MODULE.search(error)
    if module is None and not _NUMPY.search(error):
        return None
    name = module["name"] if module is not None else "numpy"
    problem = _problem(facts)
    # Where setup installs it, every command names that.
    ours = problem is not None and problem.code == BROKEN and facts.planned.refusal is None
    told = f"`{problem.fix}`" if problem is not None and ours else None
    words = {"upgrade": install(facts, "--upgrade", _PACKAGES.get(name, name.partition(".")[0]))}
    return Observation("dependency-missing", ERROR, f"importing it fails: {_line(error)}", words=words, told=told)


def _decisive(facts: Facts, error: str) -> str:
    """Return what the check met where that names a module: ONNX Runtime tells of NumPy only that it failed."""
    verdict = verdict_of(facts)
    detail = verdict.seen.proof.detail if verdict is not None and verdict.seen.proof is not None else None
    return detail if detail is not None and _NO_MODULE.search(detail) else error


def _problem(facts: Facts) -> Problem | None:
    verdict = verdict_of(facts)
    return verdict.problem if verdict is not None else None


def _startup(facts: Facts) -> Observation | None:
    """Return the finding about a file of the owner's that runs at every start, where the verdict blames it."""
    problem = _problem(facts)
    return Observation(STARTUP, ERROR, problem.text) if problem and problem.code == STARTUP else None


def _mismatch(facts: Facts, loaded: Loaded) -> Observation | None:
    builds = facts.target.installed.builds
    if len(builds) != 1 or loaded.package is None or loaded.version is None:
        return None
    name, _, version = builds[0].partition(" ")
    if (name, version.partition("+")[0]) == (loaded.package, loaded.version.partition("+")[0]):
        return None
    seen = f"{builds[0]} is listed, but {_named(loaded)} loads"
    return Observation("build-mismatch", WARNING, seen, words=_again(facts))


def _again(facts: Facts) -> dict[str, str | None]:
    """Return the words of a remedy that installs ONNX Runtime again, where one build is installed."""
    builds = facts.target.installed.builds
    command = reinstall(facts, builds[0].partition(" ")[0]) if len(builds) == 1 else None
    return {"install_again": command, "reinstall": command}


def _line(text: str) -> str:
    return plain(text) or "no reason was given"


@check("environment:python", "Python as your own programs start it: PYTHONPATH, sitecustomize, importing ONNX Runtime")
def own_import(facts: Facts) -> Observation:
    """Judge Python as the user starts it: Imprint's own children are isolated, and the user's programs are not."""
    found, loaded = facts.runtime.own_import, facts.runtime.loaded
    if found is None:
        return skipped("the target's interpreter does not start, or was not checked")
    path = facts.settings.environ.get("PYTHONPATH")
    told = [f"`{file}` is loaded at every start" for file in found.files]
    told += [f"PYTHONPATH is `{path}`"] if path else []
    by = f" ({'; '.join(told)})" if told else ""
    # What prints is a file that every start loads; what hides a package is most often the path.
    traits = ("python-path",) if path and (found.error is not None or not found.files) else ()
    words = {"file": found.files[0] if found.files else None}
    if found.error is not None and loaded is not None and loaded.error is None and loaded.has_session:
        outside = outside_cause(found.error, facts.settings.environ)
        if outside is not None:
            return Observation(outside.code, WARNING, outside.seen, words=outside.words)
        seen = f"your own `import onnxruntime` fails, but Imprint's works: {plain(found.error)}{by}"
        return Observation("python-path-interferes", WARNING, seen, traits, words)
    if found.printed.strip():
        said = " ".join(found.printed.split())[:_SHOWN]
        seen = f"Python prints `{said}` before any of your programs run{by}"
        return Observation("python-path-interferes", WARNING, seen, traits, words)
    ours = loaded.file if loaded is not None else None
    if found.file is not None and ours is not None and found.file != ours:
        seen = f"your own programs load another ONNX Runtime, {found.file}, instead of {ours}{by}"
        return Observation("python-path-interferes", WARNING, seen, ("python-path",))
    return ok("Python starts there as it should, also outside Imprint")
