"""Somebody's own environment as a place: changed in place, resumably, then checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from imprint.paths import Home
from imprint.planning.builds import BuildTable
from imprint.planning.model import Plan
from imprint.probing.this_machine import RealHost
from imprint.runtime.distributions.claims import Skipped
from imprint.runtime.distributions.embedding_needs import BASE_LOCK
from imprint.runtime.distributions.unused import Need
from imprint.runtime.events import Event, OnEvent
from imprint.runtime.foreign import inplace
from imprint.runtime.foreign.inplace import InplaceOutcome, InplacePlan
from imprint.runtime.foreign.target import environment_target, find_environment
from imprint.runtime.installer.uv import Uv
from imprint.runtime.place import Carried, Changed, Check, EnvironmentChanges
from imprint.runtime.target import Target
from imprint.state.findings import UNHEARD, Findings


class ForeignPlace:
    """The environment at `prefix`. `builds` names what its files are; `outcomes` are the changes of this run."""

    rebuilds = False

    def __init__(
        self,
        prefix: Path,
        home: Home,
        environ: Mapping[str, str],
        builds: BuildTable,
        lock_path: Callable[[str], Path],
    ) -> None:
        self.prefix = prefix.expanduser().absolute()
        self.home, self.environ, self.builds, self.lock_path = home, environ, builds, lock_path
        self.outcomes: list[InplaceOutcome] = []

    def current(self, findings: Findings = UNHEARD) -> Target:
        """See Place."""
        return find_environment(self.prefix, self.home, self.environ, self.builds, findings)

    def recover(self) -> None:
        """See Place: what a killed run left in it is finished by `carry_out`, under its own lock."""

    def compare(self, plan: Plan, *, needed: int | None, repair: bool, findings: Findings = UNHEARD) -> ForeignChange:
        """See Place."""
        del needed  # it depends on what is there, and is found with that
        locks = (self.lock_path(plan.lock or ""), self.lock_path(BASE_LOCK))
        host = RealHost(self.environ)
        prepared = inplace.prepare(
            self.prefix, plan, self.home, host=host, locks=locks, repair=repair, findings=findings
        )
        return ForeignChange(self, plan, prepared)

    def adopt(self, whole: Target) -> Target:
        """See Place: it is current where it is."""
        return whole

    def changed(self, before: Target | None, after: Target | None) -> tuple[Changed, ...]:
        """See Place: also what a single change installed anew."""
        del before, after
        first: dict[str, str | None] = {}
        last: dict[str, str | None] = {}
        for outcome in self.outcomes:
            for change in outcome.plan.replacement.changes:
                first.setdefault(change.name, change.from_)
                last[change.name] = change.to
        once = len(self.outcomes) == 1
        names = [name for name in sorted(last) if first[name] != last[name] or (once and last[name] is not None)]
        return tuple(Changed(name, first[name], last[name]) for name in names)

    def keeps(self, before: Target | None, after: Target | None) -> bool:
        """See Place: of the managed target nothing changes."""
        del before, after
        return True

    def details(self) -> EnvironmentChanges | None:
        """See Place."""
        return self.outcomes[0].plan.details if self.outcomes else None

    def left_out(self) -> list[Need]:
        """See Place."""
        return [need for outcome in self.outcomes for need in outcome.left_out]

    def skipped(self) -> list[Skipped]:
        """See Place."""
        return [row for outcome in self.outcomes for row in outcome.skipped]


class ForeignChange:
    """What a plan changes in an environment. See Change."""

    replaces = None

    def __init__(self, place: ForeignPlace, plan: Plan, prepared: InplacePlan) -> None:
        self.place, self.plan, self.prepared = place, plan, prepared

    @property
    def whole(self) -> Target | None:
        """The environment as it is, where nothing is to be installed or removed."""
        if self.prepared.pending:
            return None
        return environment_target(self.place.home, self.place.prefix, self.place.builds)

    @property
    def interrupted(self) -> bool:
        """See Change."""
        return self.prepared.interrupted

    @property
    def names(self) -> frozenset[str]:
        """See Change."""
        return self.install.union(self.prepared.replacement.uninstall)

    @property
    def install(self) -> frozenset[str]:
        """See Change."""
        return frozenset(pin.name for pin in self.prepared.replacement.install)

    @property
    def changes(self) -> tuple[Changed, ...]:
        """See Change."""
        return tuple(Changed(one.name, one.from_, one.to) for one in self.prepared.replacement.changes)

    def expect(self, download: int | None, on_disk: int | None) -> None:
        """See Change."""
        self.prepared = self.prepared.expecting(download, on_disk)

    def carry_out(self, uv: Uv, check: Check, on_event: OnEvent) -> Carried:
        """Change the environment, then check it; what it holds then stays, whatever the check says."""
        outcome = inplace.apply(self.prepared, uv, on_event)
        self.place.outcomes.append(outcome)
        if outcome.changed:
            count = len(outcome.plan.replacement.changes)
            what = "1 change" if count == 1 else f"{count} changes"
            on_event(Event("done", "install", f"{what} in `{self.place.prefix}`"))
        target = environment_target(self.place.home, self.place.prefix, self.place.builds)
        return Carried(target, check(target.python, self.plan.device, self.place.environ), made=True)

    @property
    def details(self) -> EnvironmentChanges:
        """See Change."""
        return self.prepared.details
