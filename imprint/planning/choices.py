"""What a person can choose here: the values of `model.device` and `model.gpu_device`, and the builds for each GPU."""

from __future__ import annotations

from collections.abc import Sequence

from imprint.planning.builds import CPU, BuildTable
from imprint.planning.gates import Fit, preference
from imprint.planning.model import Choice, Gpu, Installed, Machine, Plan, Request, Verdict
from imprint.planning.rule import decide
from imprint.planning.selection import Question, select
from imprint.sizes import in_units
from imprint.values import Record, replace
from imprint.words import DEVICES, How


def device_choices(
    request: Request, machine: Machine, builds: BuildTable, verdicts: Sequence[Verdict], installed: Installed | None
) -> tuple[Choice, ...]:
    """Return the values of `model.device`; `auto` is available wherever the CPU is, since it falls back to it."""
    choices = []
    for value in DEVICES:
        plan = decide(replace(request, device=value), machine, builds, verdicts, installed)
        wanted = plan.build is not None and (value != "gpu" or _on_gpu(plan, builds))
        detail = _detail(plan, builds)
        if value == "auto" and not _on_gpu(plan, builds):
            detail = f"CPU here: {detail}"
        choices.append(Choice(value, available=True, detail=detail) if wanted else _refused(value, plan))
    return tuple(choices)


def gpu_device_choices(
    request: Request, machine: Machine, builds: BuildTable, verdicts: Sequence[Verdict], installed: Installed | None
) -> tuple[Choice, ...]:
    """Return the values of `model.gpu_device`: `auto`, and each GPU by its index, or by UUID where it has none.

    What is asked for now is among them, so that a GPU which is not here is refused with the reason.
    """
    named = [value for gpu in _by_index(machine) if (value := _name(gpu)) is not None]
    named += [value for value in (request.gpu_device,) if value not in {"auto", *named}]
    choices = []
    for value in ("auto", *named):
        asked = replace(request, device="gpu", gpu_device=value)
        plan = decide(asked, machine, builds, verdicts, installed)
        usable = Choice(value, available=True, detail=_detail(plan, builds))
        choices.append(usable if _on_gpu(plan, builds) else _refused(value, plan))
    return tuple(choices)


def _by_index(machine: Machine) -> list[Gpu]:
    return sorted(machine.nvidia.gpus or (), key=lambda gpu: (gpu.index is None, gpu.index or 0, preference(gpu)))


def _name(gpu: Gpu) -> str | None:
    return str(gpu.index) if gpu.index is not None else gpu.uuid


def _on_gpu(plan: Plan, builds: BuildTable) -> bool:
    build = builds.find(plan.build)
    return build is not None and build.kind != CPU


def _refused(value: str, plan: Plan) -> Choice:
    return Choice(value, available=False, reason=plan.reason)


def _detail(plan: Plan, builds: BuildTable) -> str:
    build = builds.find(plan.build)
    if build is None:
        return plan.reason
    if not plan.pending:
        return f"{plan.reason}; the {build.title} build {plan.version} is installed"
    size = "" if plan.download_bytes is None else f", a download of {in_units(plan.download_bytes)}"
    return f"{plan.reason}; installs the {build.title} build {plan.version}{size}"


# --- each GPU, and the builds that run on it -------------------------------------------------------------------------


class DeviceBuild(Record):
    """A build that runs on a GPU."""

    build: str
    how: How


class DeviceReport(Record):
    """One GPU, the builds that run on it in the order in which they are tried, and the code with its reason.

    The code is the one a plan for this GPU alone would carry, recorded checks apart.
    """

    index: int | None
    uuid: str | None
    name: str | None
    compute_capability: str | None
    memory_mib: int | None
    builds: tuple[DeviceBuild, ...]
    code: str
    reason: str


def devices(machine: Machine, builds: BuildTable) -> tuple[DeviceReport, ...]:
    """Return a report for each NVIDIA GPU that a process on this machine can use, by index."""
    gpus = machine.nvidia.gpus or ()
    by_index = sorted(gpus, key=lambda gpu: (gpu.index is None, gpu.index or 0, preference(gpu)))
    return tuple(_report(gpu, machine, builds) for gpu in by_index)


def _report(gpu: Gpu, machine: Machine, builds: BuildTable) -> DeviceReport:
    # Alone in the machine a GPU is what `auto` takes, also where it has neither an index nor a UUID.
    alone = replace(machine, nvidia=replace(machine.nvidia, gpus=(gpu,)))
    request = Request(device="gpu", portable_gpu=False)
    judged = select(Question(request, alone, builds, ())).judged
    fits = tuple(DeviceBuild(name, fit.how) for name, fit in judged.items() if isinstance(fit, Fit))
    plan = decide(request, alone, builds, (), None)
    named = gpu.index, gpu.uuid, gpu.name, gpu.compute_capability, gpu.memory_mib
    return DeviceReport(*named, fits, plan.code, plan.reason)
