"""Every gate of every build on a machine: passed, refused with its reason, or not reached."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from imprint.planning import reasons
from imprint.planning.builds import CPU, CUDA, Build, BuildTable
from imprint.planning.gates import ABI, CHECK, GATES, TEGRA, Fit, wheel_for
from imprint.planning.model import Gate, Machine, Request, Verdict
from imprint.planning.reasons import Refused
from imprint.planning.rule import REQUEST, asks_for_gpu, request_refusal
from imprint.planning.selection import NOT_REACHED, Question, Selection, select

_PLATFORM_GATES = GATES[: GATES.index(ABI) + 1]


def explain(request: Request, machine: Machine, builds: BuildTable, verdicts: Sequence[Verdict]) -> tuple[Gate, ...]:
    """Return every gate of every build of the table, and what it says about this machine."""
    selection = select(Question(request, machine, builds, verdicts)) if asks_for_gpu(request) else None
    return tuple(gate for build in builds.builds for gate in _gates_of(build, request, machine, selection))


def _gates_of(build: Build, request: Request, machine: Machine, selection: Selection | None) -> Iterator[Gate]:
    """Yield the gates that the build passes, the one that refuses it, and the rest as not reached."""
    wheel = wheel_for(build, machine)
    version = None if isinstance(wheel, Refused) else wheel.version
    names, refused = _PLATFORM_GATES, wheel if isinstance(wheel, Refused) else None
    if build.kind == CPU:
        names = tuple(gate for gate in names if gate != TEGRA)
    else:
        names = (REQUEST, *(GATES if build.kind == CUDA else names))
        if selection is None:
            refused = request_refusal(build, request)
        elif build.kind == CUDA:
            refused = _refusal_of(build, selection)
    at = len(names) if refused is None else names.index(refused.gate)
    for position, name in enumerate(names):
        if position < at:
            yield Gate(build.name, version, name, "pass")
        elif position == at and refused is not None and refused.code != NOT_REACHED:
            yield Gate(build.name, version, name, "refused", refused.code, reasons.reason([refused]))
        else:
            yield Gate(build.name, version, name, NOT_REACHED)


def _refusal_of(build: Build, selection: Selection) -> Refused | None:
    """Return the refusal of a CUDA build; one that was never tried still shows what its own gates say."""
    own = selection.judged[build.name]
    if isinstance(own, Refused):
        return own
    listed = next((one for one in selection.refused if one.build.name == build.name), None)
    if listed is None and _comes_after(own, selection.chosen):
        return Refused(build, CHECK, NOT_REACHED, "")
    return listed


def _comes_after(fit: Fit, chosen: Fit | None) -> bool:
    return chosen is not None and fit.build.name != chosen.build.name
