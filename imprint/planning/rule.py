"""The rule: facts, request, verdicts and what is installed -> the build to have, with the reason.

`decide` is total, pure and deterministic: every machine gets a plan, and the same input gives the same one.
"""

from __future__ import annotations

from collections.abc import Sequence

from imprint.planning import facts, reasons
from imprint.planning.builds import CUDA, NATIVE, Build, BuildTable, Wheel
from imprint.planning.driver import ALWAYS, Unread, is_hardware
from imprint.planning.gates import DRIVER, Fit, capability, preference, wheel_for
from imprint.planning.hints import driver_hint, nearest_supported, plan_hint
from imprint.planning.model import Device, Installed, Machine, Note, OtherGpu, Plan, Refusal, Request, Verdict
from imprint.planning.reasons import Refused
from imprint.planning.selection import Question, Selection, select
from imprint.values import replace

REQUEST = "request"
"""The first gate: what the configuration asks for."""


def decide(
    request: Request,
    machine: Machine,
    builds: BuildTable,
    verdicts: Sequence[Verdict],
    installed: Installed | None,
) -> Plan:
    """Return the plan for a machine. Never raises; a machine that nothing runs on gets a plan without a build."""
    cpu = wheel_for(builds.cpu, machine)
    if not asks_for_gpu(request):
        plan = _without_gpu(request, machine, builds, cpu)
        return settled(plan, machine, builds, installed)
    selection = select(Question(request, machine, builds, verdicts))
    if isinstance(cpu, Refused):
        plan = _no_build(cpu, machine, builds)
    elif selection.chosen is not None:
        plan = _on_gpu(selection, selection.chosen)
    else:
        plan = _without_cuda(selection, cpu, installed)
        if plan.device is None:
            plan = replace(plan, hint=plan_hint(selection))
    return settled(replace(plan, refused=_before(plan, selection)), machine, builds, installed)


def asks_for_gpu(request: Request) -> bool:
    """Whether the configuration asks for a GPU where one can be used; `gpu` and `auto` plan alike."""
    return request.device in {"gpu", "auto"}


def request_refusal(build: Build, request: Request) -> Refused:
    """Return the refusal of a GPU build that nobody asked for."""
    return Refused(build, REQUEST, "device-cpu", facts.on_one_line(request.device))


# --- the plans ------------------------------------------------------------------------------------------------------


def _no_build(refused: Refused, machine: Machine, builds: BuildTable) -> Plan:

    hint = nearest_supported(builds.cpu, machine)
    return Plan(None, None, None, None, refused.code, reasons.reason([refused]), hint)


def _without_gpu(request: Request, machine: Machine, builds: BuildTable, cpu: Wheel | Refused) -> Plan:
    if isinstance(cpu, Refused):
        plan = _no_build(cpu, machine, builds)
    else:
        plan = _plan(builds.cpu, cpu, request_refusal(builds.cpu, request))
    return replace(plan, refused=tuple(_refusal(request_refusal(build, request)) for build in builds.cuda))


def _plan(build: Build, wheel: Wheel, *why: Refused) -> Plan:
    return Plan(build.name, wheel.lock, wheel.version, None, why[0].code, reasons.reason(why))


def _on_gpu(selection: Selection, fit: Fit) -> Plan:
    native = fit.how == NATIVE
    say = reasons.native if native else reasons.jit
    gpu, question = fit.gpu, selection.question
    return Plan(
        build=fit.build.name,
        lock=fit.wheel.lock,
        version=fit.wheel.version,
        device=Device(gpu.index, gpu.uuid, gpu.name),
        code="gpu-native" if native else "gpu-jit",
        reason=say(facts.gpu(gpu), fit.build, facts.driver_supports(question.machine, selection.cuda)),
        notes=_smaller_gpu(selection, fit) if question.request.gpu_device == "auto" else (),
    )


def _without_cuda(selection: Selection, cpu: Wheel, installed: Installed | None) -> Plan:
    question = selection.question
    on_cpu = _plan(question.builds.cpu, cpu, *selection.decisive)
    there = question.builds.find(installed.build) if installed is not None else None
    there = there if there is not None and there.kind == CUDA else None
    if _is_provisional(selection, there):
        return replace(_kept(on_cpu, there, question.machine, installed), provisional=True)
    portable = None if selection.ended else portable_plan(question.request, question.machine, question.builds)
    return on_cpu if portable is None else portable


def _is_provisional(selection: Selection, there: Build | None) -> bool:
    """Whether only an unreadable driver speaks against a GPU, which is no reason to take a GPU build away."""
    driver = selection.driver
    if not isinstance(driver, Unread) or selection.decisive[0].gate != DRIVER:
        return False
    return driver.provisional == ALWAYS or there is not None


def _kept(on_cpu: Plan, there: Build | None, machine: Machine, installed: Installed | None) -> Plan:
    wheel = wheel_for(there, machine) if there is not None else None
    if there is None or installed is None or wheel is None or isinstance(wheel, Refused):
        return on_cpu
    note = Note("installed-build-kept", f"the installed {there.title} build stays until the driver can be read")
    version = installed.version or wheel.version
    return replace(on_cpu, build=there.name, lock=wheel.lock, version=version, notes=(note,))


