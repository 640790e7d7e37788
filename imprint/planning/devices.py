"""For each GPU of a machine: which builds run on it and how, or why none does."""

from __future__ import annotations

from imprint.planning.builds import BuildTable
from imprint.planning.gates import Fit, preference
from imprint.planning.model import Gpu, Machine, Request
from imprint.planning.rule import decide
from imprint.planning.selection import Question, select
from imprint.values import Record, replace


class DeviceBuild(Record):
    """A build that runs on a GPU; `how` is native or ptx."""

    build: str
    how: str


class DeviceReport(Record):
    """One GPU, the builds that run on it in the order in which they are tried, and the code with its reason.

    The code is the one a plan for this GPU alone would carry, recorded checks apart.
    """

    gpu: Gpu
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
    return DeviceReport(gpu, fits, plan.code, plan.reason)
