"""Gathers which ONNX Runtime is installed and what it does when it is loaded, for us and for the user."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from imprint import resources
from imprint.diagnosis.facts import Loaded, OwnImport, RuntimeFacts, TargetFacts
from imprint.diagnosis.gathering import loading, own_import
from imprint.diagnosis.gathering.sources import TRY_SECONDS, Look
from imprint.diagnosis.libraries import cuda_major, wanted_libraries
from imprint.planning.builds import BuildTable, Wheel
from imprint.planning.model import Device, Machine
from imprint.runtime.check.run import CheckResult, run_check
from imprint.runtime.foreign.target import build_of
from imprint.runtime.installer.startup_output import files_run_at_start
from imprint.runtime.target import Target
from imprint.situation.inputs import load_builds
from imprint.values import Record, replace

CPU_SECONDS = 30.0
"""For loading it, or for the check, where no GPU is there to be started."""


class Known(Record):
    """The target with the build that is installed in it: its name in our table and its entry there, where it has them.

    `cuda` is what its files say; `starts`: its interpreter answered. One that did not would only keep others waiting.
    """

    target: Target | None
    builds: BuildTable
    machine: Machine
    cuda: str | None
    build: str | None
    version: str | None
    wheel: Wheel | None
    starts: bool

    @classmethod
    def of(cls, target: Target | None, facts: TargetFacts, machine: Machine | None) -> Known:
        """Return what is known of a target: of the managed one our records say it, of any other its files."""
        builds, package = load_builds(), facts.installed.package
        if target is not None and target.managed:
            build, version = target.build, target.version
        else:
            named = build_of(builds, package.package, package.version)
            build, version = named.name if named is not None else None, package.version
        wheel = _wheel_of(build, version, machine, builds)
        starts = target is not None and target.starts and facts.starts
        return cls(target, builds, machine or Machine(), package.cuda, build, version, wheel, starts)


def _wheel_of(name: str | None, version: str | None, machine: Machine | None, builds: BuildTable) -> Wheel | None:
    """Return the entry of our table for an installed build on this platform, None where it has none."""
    build = builds.find(name) if name is not None else None
    if build is None or machine is None:
        return None
    place = (machine.platform.os, machine.platform.arch, version)
    return next((wheel for wheel in build.wheels if (wheel.os, wheel.arch, wheel.version) == place), None)


def runtime_facts(look: Look, known: Known, device: Device | None) -> Callable[[], RuntimeFacts]:
    """Try what is installed, on the planned GPU where there is one, and embed a text where that is wanted."""
    ask, target = look.sources.ask, known.target if known.starts else None
    embeds = "embedded" in look.slow and target is not None and target.managed
    loaded = ask("loaded", (lambda: _load(look, known, target, device)) if target else None, TRY_SECONDS)
    own = ask("own_import", (lambda: _import_as_user(look, target)) if target else None, TRY_SECONDS)
    embedded = ask("embedded", look.embed if embeds else None, TRY_SECONDS)
    tested = ask("tested", lambda: _tested(known.wheel))
    return lambda: RuntimeFacts(known.build, known.wheel, tested() or {}, loaded(), own(), embedded())


def prove_here(python: Path, device: Device | None, environ: Mapping[str, str]) -> CheckResult:
    """Run the check, as far as doctor waits for it."""
    return run_check(python, device, environ, deadline=CPU_SECONDS)


def _load(look: Look, known: Known, target: Target, device: Device | None) -> Loaded:
    """Return what loads in the target."""
    nvidia, system = known.machine.nvidia, known.machine.platform.os
    major = cuda_major(Loaded(cuda=known.cuda), known.wheel)
    return loading.try_runtime(
        target.python,
        look.context.environ,
        wanted_libraries(known.wheel, major, system),
        device=device,
        # A driver that hung once would hang the session too.
        gpu=nvidia.status != "timeout",
        deadline=loading.SECONDS if nvidia.gpus else CPU_SECONDS,
    )


def _import_as_user(look: Look, target: Target) -> OwnImport | None:
    """Return what the target's Python does for its user."""
    found = own_import.try_import(target.python, look.context.environ)
    if found is None or found.files or not found.printed.strip():
        return found
    return replace(found, files=tuple(map(str, files_run_at_start(target.prefix))))


def _tested(wheel: Wheel | None) -> Mapping[str, str]:
    """Return what the lock of the installed build pins."""
    if wheel is None or not wheel.links:
        return {}
    from imprint.runtime.distributions.pins import read_lock

    return {pin.name: pin.version for pin in read_lock(resources.lock_path(wheel.lock))}
