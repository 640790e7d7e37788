"""Verdicts and the environment they hold for: when a recorded check counts, and what a new one is recorded with."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from imprint.planning.builds import BuildTable
from imprint.planning.driver import read_driver
from imprint.planning.gates import Fit, fit_of, preference, wheel_for
from imprint.planning.model import Fingerprint, Gpu, Machine, Plan, Request, Verdict
from imprint.planning.reasons import Refused
from imprint.planning.versions import parse_python, standard_abi
from imprint.values import fields_of, replace

FAILED = "failed"
NO_KERNEL = "no-kernel"
"""The kind of failure that says nothing about CUDA here, only that this build lacks code for the GPU."""


def fingerprint_of(plan_or_build: Plan | str, gpu: Gpu | None, machine: Machine, builds: BuildTable) -> Fingerprint:
    """Return the fingerprint that a check of a build on a GPU is recorded with; fields nobody knows are None.

    With a plan, `gpu` None means the GPU that the plan chose.
    """
    name = plan_or_build.build if isinstance(plan_or_build, Plan) else plan_or_build
    if gpu is None and isinstance(plan_or_build, Plan):
        gpu = _gpu_of(plan_or_build, machine)
    gpu = gpu or Gpu()
    build = builds.find(name)
    wheel = wheel_for(build, machine) if build is not None else None
    return Fingerprint(
        build=name,
        lock=None if wheel is None or isinstance(wheel, Refused) else wheel.lock_digest,
        gpu_uuid=gpu.uuid,
        gpu_name=gpu.name,
        compute_capability=gpu.compute_capability,
        driver=machine.nvidia.driver,
        python=_python(machine),
        check=builds.check_id,
    )


def failed_check(fit: Fit, machine: Machine, verdicts: Iterable[Verdict], builds: BuildTable) -> Verdict | None:
    """Return the failed verdict that holds for this build, GPU and environment, or None.

    Of several one that ends the search comes before one of kind `no-kernel`, whatever their order.
    """
    here = fingerprint_of(fit.build.name, fit.gpu, machine, builds)
    failed = [
        verdict
        for verdict in verdicts
        if verdict.result == FAILED and verdict.build == fit.build.name and _same(verdict.fingerprint, here)
    ]
    return min(failed, key=_gravity, default=None)


def complete_verdict(
    verdict: Verdict, given: Collection[str], machine: Machine, builds: BuildTable, request: Request | None = None
) -> Verdict:
    """Fill the fingerprint fields that a what-if file does not name from the environment that is planned for.

    `given` holds the names that the file does name: those stay as they are, null included. What the machine itself
    does not know stays unknown too, so such a verdict never counts.
    """
    gpu = _gpu_meant(verdict, machine, builds, request or Request(device="auto"))
    here = fingerprint_of(verdict.build, gpu, machine, builds)
    absent = {name: getattr(here, name) for name in _NAMES if name not in given}
    return replace(verdict, fingerprint=replace(verdict.fingerprint, **absent))


_NAMES = fields_of(Fingerprint)


def _gravity(verdict: Verdict) -> tuple[bool, str, str]:
    return verdict.kind == NO_KERNEL, verdict.kind or "", verdict.time or ""


def _same(recorded: Fingerprint, here: Fingerprint) -> bool:
    pairs = [(getattr(recorded, name), getattr(here, name)) for name in _NAMES]
    return all(one is not None and one == other for one, other in pairs)


def _python(machine: Machine) -> str | None:
    version, abi = machine.python.version, machine.python.abi
    parsed = parse_python(version)
    if version is None or abi is None or (parsed is not None and abi == standard_abi(parsed)):
        return version
    return f"{version} ({abi})"


def _gpu_of(plan: Plan, machine: Machine) -> Gpu | None:
    device = plan.device
    if device is None:
        return None
    same = [gpu for gpu in machine.nvidia.gpus or () if (gpu.index, gpu.uuid) == (device.index, device.uuid)]
    return same[0] if same else None


def _gpu_meant(verdict: Verdict, machine: Machine, builds: BuildTable, request: Request) -> Gpu:
    """Return the GPU a what-if is about: the one this build would run on, unless the fingerprint names another."""
    build = builds.find(verdict.build)
    fit = None if build is None else fit_of(build, machine, request.gpu_device, read_driver(machine, builds))
    first = [fit.gpu] if isinstance(fit, Fit) else []
    others = sorted(machine.nvidia.gpus or (), key=preference)
    return next((gpu for gpu in (*first, *others) if _is_named(gpu, verdict.fingerprint)), Gpu())


def _is_named(gpu: Gpu, named: Fingerprint) -> bool:
    pairs = ((named.gpu_uuid, gpu.uuid), (named.gpu_name, gpu.name), (named.compute_capability, gpu.compute_capability))
    return all(name is None or name == seen for name, seen in pairs)
