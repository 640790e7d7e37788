"""Changes somebody's own environment to exactly the planned build of ONNX Runtime, in an order that can be resumed.

Everything is downloaded, unpacked and loaded beside the environment before it is touched. Then a journal says what is
meant; one uninstall, one offline install and a proof follow; a receipt replaces the journal. A run that finds a
journal finishes what it says, whatever is planned now.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from imprint.errors import ImprintError, IntegrityError
from imprint.paths import Home
from imprint.runtime import inventory, journal, leftovers, space
from imprint.runtime.checkpoint import reached
from imprint.runtime.environment import Environment, read_only
from imprint.runtime.events import Event, OnEvent
from imprint.runtime.inplace_plan import InplacePlan, prepare, prepare_again
from imprint.runtime.inplace_uv import install, uninstall
from imprint.runtime.inside import child_arguments, child_environment
from imprint.runtime.journal import Journal, Receipt, Store
from imprint.runtime.metadata import Held, read_held
from imprint.runtime.pins import render_lock
from imprint.runtime.replacement import refuse_out_of_range
from imprint.runtime.unused import Need, left_out
from imprint.runtime.uv import Uv
from imprint.state.files import raise_for_write

__all__ = ["POINTS", "InplaceOutcome", "InplacePlan", "apply", "is_interrupted", "prepare", "read_receipt"]

POINTS = (
    "inplace-held",
    "inplace-recovered",
    "inplace-staged",
    "inplace-kept",
    "inplace-journalled",
    "inplace-uninstalled",
    "inplace-swept",
    "inplace-installed",
    "inplace-restored",
    "inplace-proved",
    "inplace-receipt",
    "inplace-finished",
)
"""Every point of a change at which a crash matters, in order, as `checkpoint.reached` names them."""

LOAD_SECONDS = 120.0
"""A first import from a cold network disk takes tens of seconds; only one that hangs takes longer."""

_CHILD = Path(__file__).with_name("load_child.py")


@dataclass(frozen=True, slots=True)
class InplaceOutcome:
    """What was done. `plan` is what was followed, which is newer than the one that was asked for when things moved.

    `removed` are the names that are gone, for the cache; `left_out` is what an installed package requires and our locks
    leave out on purpose; `package`, `version` and `file` are what the environment
    loads, None when nothing had to be proved.
    """

    plan: InplacePlan
    changed: bool
    removed: tuple[str, ...] = ()
    left_out: tuple[Need, ...] = ()
    package: str | None = None
    version: str | None = None
    file: str | None = None


def apply(prepared: InplacePlan, uv: Uv, on_event: OnEvent) -> InplaceOutcome:
    """Do what was prepared, after a second look, and return what was done. The caller holds the mutex.

    Ends with exactly the planned build, loaded and recorded, or with an error; then the environment is untouched, or
    a journal lets the next run finish. Raises as `Uv.install` does, IntegrityError when what was installed does not
    load, and BusyError when an installer of a killed run does not end.
    """
    if not prepared.pending:
        return InplaceOutcome(prepared, changed=False)
    store = journal.store_of(prepared.asked.home, prepared.environment.prefix)
    try:
        return _apply(prepared, store, uv, on_event)
    except BrokenPipeError:
        # Of whoever listens, not of a file.
        raise
    except OSError as error:
        raise_for_write(Path(os.fsdecode(error.filename or store.folder)), error)


def is_interrupted(home: Home, prefix: Path) -> bool:
    """Whether a run that changed the environment at `prefix` did not end; a new `setup --venv` finishes it."""
    return journal.read_journal(journal.store_of(home, prefix)) is not None


def read_receipt(home: Home, prefix: Path) -> Receipt | None:
    """Return what our last finished run left in the environment at `prefix`, None when there was none."""
    return journal.read_receipt(journal.store_of(home, prefix))


def _apply(prepared: InplacePlan, store: Store, uv: Uv, on_event: OnEvent) -> InplaceOutcome:
    with journal.hold(store) as descriptor:
        reached("inplace-held")
        _recover(store, prepared.environment)
        fresh = prepare_again(prepared.asked)
        reached("inplace-recovered")
        if not fresh.pending:
            return InplaceOutcome(fresh, changed=False)
        return _Change(fresh, store, uv, on_event, descriptor).to_the_end()


def _recover(store: Store, environment: Environment) -> None:
    """Put back what an interrupted run kept for the owner; the rest of that run follows from its journal."""
    journal.sweep_staged(store)
    if journal.read_journal(store) is not None:
        leftovers.put_back(environment.packages, store.kept)
    else:
        shutil.rmtree(store.kept, ignore_errors=True)


@dataclass(slots=True)
class _Change:
    """One change of one environment, under its lock."""

    plan: InplacePlan
    store: Store
    uv: Uv
    on_event: OnEvent
    descriptor: int | None

    def to_the_end(self) -> InplaceOutcome:
        plan, store = self.plan, self.store
        packages = plan.environment.packages
        decided = plan.replacement
        _try_to_write(packages)
        staged = self._stage() if decided.install else ()
        reached("inplace-staged")
        leftovers.keep(packages, decided.shared, store.kept)
        reached("inplace-kept")
        intent = self._intent(staged)
        journal.write_journal(store, intent)
        reached("inplace-journalled")
        self._replace(intent)
        loaded = self._prove()
        reached("inplace-proved")
        self._record()
        reached("inplace-receipt")
        journal.finish(store)
        reached("inplace-finished")
        return InplaceOutcome(
            plan=plan,
            changed=True,
            removed=intent.uninstall,
            left_out=left_out(staged, self._staying(), plan.environment.markers),
            package=loaded["package"],
            version=loaded["version"],
            file=loaded["file"],
        )

    def _stage(self) -> tuple[Held, ...]:
        """Unpack what will be installed beside the environment, and see that it fits and loads."""
        self._say("start", "download", "fetching what is to be installed")
        self.store.lock.write_text(render_lock(self.plan.replacement.install), "utf-8")
        staged = self._unpack()
        if damaged := sorted({found.name for found in staged if found.problems}):
            # A file of the cache was changed in place, through an environment that shares it.
            self._say("warning", "verify", f"the cache holds a damaged {', '.join(damaged)}; fetching it again")
            self.uv.clean(damaged)
            staged = self._unpack()
        if damaged := sorted({found.name for found in staged if found.problems}):
            raise IntegrityError(
                f"what was fetched is damaged: {', '.join(damaged)}", hint="nothing was changed; run it again"
            )
        self._refuse_misfit(staged)
        return staged

    def _unpack(self) -> tuple[Held, ...]:
        # A folder of its own for each try: a download that outlived a killed run may still write into the last one.
        folder = Path(tempfile.mkdtemp(prefix="staged-", dir=self.store.folder))
        # Laid out as on Windows, where the path does not depend on the version, so that it reads like a target.
        packages = folder / "Lib" / "site-packages"
        total = self.plan.download_bytes

        def on_bytes(done: int) -> None:
            self.on_event(Event("progress", "download", "fetching what is to be installed", done, total))

        self.uv.install(
            [self.store.lock],
            python=self.plan.environment.python,
            folder=packages,
            needed=self.plan.asked.plan.installed_bytes,
            on_bytes=on_bytes,
        )
        self._require_space(folder)
        seen = inventory.inspect(folder, deep=self.plan.asked.repair)
        runtime = self.plan.wanted.runtime
        if any(pin.name == runtime.name for pin in self.plan.replacement.install) and not seen.problems:
            self._say("start", "verify", "loading it before anything is changed")
            _load(self.plan, beside=packages)
        return read_held(seen)

    def _require_space(self, staged: Path) -> None:
        packages = self.plan.environment.packages
        if packages.stat().st_dev != staged.stat().st_dev:
            space.require(space.used_by(staged), packages)

    def _refuse_misfit(self, staged: Sequence[Held]) -> None:
        """Refuse what only the wheels themselves tell: what they require, and files that the owner's have too."""
        plan = self.plan
        runtime = plan.wanted.runtime
        coming = {found.name for found in staged}
        for found in staged:
            if found.name == runtime.name:
                build = f"{runtime.name} {runtime.version}"
                refuse_out_of_range(found.requires, plan.held, coming, build, plan.environment.markers)
        touched = {*plan.replacement.uninstall, *coming}
        theirs = {
            path: (found, digest)
            for found in plan.held
            if found.name not in touched
            for path, digest in found.files.items()
        }
        for found in staged:
            for path, digest in found.files.items():
                other = theirs.get(path)
                if other is not None and digest and other[1] != digest:
                    raise ImprintError(
                        f"`{found.name}` {found.version} and `{other[0].name}` {other[0].version}, which has to stay, "
                        f"both consist of `{path}`",
                        hint="use another environment for Imprint",
                        code="shared-files",
                    )

    def _intent(self, staged: Sequence[Held]) -> Journal:
        plan = self.plan
        decided, before = plan.replacement, plan.journal
        uninstalled = [found for found in plan.held if found.name in decided.uninstall]
        planned = {pin.name for pin in plan.wanted.pins}
        unrecorded = [found.name for found in uninstalled if "no-record" in found.problems]
        folders = {leftovers.RUNTIME_FOLDER} | {folder for name in unrecorded for folder in leftovers.folders_of(name)}
        return Journal(
            build=plan.asked.plan.build or "",
            version=plan.wanted.runtime.version,
            since=_now(),
            uninstall=tuple(sorted({*decided.uninstall, *(before.uninstall if before else ())} - planned)),
            install={**(before.install if before else {}), **{pin.name: pin.version for pin in decided.install}},
            files=_paths((*uninstalled, *staged), before.files if before else ()),
            folders=tuple(sorted(folders | set(before.folders if before else ()))),
        )

    def _replace(self, intent: Journal) -> None:
        plan = self.plan
        decided, packages = plan.replacement, plan.environment.packages
        self._say("start", "install", "changing the environment")
        going = [found for found in plan.held if found.name in decided.uninstall]
        uninstall(self.uv, plan.environment.python, going, self.descriptor)
        reached("inplace-uninstalled")
        leftovers.remove_metadata(packages, going)
        leftovers.remove_unclaimed(packages, intent.folders, intent.files)
        reached("inplace-swept")
        if decided.install:
            install(self.uv, plan.environment.python, self.store.lock, self.descriptor)
        reached("inplace-installed")
        leftovers.put_back(packages, self.store.kept)
        reached("inplace-restored")

    def _prove(self) -> Mapping[str, Any]:
        self._say("start", "verify", "loading what was installed")
        again = prepare_again(replace(self.plan.asked, repair=False))
        if not again.replacement.is_empty or again.leftovers:
            names = [f"{change.name} ({change.why})" for change in again.replacement.changes] or list(again.leftovers)
            raise IntegrityError(
                f"the environment is not what was installed: {', '.join(names[:3])}",
                hint="something else changes it at the same time; run the same command again",
            )
        return _load(self.plan)

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
                since=_now(),
                installed={name: version for name, version in sorted(ours.items()) if now.get(name) == version},
            ),
        )

    def _staying(self) -> set[str]:
        return {found.name for found in self.plan.held} - set(self.plan.replacement.uninstall)

    def _say(self, event: str, step: str, message: str) -> None:
        self.on_event(Event(event, step, message))


