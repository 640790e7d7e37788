"""The one verdict about a target, as a function of facts: what embeddings run on, whether they run, and why not. Pure.

`situation.verdict` gathers the facts for every command; doctor adds what it tried itself, and asks the same function.
It is one long file because the order of its questions is the verdict.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from imprint.causes.catalogue import as_one, remedies_for
from imprint.causes.circumstances import Circumstances
from imprint.errors import ImprintError
from imprint.hints import helps
from imprint.planning.model import Device, Plan
from imprint.runtime.check.outside import outside_cause
from imprint.runtime.check.proof import WORDS, Proof
from imprint.runtime.check.reads import Needs
from imprint.values import Record, replace
from imprint.words import RunsOn

DAMAGED, BROKEN, LACKING = "target-damaged", "target-incomplete", "packages-missing"
"""The codes where files of the runtime are broken, where it does not work and setup has something to install, and where
embedding lacks packages of its own beside it."""

ABSENT, FAILED, UNTRIED, TOO_NEW = "not-installed", "check-failed", "check-inconclusive", "model-too-new"
STARTUP = "startup-file-interferes"

_MENDED_BY_SETUP = frozenset({DAMAGED, BROKEN, LACKING, "model-missing", "model-damaged"})


class Problem(Record):
    """Why embeddings do not run, or what will go wrong: stable code, sentence fragment, and what helps.

    `fix` is a command of ours, `advice` a sentence where none of them helps.
    """

    code: str
    text: str
    fix: str | None = None
    advice: str | None = None

    @property
    def hint(self) -> str | None:
        """What helps, as a sentence."""
        return helps("run", command=self.fix) if self.fix is not None else self.advice


class Commands(Record):
    """The commands about a target, as somebody types them there."""

    setup: str = "imprint setup"
    check: str = "imprint check"
    doctor: str = "imprint doctor"


class Seen(Record):
    """The facts about a target that a verdict is made of.

    `plan` None: nobody could plan. `there`: an ONNX Runtime is installed, whole or not; `starts`: its interpreter runs;
    `refused` is why that is not tried, `withheld` why the system lets none of it run. `damage` has a fragment for each
    fault of its files. `proof` is the check to go by, `changed` what is different since it was made. `lacks` are
    packages that embedding needs besides, `model` is what is wrong with the configured model on disk, `needs` what
    that model asks of a runtime.

    `gpu`: embedding asks for the planned GPU, which a recorded check has proved; `session` is where a session that
    asked for it just now ended up (gpu, cpu, none), None where none was tried; `missed` is when the last worker asked
    for it in vain. `mendable`: setup would install something in a target that does not work; `blocked` is why it would
    refuse to; `startup` are files of the owner's that run at every start of its Python.
    """

    plan: Plan | None
    there: bool = True
    managed: bool = True
    build: str | None = None
    version: str | None = None
    since: str | None = None
    elsewhere: bool = False
    starts: bool = True
    refused: ImprintError | None = None
    withheld: ImprintError | None = None
    damage: tuple[str, ...] = ()
    proof: Proof | None = None
    changed: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    installable: bool = True
    model: ImprintError | None = None
    needs: Needs | None = None
    gpu: bool = False
    session: RunsOn | None = None
    missed: str | None = None
    mendable: bool = False
    blocked: ImprintError | None = None
    startup: tuple[str, ...] = ()
    commands: Commands = Commands()
    environ: Mapping[str, str] = {}
    around: Circumstances = Circumstances(frozenset(), {})

    @property
    def holds(self) -> bool:
        """Whether there is a check, and everything it rests on is as it was."""
        return self.proof is not None and not self.changed

    @property
    def refusal(self) -> str | None:
        """What to say instead of the command that sets up, where that would refuse."""
        return None if self.blocked is None else refusal_of(self.commands.setup, self.blocked)


def refusal_of(setup: str, error: ImprintError) -> str:
    """Return what to say instead of the command that sets up, which refuses with an error."""
    return helps("setup-refuses", setup=setup, why="; ".join(filter(None, (error.message, error.hint))))


class TargetVerdict(Record):
    """What is known of a target.

    `runs_on` is what ONNX Runtime computes on there; `embeds` whether embeddings run, for which a
    model and two packages are needed besides. `problems` are all that is wrong, the gravest first.
    """

    seen: Seen
    runs_on: RunsOn
    embeds: bool
    pending: bool
    device: Device | None = None
    problems: tuple[Problem, ...] = ()

    @property
    def problem(self) -> Problem | None:
        """The gravest problem, with what else is wrong behind it."""
        if not self.problems:
            return None
        first = self.problems[0]
        text = ", and ".join(problem.text for problem in self.problems)
        return Problem(first.code, text, first.fix, first.advice)

    @property
    def proved(self) -> bool:
        """Whether a check that still holds says what it runs on."""
        return self.seen.holds

    @property
    def missed(self) -> bool:
        """Whether a proved GPU is planned that the last worker did not get."""
        return self.seen.gpu and self.seen.missed is not None and self.runs_on == "cpu"

    @property
    def line(self) -> str:
        """The authoritative line."""
        return _line(self)

    @property
    def advises_setup(self) -> bool:
        """Whether it says, or a command that goes by it would say, that setup helps."""
        return self.pending or self.mended_by_setup or f"`{self.seen.commands.setup}`" in self.line

    @property
    def mended_by_setup(self) -> bool:
        """Whether setup is what helps against something that is wrong."""
        return any(problem.fix == self.seen.commands.setup for problem in self.problems)

    def with_setup(self, command: str) -> TargetVerdict:
        """Return the verdict with the command that sets up as planned, where that needs options."""
        seen = replace(self.seen, commands=replace(self.seen.commands, setup=command))
        return replace(self, seen=seen)


def decide(seen: Seen) -> TargetVerdict:
    """Return the verdict that the facts amount to."""
    if seen.refused is not None:
        refused = Problem(seen.refused.specific_code, seen.refused.message, advice=seen.refused.hint)
        return TargetVerdict(seen, "none", embeds=False, pending=True, problems=(refused,))
    planned = seen.plan is not None and seen.plan.build is not None
    if not seen.there:
        absent = _as_it_can_be(seen, _absent(seen))
        pending = planned and seen.blocked is None
        return TargetVerdict(seen, "none", embeds=False, pending=pending, problems=(absent,))
    runs_on = _runs_on(seen)
    problems = tuple(_as_it_can_be(seen, problem) for problem in _problems(seen, runs_on))
    codes = {problem.code for problem in problems}
    changes = seen.plan is not None and (seen.plan.pending or seen.plan.build != seen.build)
    # Where there is no build, or where it refuses, setup changes nothing.
    possible = (planned or seen.plan is None) and seen.blocked is None
    pending = possible and (changes or bool(codes & _MENDED_BY_SETUP))
    return TargetVerdict(
        seen,
        runs_on,
        embeds=runs_on != "none" and codes <= {DAMAGED},
        pending=pending,
        device=seen.plan.device if seen.plan is not None and runs_on == "gpu" else None,
        problems=problems,
    )


def _as_it_can_be(seen: Seen, problem: Problem) -> Problem:
    """Return a problem with what helps; where setup would refuse, that is what the refusal says."""
    if seen.blocked is None or problem.fix != seen.commands.setup:
        return problem
    return replace(problem, fix=None, advice=seen.refusal)


def _absent(seen: Seen) -> Problem:
    if seen.plan is not None and seen.plan.build is None:
        return Problem(ABSENT, "nothing is installed, and no build exists for this machine", advice=seen.plan.hint)
    return Problem(ABSENT, "nothing is installed", seen.commands.setup)


def _runs_on(seen: Seen) -> RunsOn:
    if not seen.starts or seen.withheld is not None:
        return "none"
    if seen.holds and seen.proof is not None and not seen.proof.ok:
        return "none"
    if seen.damage and not seen.holds:
        return "none"
    if not seen.gpu or seen.missed is not None:
        return "cpu"
    return seen.session or "gpu"


def _problems(seen: Seen, runs_on: str) -> Iterator[Problem]:
    """Yield all that is wrong, the gravest first."""
    planned = seen.plan is None or seen.plan.build is not None
    if seen.withheld is not None:
        yield Problem(seen.withheld.specific_code, seen.withheld.message, advice=seen.withheld.hint)
    if seen.damage:
        yield Problem(DAMAGED, f"the runtime is damaged ({seen.damage[0]})", seen.commands.setup if planned else None)
    elif not seen.starts:
        yield Problem(DAMAGED, "its interpreter does not start", seen.commands.setup if planned else None)
    elif runs_on == "none" and seen.withheld is None:
        yield _does_not_work(seen)
    if runs_on != "none" and seen.lacks:
        verb = "is" if len(seen.lacks) == 1 else "are"
        text = f"{' and '.join(seen.lacks)} {verb} missing"
        # For a free-threaded Python there is nothing to install.
        yield Problem(LACKING, text, seen.commands.setup if seen.installable else None)
    if seen.model is not None:
        yield _of_the_model(seen, seen.model)
    elif runs_on != "none" and (why := _too_new(seen)) is not None:
        fix = seen.commands.setup if _another_version(seen) else None
        yield Problem(TOO_NEW, why, fix, None if fix else helps("another-model"))


def _of_the_model(seen: Seen, error: ImprintError) -> Problem:
    if error.specific_code == "model-unreadable":
        # Another download would not be readable either.
        return Problem(error.specific_code, error.message, advice=error.hint)
    return Problem(error.specific_code, error.message, seen.commands.setup)


def _does_not_work(seen: Seen) -> Problem:
    told = seen.proof or Proof("failed")
    what = f"ONNX Runtime {seen.version or ''}".rstrip()
    if told.ok:
        return Problem(FAILED, f"{what} does not compute on the GPU", seen.commands.check)
    if told.outcome == "inconclusive":
        text = f"{what} could not be tried: {told.detail or told.kind}"
        return Problem(UNTRIED, text, seen.commands.check)
    how = "does not load" if told.kind in {"import-failed", "not-started"} else "does not compute"
    text = f"{what} {how}: {told.detail or told.kind or 'no reason was given'}"
    outside = outside_cause(told.detail or "", seen.environ)
    if outside is not None:
        # What lies outside the runtime is not mended by installing it again.
        return Problem(outside.code, f"{what} {how}: {outside.seen}", advice=outside.fix(seen.around))
    if seen.mendable:
        return Problem(BROKEN, text, seen.commands.setup)
    if seen.startup and told.kind in {"import-failed", "not-started", "crashed"}:
        # Nothing else explains it, and its files are as they were installed.
        run = "is" if len(seen.startup) == 1 else "are"
        named = f"{text} (`{'`, `'.join(seen.startup)}` {run} run at every start)"
        return Problem(STARTUP, named, advice=as_one(remedies_for(STARTUP, seen.around)))
    return Problem(FAILED, text, seen.commands.doctor)


def _too_new(seen: Seen) -> str | None:
    """Return why the runtime cannot read the model, as the worker would find."""
    if seen.needs is None or seen.proof is None or seen.proof.reads is None:
        return None
    return seen.needs.beyond(seen.proof.reads, seen.version)


def _another_version(seen: Seen) -> bool:
    plan = seen.plan
    return plan is not None and plan.build is not None and plan.version != seen.version


# --- the line -------------------------------------------------------------------------------------------------------


def _line(verdict: TargetVerdict) -> str:
    seen, problem = verdict.seen, verdict.problem
    plan, why = seen.plan, f": {seen.plan.reason}" if seen.plan is not None else ""
    if problem is not None and problem.code == ABSENT:
        build = _switch(seen) if plan and plan.build else ""
        return f"embeddings do not run; nothing is installed{build}{why}"
    if not verdict.embeds and problem is not None:
        runs = "" if verdict.runs_on == "none" else f" although ONNX Runtime {seen.version} works"
        then = f"; {problem.hint}" if problem.hint is not None else ""
        planned = f" (the plan: {plan.reason})" if plan is not None else ""
        return f"embeddings do not run{runs}: {problem.text}{planned}{then}"
    runtime = f"ONNX Runtime {seen.version}, {seen.build}"
    if verdict.missed:
        gpu = plan.device.name if plan and plan.device is not None and plan.device.name else "the GPU"
        line = f"embeddings ran on the CPU at {seen.missed} although you asked for {gpu}"
        return f"{line} ({runtime}){why}; run `{seen.commands.check}`"
    if verdict.runs_on == "gpu":
        gpu = verdict.device.name if verdict.device is not None and verdict.device.name else "the GPU"
        return f"embeddings run on {gpu} ({runtime}){why}{_faults(verdict) or _unless(seen)}"
    return f"embeddings run on the CPU (ONNX Runtime {seen.version}){why}{_faults(verdict) or _but(seen)}"


def _faults(verdict: TargetVerdict) -> str:
    """Return the clause about what is wrong although it works."""
    problem = verdict.problem
    if problem is None:
        return ""
    return f"; but {problem.text}; {problem.hint or f'run `{verdict.seen.commands.setup}`'}"


def _but(seen: Seen) -> str:
    """Return the clause about what would change, and what is not known."""
    plan = seen.plan
    if plan is None or plan.build is None:
        return "; no build is planned" if plan is not None else ""
    switch = "" if plan.build == seen.build else _switch(seen)
    if seen.elsewhere:
        return f"; the check was deferred (run `{seen.commands.check}`){switch}"
    if switch or plan.device is None:
        return switch or _unless(seen)
    run = f" (run `{seen.commands.setup}`)" if seen.refusal is None else f"; {seen.refusal}"
    return f"; the GPU build is not proved here{run}"


def _switch(seen: Seen) -> str:
    """Return the clause about the planned build, which is not there."""
    if seen.refusal is not None:
        return f"; {seen.refusal}"
    plan = seen.plan
    if plan is None:
        return ""
    if plan.device is not None and plan.code == FAILED:
        # It would promise what failed here the last time.
        return f"; `{seen.commands.setup}` would try {plan.build} {plan.version} again"
    return f"; `{seen.commands.setup}` would install {plan.build} {plan.version}"


def _unless(seen: Seen) -> str:
    """Return the clause that a line needs whose check does not hold, or was never made."""
    check = seen.commands.check
    if seen.proof is None:
        return f"; not proved yet (run `{check}`)"
    if seen.changed:
        what = [WORDS[name] for name in seen.changed]
        verb = "have" if len(what) > 1 or what[0].endswith("s") else "has"
        return f"; the check is of {seen.proof.time}, and {', '.join(what)} {verb} changed since (run `{check}`)"
    return ""
