"""Which GPU build runs on which GPU: every build judged on its own, then the first good one in order.

Native code in any build comes before PTX in any. A failed check ends the search, except that code missing for the
GPU (`no-kernel`) only skips that build. What is decided for the CPU, and the plan, is `rule`'s.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from imprint.planning import facts
from imprint.planning.builds import NATIVE, Build, BuildTable
from imprint.planning.driver import Driver, Unread, read_driver
from imprint.planning.gates import CHECK, LEVEL, Fit, fit_of
from imprint.planning.model import Machine, Request, Verdict
from imprint.planning.reasons import Refused
from imprint.planning.versions import Pair
from imprint.values import Record

NOT_REACHED: Final = "not-reached"


class Question(Record):
    """Everything that the choice of a build and a GPU depends on."""

    request: Request
    machine: Machine
    builds: BuildTable
    verdicts: Sequence[Verdict]


class Selection(Record):
    """The outcome for all CUDA builds.

    `judged` holds what gates 2 to 4 say of each build; `chosen` the build to plan or None; `refused` every build
    that was passed over, in build order; `decisive` the refusals that the plan's code comes from, empty when a build
    is chosen; `ended` whether a failed check ended the search; `driver` what the driver amounted to.
    """

    question: Question
    judged: Mapping[str, Fit | Refused]
    chosen: Fit | None
    refused: tuple[Refused, ...]
    decisive: tuple[Refused, ...]
    ended: bool
    driver: Driver | Unread

    @property
    def cuda(self) -> Pair | None:
        """The CUDA version that the driver supports, None where there is no driver to plan with."""
        return self.driver.cuda if isinstance(self.driver, Driver) else None


def select(question: Question) -> Selection:
    """Judge every CUDA build on the machine and choose one; the request is taken to ask for a GPU."""
    driver = read_driver(question.machine, question.builds)
    judged = {
        build.name: fit_of(build, question.machine, question.request.gpu_device, driver)
        for build in question.builds.cuda
    }
    chosen, failed, end = _first_checked(judged, question)
    refused = _passed_over(judged, chosen, failed, end)
    decisive = _decisive(refused) if chosen is None else ()
    return Selection(question, judged, chosen, refused, decisive, end is not None, driver)


def _first_checked(
    judged: Mapping[str, Fit | Refused], question: Question
) -> tuple[Fit | None, dict[str, Refused], Build | None]:
    """Return the first fit without a failed check, the fits that have one, and the build whose check ended it."""
    fits = [fit for fit in judged.values() if isinstance(fit, Fit)]
    failed: dict[str, Refused] = {}
    # The sort is stable, so build order holds within native and within PTX.
    fits.sort(key=lambda fit: fit.how != NATIVE)
    if not question.verdicts:
        return (fits[0] if fits else None), failed, None
    from imprint.planning.fingerprints import NO_KERNEL, failed_check

    for fit in fits:
        verdict = failed_check(fit, question.machine, question.verdicts, question.builds)
        if verdict is None:
            return fit, failed, None
        failed[fit.build.name] = _check_failed(fit, verdict, question.machine)
        if verdict.kind != NO_KERNEL:
            return None, failed, fit.build
    return None, failed, None


def _passed_over(
    judged: Mapping[str, Fit | Refused], chosen: Fit | None, failed: Mapping[str, Refused], end: Build | None
) -> tuple[Refused, ...]:
    """Return the refusals a plan lists: of a chosen GPU the builds before it, else of every build."""
    refused = []
    past_chosen = past_end = False
    for name, outcome in judged.items():
        past_chosen = past_chosen or (chosen is not None and name == chosen.build.name)
        if name in failed:
            refused.append(failed[name])
        elif isinstance(outcome, Refused) and not past_end and not past_chosen:
            refused.append(outcome)
        elif end is not None:
            why = f"the check of the {end.title} build failed"
            refused.append(Refused(outcome.build, CHECK, NOT_REACHED, why))
        elif chosen is not None and not past_chosen:
            # Only PTX waits behind native code of a later build.
            why = f"the {chosen.build.title} build has native code for a GPU here"
            refused.append(Refused(outcome.build, CHECK, NOT_REACHED, why))
        past_end = past_end or (end is not None and name == end.name)
    return tuple(refused)


def _decisive(refused: Sequence[Refused]) -> tuple[Refused, ...]:
    """Return the refusal of the build that got furthest, the first on a tie, and those of others that say the same."""
    tried = [one for one in refused if one.code != NOT_REACHED]
    first = max(tried, key=lambda one: LEVEL[one.gate])
    same = [one for one in tried if (one.gate, one.code, one.seen) == (first.gate, first.code, first.seen)]
    return tuple(same)


def _check_failed(fit: Fit, verdict: Verdict, machine: Machine) -> Refused:
    details = [facts.on_one_line(text) for text in (verdict.kind, verdict.time) if text]
    cause = f": {facts.on_one_line(verdict.detail)}" if verdict.detail else ""
    said = f" ({', '.join(details)}{cause})" if details else ""
    return Refused(fit.build, CHECK, "check-failed", f"{facts.gpu(fit.gpu)} with {facts.driver(machine)}", said)