def _paths(touched: Sequence[Held], before: Sequence[str]) -> tuple[str, ...]:
    """Return the files that touched distributions own inside the folder of packages, metadata aside."""
    paths = {
        path for found in touched for path in found.files if not path.startswith("..") and ".dist-info/" not in path
    }
    return tuple(sorted(paths | set(before)))


def _load(plan: InplacePlan, beside: Path | None = None) -> Mapping[str, Any]:
    """Load ONNX Runtime in a child and return what it says; raise IntegrityError when it is not the planned build."""
    environment, runtime = plan.environment, plan.wanted.runtime
    argv = child_arguments(environment.python, _CHILD, *([] if beside is None else [os.fspath(beside)]))
    host = plan.asked.host
    ended = host.run(argv, deadline=LOAD_SECONDS, environ=child_environment(host.environ))
    facts: dict[str, Any] = {}
    problem = None
    try:
        facts = json.loads(ended.stdout.splitlines()[-1])
    except (ValueError, IndexError):
        how = "it did not end in time" if ended.timed_out else f"exit {ended.returncode}"
        last = (ended.stderr.strip().splitlines() or ["no output"])[-1]
        problem = f"{how}: {last[:300]}"
    expected = beside if beside is not None else environment.packages
    if problem is None and facts["error"]:
        problem = str(facts["error"])
    elif problem is None and (facts["file"] is None or not _is_below(facts["file"], expected)):
        problem = f"it is loaded from `{facts['file']}`"
    elif problem is None and (facts["package"], facts["version"]) != (runtime.name, runtime.version):
        problem = f"it says it is {facts['package']} {facts['version']}"
    if problem is None:
        return facts
    where = "before anything was changed" if beside is not None else f"in `{environment.prefix}`"
    raise IntegrityError(
        f"{runtime.name} {runtime.version} does not load {where}: {problem}",
        hint="run `imprint doctor --venv PATH` with that environment to see what is in its way",
    )


def _is_below(path: str, folder: Path) -> bool:
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


def _try_to_write(packages: Path) -> None:
    """Refuse a folder that only looks writable, such as one that is immutable."""
    try:
        descriptor, name = tempfile.mkstemp(prefix=".imprint-", dir=packages)
        os.close(descriptor)
        Path(name).unlink()
    except OSError as error:
        raise read_only(packages) from error


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
