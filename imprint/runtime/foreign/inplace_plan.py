"""Works out what has to change in somebody's own environment for a plan, as plain data; changes nothing."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from imprint import resources
from imprint.errors import ImprintError
from imprint.paths import Home
from imprint.planning.model import Plan
from imprint.probing.host import Host
from imprint.probing.this_machine import RealHost
from imprint.runtime.distributions import claims, inventory
from imprint.runtime.distributions.claims import Ground
from imprint.runtime.distributions.metadata import InstalledDistribution, read_held
from imprint.runtime.distributions.own_metadata import refuse_others
from imprint.runtime.distributions.pins import applying, read_lock
from imprint.runtime.distributions.shipped import Shipped, read_shipped
from imprint.runtime.distributions.unused import Known
from imprint.runtime.foreign import contents, journal, judging, leftovers, staging
from imprint.runtime.foreign.environment import Environment, look_at, refuse_read_only
from imprint.runtime.foreign.journal import Journal, Receipt
from imprint.runtime.foreign.replacement import Replacement, Wanted, decide_replacement
from imprint.runtime.place import EnvironmentChanges
from imprint.state.findings import UNHEARD, Findings


@dataclass(frozen=True, slots=True)
class ChangeRequest:
    """What `prepare` was asked: everything that is needed to look again, and the sizes that were told."""

    prefix: Path
    plan: Plan
    home: Home
    host: Host
    locks: tuple[Path, ...]
    shipped: Shipped
    repair: bool = False
    download_bytes: int | None = None
    on_disk_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class InplacePlan:
    """What will be done to an environment; nothing has been done yet.

    `download_bytes` is what a download takes at most, None where unknown; `removed_bytes` the size of what goes.
    `interrupted` tells that an earlier run was, and that this one finishes it. `leftovers` are files that no
    distribution claims in the folder of ONNX Runtime and that are rests of a build, `kept` those that are the owner's;
    `staged` tells that a killed run left what it had unpacked.
    """

    asked: ChangeRequest = field(repr=False)
    environment: Environment
    wanted: Wanted
    held: tuple[InstalledDistribution, ...] = field(repr=False)
    replacement: Replacement
    leftovers: tuple[str, ...]
    journal: Journal | None
    receipt: Receipt | None
    download_bytes: int | None
    removed_bytes: int = 0
    kept: tuple[str, ...] = ()
    staged: bool = False

    @property
    def interrupted(self) -> bool:
        """Whether an earlier run did not end."""
        return self.journal is not None

    @property
    def pending(self) -> bool:
        """Whether there is anything to do."""
        return self.interrupted or not self.replacement.is_empty or bool(self.leftovers) or self.staged

    @property
    def repairs(self) -> bool:
        """Whether every hash is compared: that was asked for, or an interrupted run was doing so."""
        return self.asked.repair or (self.journal is not None and self.journal.repair)

    def expecting(self, download_bytes: int | None, on_disk_bytes: int | None) -> InplacePlan:
        """Return the plan with what is downloaded for it at most, the model too, and what that takes on disk."""
        asked = replace(self.asked, download_bytes=download_bytes, on_disk_bytes=on_disk_bytes)
        return replace(self, asked=asked, download_bytes=download_bytes)

    @property
    def details(self) -> EnvironmentChanges:
        """The changes, as they are shown."""
        return EnvironmentChanges(
            environment=os.fspath(self.environment.prefix),
            changes=self.replacement.changes,
            requirers=self.replacement.requirers,
            stays=self.replacement.stays,
            leftovers=self.leftovers,
            interrupted=self.interrupted,
            download_bytes=self.download_bytes,
            removed_bytes=self.removed_bytes,
        )


def prepare(  # noqa: PLR0913 - all but the first three are keywords
    prefix: Path,
    plan: Plan,
    home: Home,
    *,
    host: Host | None = None,
    locks: Sequence[Path] | None = None,
    shipped: Shipped | None = None,
    repair: bool = False,
    findings: Findings = UNHEARD,
) -> InplacePlan:
    """Return what has to be done so that the environment at `prefix` holds exactly the build that `plan` names.

    Changes nothing. `locks` are the plan's own unless given; with `repair` every file's hash is compared, and the
    build and its libraries are installed anew. `findings` are told of damaged records. Raises ImprintError with the
    reason when the environment is refused.
    """
    if plan.build is None or plan.lock is None:
        raise ImprintError(plan.reason, hint=plan.hint, code=plan.code)
    found = prepare_again(
        ChangeRequest(
            prefix=prefix,
            plan=plan,
            home=home,
            host=host if host is not None else RealHost(),
            locks=tuple(locks) if locks is not None else (resources.lock_path(plan.lock),),
            shipped=shipped if shipped is not None else read_shipped(),
            repair=repair,
        ),
        findings,
    )
    _foresee(found)
    return found


def _foresee(plan: InplacePlan) -> None:
    """Raise ImprintError where it is known already that what comes cannot be put in."""
    environment, decided = plan.environment, plan.replacement
    ground = claims.ground_of(environment.prefix, environment.packages)
    store = journal.store_of(plan.asked.home, environment.prefix)
    coming = contents.known(decided.install, plan.asked.shipped.brings, store, ground)
    judging.foresee(ground, plan.held, decided.uninstall, coming, left=plan.journal.files if plan.journal else ())


def prepare_again(asked: ChangeRequest, findings: Findings = UNHEARD, *, repair: bool = True) -> InplacePlan:
    """Return what has to be done now for what was asked before; without `repair` nothing is installed anew."""
    environment = look_at(asked.prefix, asked.home, asked.host)
    store = journal.store_of(asked.home, environment.prefix)
    interrupted = journal.read_journal(store, findings)
    receipt = journal.read_receipt(store, findings)
    repair = repair and (asked.repair or (interrupted is not None and interrupted.repair))
    seen = inventory.inspect(environment.prefix, deep=repair)
    held = read_held(seen)
    pins = applying([pin for lock in asked.locks for pin in read_lock(lock)], environment.markers)
    wanted = Wanted(pins, repair=repair)
    build = f"{wanted.runtime.name}=={wanted.runtime.version}"
    wanted = replace(wanted, requires=asked.shipped.requires.get(build, ()))
    known = Known(
        ever=asked.shipped.ever,
        elsewhere=asked.shipped.elsewhere,
        receipt={**(receipt.installed if receipt else {}), **(interrupted.install if interrupted else {})},
        marked=frozenset(interrupted.uninstall if interrupted else ()),
    )
    ground = claims.ground_of(environment.prefix, environment.packages)
    rests, kept = _rests(ground, held, interrupted)
    decided = decide_replacement(held, seen.runtime, replace(wanted, rests=rests[:1]), known, environment.markers)
    touched = [found for found in held if found.name in decided.uninstall]
    refuse_read_only(environment, ground, touched)
    refuse_others(ground, held, decided.uninstall, decided.install)
    return InplacePlan(
        asked=asked,
        environment=environment,
        wanted=wanted,
        held=held,
        replacement=decided,
        leftovers=rests,
        kept=kept,
        journal=interrupted,
        receipt=receipt,
        download_bytes=(asked.download_bytes or asked.plan.download_bytes) if decided.install else 0,
        removed_bytes=_size_of(ground, touched),
        staged=staging.is_left(environment.prefix, environment.packages),
    )


def _size_of(ground: Ground, going: Iterable[InstalledDistribution]) -> int:
    """Return the bytes of the files of distributions, a file that several list or link to counted once."""
    sizes: dict[tuple[int, int], int] = {}
    for place in {ground.place(path) for found in going for path in found.files} - {None}:
        with contextlib.suppress(OSError):
            status = os.lstat(os.fspath(place or ""))
            sizes[status.st_dev, status.st_ino] = status.st_size
    return sum(sizes.values())


def _rests(
    ground: Ground, held: Sequence[InstalledDistribution], interrupted: Journal | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return which unclaimed files in the folder of ONNX Runtime are rests of a build, and which are the owner's.

    Beside one whole build nothing speaks for a rest. Beside two, or a damaged one, an unclaimed file is what one left
    that was written over, unless it was there before a change of ours that was interrupted.
    """
    builds = [found for found in held if found.is_build]
    if not builds and interrupted is None:
        return (), ()
    found = leftovers.unclaimed(ground, (leftovers.RUNTIME_FOLDER,), claims.claims_of(held, ground))
    found = tuple(path for path in found if not path.endswith(".pyc"))
    if len(builds) == 1 and not builds[0].problems:
        return (), found
    kept = interrupted.kept if interrupted is not None else ()
    return tuple(path for path in found if path not in kept), tuple(path for path in found if path in kept)
