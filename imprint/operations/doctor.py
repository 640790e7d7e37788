"""`doctor`: gather what can be wrong, judge it, and name the command that mends it.

The checks live in `imprint.diagnosis` and know values only; its `gathering` reads the files and starts the children.
"""

from __future__ import annotations

import difflib
import io
import platform
import re
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from imprint import __version__
from imprint.causes.catalogue import Advice, as_one, catalogue, general_remedies
from imprint.causes.circumstances import here
from imprint.context import Context
from imprint.diagnosis import report
from imprint.diagnosis.checking import Check
from imprint.diagnosis.checks import CHECKS, run
from imprint.diagnosis.facts import Embedded
from imprint.diagnosis.findings import Counts, Finding, counts
from imprint.diagnosis.standing import verdict_of
from imprint.errors import UsageError
from imprint.hints import helps
from imprint.probing.host import Host
from imprint.results import Notice, Result
from imprint.situation.verdict import Prove
from imprint.values import ABSENT, Absent, Record, replace
from imprint.words import RunsOn

__all__ = [
    "Checks", "Counts", "DoctorOptions", "Explanation", "Finding", "Report", "codes", "diagnose", "explain_code",
    "list_checks",
]  # fmt: skip

TEXT = "a text to see whether embedding works"


class DoctorOptions(Record):
    """Which checks to run (none named: all) on which environment (None: the managed one), and how.

    `strict`: warnings count as errors; `deep`: files are hashed; `report`: one block for a bug report besides.
    """

    ids: tuple[str, ...] = ()
    strict: bool = False
    deep: bool = False
    report: bool = False
    venv: Path | None = None


class Report(Record):
    """What doctor found; `runs_on` and `embeds` are None where nobody can know, `report` is there if asked for."""

    runs_on: RunsOn | None
    embeds: bool | None
    findings: tuple[Finding, ...]
    counts: Counts
    report: str | Absent = ABSENT


class ListedCheck(Record):
    """A check's id, and what it looks at."""

    id: str
    about: str


class Checks(Record):
    """Every check that there is."""

    checks: tuple[ListedCheck, ...]


class Explanation(Record):
    """What a code means, and what helps: in one sentence, and its parts."""

    code: str
    means: str
    fix: str | None
    remedies: tuple[Advice, ...]


def codes() -> tuple[str, ...]:
    """Return every code that can be explained."""
    return tuple(catalogue().causes)


def list_checks() -> Result[Checks]:
    """Return every check's id and what it looks at."""
    return Result(Checks(tuple(ListedCheck(check.id, check.about) for check in CHECKS)))


def explain_code(context: Context, code: str) -> Result[Explanation]:
    """Return what a code means, of a finding, a plan or an error, and what helps. Raises UsageError for an unknown one.

    Nothing is looked at but the system and the shell, for which the remedies are written.
    """
    causes = catalogue().causes
    if code not in causes:
        near = difflib.get_close_matches(code, causes, n=3, cutoff=0.6)
        these = " or ".join(f"`{name}`" for name in near)
        hint = helps("did-you-mean-these", these=these) if near else helps("list-of-codes")
        raise UsageError(f"unknown code: {code}", hint=hint)
    remedies = general_remedies(causes[code], here(context.environ))
    return Result(Explanation(code, causes[code].means, as_one(remedies), tuple(dict.fromkeys(remedies))))


def diagnose(
    context: Context, options: DoctorOptions, *, host: Host | None = None, prove: Prove | None = None
) -> Result[Report]:
    """Return what the checks find; changes nothing. `host` None: this machine; `prove` None: the check itself.

    Errors among the findings make an error of the result (with `strict`, warnings too). Raises UsageError for an
    unknown id and for an environment whose path is not UTF-8.
    """
    # Who lists or explains gathers nothing.
    from imprint.diagnosis.gathering import gather

    chosen = _chosen(options.ids)
    if options.venv is not None:
        from imprint.runtime.foreign.environment import require_utf8

        require_utf8(options.venv)
    slow = frozenset(check.slow for check in chosen if check.slow is not None)
    facts = gather(
        context,
        venv=options.venv,
        deep=options.deep,
        slow=slow,
        host=host,
        prove=prove,
        embed=lambda: _embedded(context),
    )
    findings = run(chosen, facts)
    counted, verdict = counts(findings), verdict_of(facts)
    runs_on, embeds = (None, None) if verdict is None else (verdict.runs_on, verdict.embeds)
    found = Report(runs_on, embeds, tuple(findings), counted)
    if options.report:
        around = [
            ("imprint", __version__),
            ("system", f"{platform.system()} {_numbers(platform.release())} {platform.machine()}"),
            ("python", platform.python_version()),
            *report.surroundings(facts),
        ]
        hidden, chips = _hidden(context, facts.target.venv), report.chips_of(facts)
        found = replace(found, report=report.compose(around, findings, counted, hidden, chips))
    return Result(found, errors=_verdict(findings, strict=options.strict))


def _embedded(context: Context) -> Embedded:
    """Make one real embedding. Raises what `embed` raises."""
    from imprint.operations.embed import EmbedOptions, embed

    started = time.monotonic()
    done = embed(
        context,
        EmbedOptions(texts=(TEXT,), format="text"),
        lambda _: None,
        stdin=io.BytesIO,
        stdout=io.BytesIO(),
    ).payload
    return Embedded(str(done.provider), done.dims, round(time.monotonic() - started, 2))


def _numbers(release: str) -> str:
    """Return the version in a kernel's release, without the name that somebody gave it."""
    return re.split(r"[^\d.]", release, maxsplit=1)[0]


def _chosen(ids: Iterable[str]) -> list[Check]:
    known = {check.id: check for check in CHECKS}
    wanted = set(ids)
    for name in wanted:
        if name not in known:
            raise UsageError(f"unknown check: {name}", hint=_nearest(name, tuple(known)))
    return [check for check in CHECKS if not wanted or check.id in wanted]


def _nearest(word: str, known: tuple[str, ...]) -> str:
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.4)
    return helps("did-you-mean", near=near[0]) if near else helps("the-checks")


def _verdict(findings: list[Finding], *, strict: bool) -> tuple[Notice, ...]:
    counting = {"error", "warning"} if strict else {"error"}
    bad = [finding for finding in findings if finding.status in counting]
    if not bad:
        return ()
    what = "1 check needs attention" if len(bad) == 1 else f"{len(bad)} checks need attention"
    return (Notice("doctor", f"{what}: {', '.join(dict.fromkeys(finding.id for finding in bad))}", bad[0].fix),)


def _hidden(context: Context, venv: str | None) -> Mapping[str, str]:
    found = {str(context.home.root): "<home>", platform.node(): "<host>"}
    if venv is not None:
        found[venv] = "<environment>"
    for name in ("HOME", "USERPROFILE"):
        if len(context.environ.get(name, "")) > 1:
            found[context.environ[name]] = "<user>"
    for name in ("USER", "USERNAME", "LOGNAME"):
        # A very short or common name would tear words apart.
        if len(context.environ.get(name, "")) > 4:
            found[context.environ[name]] = "<user>"
    return found
