"""Every gate of every build on a machine: passed, refused with its reason, or not reached."""

from __future__ import annotations

from collections.abc import Sequence

from imprint.planning import reasons
from imprint.planning.builds import CPU, CUDA, Build, BuildTable
from imprint.planning.gates import ABI, CHECK, GATES, TEGRA, Fit, wheel_for
from imprint.planning.model import Machine, Request, Verdict
from imprint.planning.reasons import Refused
from imprint.planning.rule import REQUEST, asks_for_gpu, request_refusal
from imprint.planning.selection import NOT_REACHED, Question, Selection, select
from imprint.values import Record

PASS, REFUSED = "pass", "refused"

_PLATFORM_GATES = GATES[: GATES.index(ABI) + 1]


class GateResult(Record):
    """One gate of one build: `outcome` is pass, refused or not-reached; code and reason only where it refused."""

    gate: str
    outcome: str
    code: str | None = None
    reason: str | None = None


class Explanation(Record):
    """One build and all its gates in their order."""

    build: str
    version: str | None
    gates: tuple[GateResult, ...]


def explain(
    request: Request, machine: Machine, builds: BuildTable, verdicts: Sequence[Verdict]
) -> tuple[Explanation, ...]:
    """Return every build of the table with what each of its gates says about this machine."""
    selection = select(Question(request, machine, builds, verdicts)) if asks_for_gpu(request) else None
    return tuple(_explained(build, request, machine, selection) for build in builds.builds)


def _explained(build: Build, request: Request, machine: Machine, selection: Selection | None) -> Explanation:
    wheel = wheel_for(build, machine)
    version = None if isinstance(wheel, Refused) else wheel.version
    if build.kind == CPU:
        gates = [gate for gate in _PLATFORM_GATES if gate != TEGRA]
        return Explanation(build.name, version, _until(gates, wheel if isinstance(wheel, Refused) else None))
    gates = [REQUEST, *(GATES if build.kind == CUDA else _PLATFORM_GATES)]
    if selection is None:
        return Explanation(build.name, version, _until(gates, request_refusal(build, request)))
    if build.kind != CUDA:
        return Explanation(build.name, version, _until(gates, wheel if isinstance(wheel, Refused) else None))
    return Explanation(build.name, version, _until(gates, _refusal_of(build, selection)))


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


def _until(gates: Sequence[str], refused: Refused | None) -> tuple[GateResult, ...]:
    """Return the gates passed up to the one that refused, that one, and the rest as not reached."""
    if refused is None:
        return tuple(GateResult(gate, PASS) for gate in gates)
    at = list(gates).index(refused.gate)
    here = GateResult(refused.gate, REFUSED, refused.code, reasons.reason([refused]))
    if refused.code == NOT_REACHED:
        here = GateResult(refused.gate, NOT_REACHED)
    passed = [GateResult(gate, PASS) for gate in gates[:at]]
    return (*passed, here, *(GateResult(gate, NOT_REACHED) for gate in gates[at + 1 :]))
