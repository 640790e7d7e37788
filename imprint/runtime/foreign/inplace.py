"""Changes somebody's own environment to exactly the planned build of ONNX Runtime, in an order that can be resumed.

Everything is downloaded, unpacked and loaded beside the environment before it is touched, and every file that would
be removed or overwritten is judged. Then a journal says what is meant, what was staged is renamed into its place, what
leaves is removed, and a proof follows; a receipt replaces the journal. A run that finds a journal finishes what it
says, whatever is planned now. No installer ever works in the environment itself. It is one long file because the order
of the steps is its subject: what a run resumes has to be read beside what it began.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from imprint import clock, touch
from imprint.errors import ImprintError, IntegrityError
from imprint.hints import helps
from imprint.last_words import decisive_line, why_it_ended
from imprint.paths import Home
from imprint.quoting import typed
from imprint.runtime.check.children import ask_child, child_arguments, child_environment
from imprint.runtime.checkpoint import reached
from imprint.runtime.distributions import claims, inventory
from imprint.runtime.distributions.claims import Ground, Skipped
from imprint.runtime.distributions.metadata import InstalledDistribution, read_held
from imprint.runtime.distributions.pins import render_lock
from imprint.runtime.distributions.unused import Need, left_out
from imprint.runtime.events import Event, OnEvent
from imprint.runtime.foreign import contents, journal, judging, leftovers, occupancy, placing, staging
from imprint.runtime.foreign.environment import read_only
from imprint.runtime.foreign.inplace_plan import InplacePlan, prepare, prepare_again
from imprint.runtime.foreign.journal import Journal, Receipt, Store
from imprint.runtime.foreign.placing import Change, Going
from imprint.runtime.foreign.replacement import refuse_out_of_range
from imprint.runtime.installer import space
from imprint.runtime.installer.uv import Uv
from imprint.runtime.interrupts import FINISH
from imprint.state.files import raise_for_write

__all__ = ["POINTS", "InplaceOutcome", "InplacePlan", "apply", "is_interrupted", "prepare", "read_receipt"]

POINTS = (
    "inplace-held",
    "inplace-recovered",
    "inplace-staged",
    "inplace-judged",
    "inplace-journalled",
    "inplace-libraries",
    "inplace-switched",
    "inplace-removed",
    "inplace-swept",
    "inplace-proved",
    "inplace-receipt",
    "inplace-finished",
)
"""Every point of a change at which a crash matters, in order, as `checkpoint.reached` names them."""

LOAD_SECONDS = 120.0
"""A first import from a cold network disk takes tens of seconds; only one that hangs takes longer."""

_AS_IT_WAS = "nothing was changed"


@dataclass(frozen=True, slots=True)
class InplaceOutcome:
    """What was done. `plan` is what was followed, which is newer than the one that was asked for when things moved.

    `removed` are the names that are gone, for the cache; `left_out` is what an installed package requires and our locks
    leave out on purpose; `skipped` are rows in the RECORDs of what was removed that were not its own files and stay;
    `package`, `version` and `file` are what the environment loads, None when nothing had to be proved.
    """

    plan: InplacePlan
    changed: bool
    removed: tuple[str, ...] = ()
    left_out: tuple[Need, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    package: str | None = None
    version: str | None = None
    file: str | None = None


def apply(
    prepared: InplacePlan, uv: Uv, on_event: OnEvent, *, wait_seconds: float = occupancy.WAIT_SECONDS
) -> InplaceOutcome:
    """Do what was prepared, after a second look, and return what was done. The caller holds the mutex.

    Ends with exactly the planned build, loaded and recorded, or with an error; then the environment is untouched, or
    a journal lets the next run finish. Raises as `Uv.install` does, NotOursError when something would be overwritten
    that is somebody else's, IntegrityError when what was installed does not load, and BusyError when another run
    changes the environment for longer than `wait_seconds`.
    """
    if not prepared.pending:
        return InplaceOutcome(prepared, changed=False)
    store = journal.store_of(prepared.asked.home, prepared.environment.prefix)
    try:
        with occupancy.hold(prepared.environment.prefix, wait_seconds):
            return _apply(prepared, store, uv, on_event)
    except BrokenPipeError:
        # Of whoever listens, not of a file.
        raise
    except OSError as error:
        raise_for_write(Path(os.fsdecode(error.filename or prepared.environment.packages)), error)


def is_interrupted(home: Home, prefix: Path) -> bool:
    """Whether a run that changed the environment at `prefix` did not end; a new `setup --venv` finishes it."""
    return journal.read_journal(journal.store_of(home, prefix)) is not None


def read_receipt(home: Home, prefix: Path) -> Receipt | None:
    """Return what our last finished run left in the environment at `prefix`, None when there was none."""
    return journal.read_receipt(journal.store_of(home, prefix))


def _apply(prepared: InplacePlan, store: Store, uv: Uv, on_event: OnEvent) -> InplaceOutcome:
    reached("inplace-held")
    environment = prepared.environment
    staging.sweep(environment.prefix, environment.packages)
    fresh = prepare_again(prepared.asked)
    reached("inplace-recovered")
    if not fresh.pending:
        return InplaceOutcome(fresh, changed=False)
    _try_to_write(fresh.environment.packages)
    outcome, left = _change(fresh, store, uv, on_event)
    if not left.pending:
        return outcome
    # What a build requires is known only once its metadata is whole.
    further, _ = _change(left, store, uv, on_event)
    changes = (*outcome.plan.replacement.changes, *further.plan.replacement.changes)
    return replace(
        outcome,
        plan=replace(outcome.plan, replacement=replace(outcome.plan.replacement, changes=changes)),
        removed=tuple(sorted({*outcome.removed, *further.removed})),
        skipped=(*outcome.skipped, *further.skipped),
    )


def _change(plan: InplacePlan, store: Store, uv: Uv, on_event: OnEvent) -> tuple[InplaceOutcome, InplacePlan]:
    """Carry one plan out; return the outcome, and what is to be done then."""
    with staging.folder_for(plan.environment.prefix, plan.environment.packages) as folder:
        return _Change(plan, store, uv, on_event, folder).to_the_end()


@dataclass(slots=True)
class _Change:
    """One change of one environment, under its lock. `folder` is ours, on the environment's disk, for this change."""

    plan: InplacePlan
    store: Store
    uv: Uv
    on_event: OnEvent
    folder: Path

    def to_the_end(self) -> tuple[InplaceOutcome, InplacePlan]:
        """Carry the plan out; return the outcome, and what is to be done then."""
        plan, store = self.plan, self.store
        staged, packages = self._stage() if plan.replacement.install else ((), self.folder)
        reached("inplace-staged")
        trash = self.folder / "trash"
        touch.make_folder(trash, within=self.folder)
        change = self._judge([(found, packages) for found in staged], trash)
        reached("inplace-judged")
        intent = self._intent(change)
        journal.write_journal(store, intent)
        reached("inplace-journalled")
        try:
            self._replace(change, intent)
            left, loaded = self._prove()
        except Exception as error:
            raise self._undone(change, error) from error
        reached("inplace-proved")
        self._record()
        reached("inplace-receipt")
        journal.finish(store)
        reached("inplace-finished")
        outcome = InplaceOutcome(
            plan=plan,
            changed=True,
            removed=intent.uninstall,
            left_out=left_out(staged, self._staying(), plan.environment.markers),
            skipped=change.skipped,
            package=loaded["package"],
            version=loaded["version"],
            file=loaded["file"],
        )
        return outcome, left

    def _judge(self, staged: Sequence[tuple[InstalledDistribution, Path]], trash: Path) -> Change:
        """Judge what would be touched. What was seen of the wheels is kept where that is refused."""
        plan = self.plan
        left = plan.journal.files if plan.journal is not None else ()
        try:
            return judging.judge(self._ground, plan.held, plan.replacement.uninstall, staged, trash=trash, left=left)
        except ImprintError:
            contents.keep(self.store, staged, self._ground)
            raise

    def _undone(self, change: Change, error: Exception) -> Exception:
        """Put everything back after a failure midway, and return the error that says so."""
        try:
            placing.undo(change)
            if self.plan.journal is None:
                journal.finish(self.store)
            else:
                journal.write_journal(self.store, self.plan.journal)
        except (OSError, ImprintError):
            # The journal stays, and the next run goes on from here.
            ending, hint = "the change is half done", helps(FINISH)
        else:
            ending = _AS_IT_WAS
            hint = helps("what-prevents-it")
        if isinstance(error, ImprintError):
            error.message, error.hint = f"{error.message}; {ending}", hint if ending != _AS_IT_WAS else error.hint
            return error
        if not isinstance(error, OSError) or error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EPIPE}:
            return error
        named = error.filename or self.plan.environment.packages
        why = (error.strerror or str(error)).lower()
        return ImprintError(
            f"`{os.fsdecode(named)}` cannot be replaced: {why}; {ending}",
            hint=hint,
            code="environment-read-only",
        )

    @property
    def _ground(self) -> Ground:
        return claims.ground_of(self.plan.environment.prefix, self.plan.environment.packages)

    def _stage(self) -> tuple[tuple[InstalledDistribution, ...], Path]:
        """Unpack what will be installed beside the environment, and see that it fits and loads."""
        self._say("start", "download", "downloading the packages")
        lock = self.folder / "install.txt"
        touch.write_file(lock, render_lock(self.plan.replacement.install).encode(), within=self.folder, durable=False)
        staged, packages = self._unpack(lock, "first")
        if damaged := sorted({found.name for found in staged if found.problems}):
            # A file of the cache was changed in place.
            self._say("warning", "verify", f"the cache contains a damaged {', '.join(damaged)}; downloading it again")
            self.uv.clean(damaged)
            staged, packages = self._unpack(lock, "again")
        if damaged := sorted({found.name for found in staged if found.problems}):
            raise IntegrityError(f"the download is damaged: {', '.join(damaged)}", hint=helps("again-nothing-changed"))
        self._refuse_misfit(staged)
        return staged, packages

    def _unpack(self, lock: Path, name: str) -> tuple[tuple[InstalledDistribution, ...], Path]:
        plan, folder = self.plan, self.folder / name
        # A plan in which the build stays has no size: what is missing then is small, or not known.
        needed = plan.asked.plan.installed_bytes
        total = plan.asked.on_disk_bytes or needed or None
        if needed is not None:
            stays = {pin.name for pin in plan.wanted.pins} - {pin.name for pin in plan.replacement.install}
            needed = max(0, needed - sum(found.size for found in plan.held if found.name in stays))
            # Copied, not linked: the environment's disk takes it once more.
            space.require(needed, plan.environment.packages)

        def on_bytes(done: int) -> None:
            shown = done if total is None else min(done, total)
            self.on_event(Event("progress", "download", "downloading and unpacking, on disk so far", shown, total))

        self.uv.install([lock], python=plan.environment.python, prefix=folder, needed=needed, on_bytes=on_bytes)
        seen = inventory.inspect(folder, deep=plan.repairs)
        layout = plan.environment.packages.relative_to(plan.environment.prefix)
        if seen.packages is None or seen.packages.relative_to(folder) != layout:
            raise IntegrityError(f"the installer put nothing into `{layout}`", hint=helps("again-nothing-changed"))
        runtime = plan.wanted.runtime
        if any(pin.name == runtime.name for pin in plan.replacement.install) and not seen.problems:
            self._say("start", "verify", "loading ONNX Runtime before anything is changed")
            _load(plan, beside=seen.packages)
        return read_held(seen), seen.packages

    def _refuse_misfit(self, staged: Sequence[InstalledDistribution]) -> None:
        """Refuse what only the wheels themselves tell: what the build requires of others."""
        plan = self.plan
        runtime = plan.wanted.runtime
        coming = {found.name for found in staged}
        for found in staged:
            if found.name == runtime.name:
                build = f"{runtime.name} {runtime.version}"
                refuse_out_of_range(found.requires, plan.held, coming, build, plan.environment.markers)

    def _intent(self, change: Change) -> Journal:
        plan = self.plan
        decided, before = plan.replacement, plan.journal
        planned = {pin.name for pin in plan.wanted.pins}
        unrecorded = [found.name for found in plan.held if found.name in decided.uninstall and not found.files]
        folders = {folder for name in unrecorded for folder in claims.folders_of(name)}
        if plan.leftovers:
            folders.add(leftovers.RUNTIME_FOLDER)
        return Journal(
            build=plan.asked.plan.build or "",
            version=plan.wanted.runtime.version,
            since=clock.now(),
            uninstall=tuple(sorted({*decided.uninstall, *(before.uninstall if before else ())} - planned)),
            install={**(before.install if before else {}), **{pin.name: pin.version for pin in decided.install}},
            files=tuple(sorted({*change.paths, *plan.leftovers, *(before.files if before else ())})),
            folders=tuple(sorted(folders | (set(before.folders if before else ()) - {leftovers.RUNTIME_FOLDER}))),
            kept=plan.kept,
            repair=plan.repairs,
        )

    def _replace(self, change: Change, intent: Journal) -> None:
        self._say("start", "install", "changing the environment")
        builds = [found for found in change.going if found.is_build]
        runtimes = [found for found in change.coming if found.is_build]
        done: list[Going] = []
        for coming in change.coming:
            if not coming.is_build:
                replaced = [found for found in change.going if found.name == coming.name]
                placing.put_in(change, coming, replaced)
                done += replaced
        reached("inplace-libraries")
        for coming in runtimes:
            placing.put_in(change, coming, builds)
            done += builds
        reached("inplace-switched")
        for going in change.going:
            if not any(going is found for found in done):
                placing.take_out(change, going)
        reached("inplace-removed")
        now = claims.claims_of(read_held(inventory.inspect(self.plan.environment.prefix)), self._ground)
        rests = leftovers.find(self._ground, intent.folders, intent.files, now)
        kept = {self._ground.place(path) for path in intent.kept}
        placing.discard(change, [place for place in rests if place not in kept])
        reached("inplace-swept")

    def _prove(self) -> tuple[InplacePlan, Mapping[str, Any]]:
        """Return what is left to do, which may be libraries that nothing needs any more, and what is loaded."""
        self._say("start", "verify", "loading what was installed")
        again = replace(prepare_again(self.plan.asked, repair=False), journal=None, staged=False)
        wrong = [change for change in again.replacement.changes if change.to is not None]
        wrong += [change for change in again.replacement.changes if change.name in self.plan.replacement.uninstall]
        if wrong or again.leftovers:
            names = [f"{change.name} ({change.why})" for change in wrong] or list(again.leftovers)
            raise IntegrityError(
                f"the environment is not what was installed: {', '.join(names[:3])}",
                hint=helps("again-something-else"),
            )
        return again, _load(self.plan)

    def _record(self) -> None:
        plan = self.plan
        now = {found.name: found.version for found in read_held(inventory.inspect(plan.environment.prefix))}
        ours = {
            **(plan.receipt.installed if plan.receipt else {}),
            **(plan.journal.install if plan.journal else {}),
            **{pin.name: pin.version for pin in plan.replacement.install},
        }
        journal.write_receipt(
            self.store,
            Receipt(
                build=plan.asked.plan.build or "",
                version=plan.wanted.runtime.version,
                lock=plan.asked.locks[0].name,
                since=clock.now(),
                installed={name: version for name, version in sorted(ours.items()) if now.get(name) == version},
            ),
        )

    def _staying(self) -> set[str]:
        return {found.name for found in self.plan.held} - set(self.plan.replacement.uninstall)

    def _say(self, event: str, step: str, message: str) -> None:
        self.on_event(Event(event, step, message))