# --- what goes with every plan --------------------------------------------------------------------------------------


def _smaller_gpu(selection: Selection, fit: Fit) -> tuple[Note, ...]:
    """Notice on a larger GPU that would run too, with PTX or a later build, so that the choice surprises nobody."""
    failed = {one.build.name for one in selection.refused if one.code == "check-failed"}
    others = [other for name, other in selection.judged.items() if isinstance(other, Fit) and name not in failed]
    for gpu in sorted(selection.question.machine.nvidia.gpus or (), key=preference):
        if preference(gpu) >= preference(fit.gpu) or (gpu.memory_mib or 0) <= (fit.gpu.memory_mib or 0):
            continue
        for other in others:
            how = other.wheel.how_it_runs(capability(gpu), selection.cuda)
            if how is not None:
                said = reasons.smaller(facts.gpu_name(gpu), facts.gpu_name(fit.gpu), how, other.build)
                return (Note("smaller-gpu", said),)
    return ()


def _before(plan: Plan, selection: Selection) -> tuple[Refusal, ...]:
    """Return the refusals to list; of a GPU build that is kept for now only the builds before it."""
    names = [one.build.name for one in selection.refused]
    end = names.index(plan.build) if plan.build in names else None
    return tuple(_refusal(one, driver_hint(selection, one.build.name)) for one in selection.refused[:end])


def _refusal(refused: Refused, hint: str | None = None) -> Refusal:
    return Refusal(refused.build.name, refused.code, reasons.reason([refused]), hint)


# --- what a plan changes on a target ---------------------------------------------------------------------------------


def settled(plan: Plan, machine: Machine, builds: BuildTable, installed: Installed | None) -> Plan:
    """Return the plan with what is installed, whether a change is pending, and its sizes in bytes.

    An installed build of unknown version counts as the planned one. Sizes are 0 when nothing is to change, and None
    where the table does not know them.
    """
    same = installed is not None and installed.build == plan.build and installed.version in {None, plan.version}
    pending = plan.build is not None and not same
    if not pending:
        return replace(
            plan, installed=installed, pending=False, download_bytes=0, installed_bytes=0, free_bytes_after_prune=0
        )
    wanted = _wheel(plan.build, plan.version, machine, builds)
    needed = None if wanted is None else wanted.installed_bytes
    return replace(
        plan,
        installed=installed,
        pending=True,
        download_bytes=None if wanted is None else wanted.download_bytes,
        installed_bytes=needed,
        free_bytes_after_prune=_freed(needed, machine, builds, installed),
    )


def _freed(needed: int | None, machine: Machine, builds: BuildTable, installed: Installed | None) -> int | None:
    """Return what is left over once the planned build has replaced the installed one."""
    if installed is None:
        return 0
    # What is on the disk takes its space whether or not it would be planned for a Tegra GPU.
    anywhere = replace(machine, platform=replace(machine.platform, jetson=None))
    there = _wheel(installed.build, installed.version, anywhere, builds)
    held = None if there is None else there.installed_bytes
    return None if held is None or needed is None else max(0, held - needed)


def _wheel(name: str | None, version: str | None, machine: Machine, builds: BuildTable) -> Wheel | None:
    build = builds.find(name)
    wheel = wheel_for(build, machine) if build is not None else None
    return wheel if isinstance(wheel, Wheel) and version in {None, wheel.version} else None


# --- the build for GPUs of every vendor ------------------------------------------------------------------------------

_APIS = frozenset({"vulkan", "d3d12", "metal"})


def portable_plan(request: Request, machine: Machine, builds: BuildTable) -> Plan | None:
    """Return the plan for a GPU of any vendor, or None where there is none, or nobody wants it.

    `gpu` wants it, `auto` only when a kept measurement shows it faster and in agreement. An explicit NVIDIA GPU is
    honoured or refused, never replaced by another one.
    """
    build = builds.portable
    if build is None or not request.portable_gpu or request.gpu_device != "auto":
        return None
    if request.device == "auto" and not request.portable_is_faster:
        return None
    wheel = wheel_for(build, machine)
    usable = [gpu for gpu in machine.other_gpus or () if gpu.api in _APIS and is_hardware(gpu, machine)]
    if isinstance(wheel, Refused) or not usable:
        return None
    gpu = min(usable, key=_portable_preference)
    why = reasons.portable(facts.other_gpu(gpu), build, gpu.api or "")
    return Plan(build.name, wheel.lock, wheel.version, Device(None, None, gpu.name), "gpu-portable", why)


def _portable_preference(gpu: OtherGpu) -> tuple[bool, int, str, str, str]:
    return gpu.kind != "discrete", -(gpu.memory_mib or 0), gpu.name or "", gpu.vendor or "", gpu.api or ""