def _load(plan: InplacePlan, beside: Path | None = None) -> Mapping[str, Any]:
    """Load ONNX Runtime in a child and return what it says; raise IntegrityError when it is not the planned build."""
    environment, runtime = plan.environment, plan.wanted.runtime
    argv = child_arguments(environment.python, "load", "" if beside is None else os.fspath(beside))
    environ = child_environment(plan.asked.host.environ)
    ended, facts = ask_child(argv, environ, LOAD_SECONDS)
    problem = None
    if not facts.get("complete"):
        problem = "it did not finish in time" if ended.timed_out else why_it_ended(ended.returncode, ended.stderr)
    build = facts.get("build") or {}
    expected = beside if beside is not None else environment.packages
    if problem is None and facts.get("error"):
        problem = decisive_line(str(facts["error"]))
    elif problem is None and (build["file"] is None or not _is_below(build["file"], expected)):
        problem = f"it is loaded from `{build['file']}`"
    elif problem is None and (build["package"], build["version"]) != (runtime.name, runtime.version):
        problem = f"it says it is {build['package']} {build['version']}"
    if problem is None:
        return build
    where = ", so nothing was changed" if beside is not None else f" in `{environment.prefix}`"
    raise IntegrityError(
        f"{runtime.name} {runtime.version} does not load{where}: {problem}",
        hint=helps("run-to-see-what", command=typed("imprint", "doctor", "--venv", environment.prefix)),
    )


def _is_below(path: str, folder: Path) -> bool:
    # The owner may have moved the package away and left a link to it.
    return any(Path(way(path)).is_relative_to(way(folder)) for way in (os.path.realpath, os.path.abspath))


def _try_to_write(packages: Path) -> None:
    """Refuse a folder that only looks writable, such as one that is immutable."""
    try:
        touch.remove_tree(touch.new_folder(".imprint-", within=packages), within=packages)
    except OSError as error:
        raise read_only(packages) from error
