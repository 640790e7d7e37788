"""The managed target as a place: a new generation, proved, then made current by one write."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from imprint.paths import Home
from imprint.planning.model import Device, Plan
from imprint.runtime.events import Event, OnEvent
from imprint.runtime.installer.uv import Uv
from imprint.runtime.managed import deferred, generations, removal
from imprint.runtime.managed.recipe import Recipe, recipe_for
from imprint.runtime.place import Carried, Changed, Check, between
from imprint.runtime.target import Target, current_target, read_pointer
from imprint.state.findings import UNHEARD, Findings

if TYPE_CHECKING:
    from imprint.runtime.distributions.claims import Skipped
    from imprint.runtime.distributions.unused import Need


class ManagedPlace:
    """The generations under a home. With `elsewhere` they are for another machine, where their check is made."""

    prefix = None
    rebuilds = True

    def __init__(
        self, home: Home, environ: Mapping[str, str], lock_path: Callable[[str], Path], *, elsewhere: bool = False
    ) -> None:
        self.home, self.environ, self.lock_path, self.elsewhere = home, environ, lock_path, elsewhere

    def current(self, findings: Findings = UNHEARD) -> Target | None:
        """See Place."""
        return current_target(self.home, findings)

    def recover(self) -> None:
        """See Place."""
        removal.sweep_unfinished(self.home, read_pointer(self.home))

    def compare(self, plan: Plan, *, needed: int | None, repair: bool, findings: Findings = UNHEARD) -> ManagedChange:
        """See Place."""
        recipe = recipe_for(plan, self.lock_path, build_bytes=needed)
        return ManagedChange(self, plan, recipe, current_target(self.home, findings), repair=repair)

    def adopt(self, whole: Target) -> Target:
        """See Place."""
        before = current_target(self.home)
        if (before is not None and whole.generation == before.generation) or whole.manifest is None:
            return before or whole
        # A run that is killed after this has to be recognised by the next: what is left behind may be large.
        deferred.note(self.home, distributions_of(before))
        return generations.point_to(self.home, whole.manifest)

    def changed(self, before: Target | None, after: Target | None) -> tuple[Changed, ...]:
        """See Place."""
        return between(distributions_of(before), distributions_of(after))

    def keeps(self, before: Target | None, after: Target | None) -> bool:
        """See Place: one that is not damaged, and not the same thing again."""
        if before is None or after is None or (before.build, before.version) == (after.build, after.version):
            return before is not None and after is not None and before.generation == after.generation
        return not generations.damage_of(before)

    def details(self) -> None:
        """See Place."""

    def left_out(self) -> list[Need]:
        """See Place."""
        return []

    def skipped(self) -> list[Skipped]:
        """See Place."""
        return []


class ManagedChange:
    """What a plan changes at the managed target. See Change."""

    interrupted = False

    def __init__(self, place: ManagedPlace, plan: Plan, recipe: Recipe, before: Target | None, *, repair: bool) -> None:
        self.place, self.plan, self.recipe, self.before, self.repair = place, plan, recipe, before, repair
        self.faults = generations.faults_of(before, recipe) if before is not None else ()

    @functools.cached_property
    def whole(self) -> Target | None:
        """The current generation, or a finished one that nothing points to."""
        if self.repair:
            return None
        if self.before is not None and not self.faults:
            return self.before
        return generations.find_whole(self.place.home, self.recipe)

    @property
    def replaces(self) -> str | None:
        """See Change."""
        return self.faults[0] if self.faults else None

    @property
    def names(self) -> frozenset[str]:
        """See Change."""
        return frozenset(self._pins)

    @property
    def install(self) -> frozenset[str]:
        """See Change."""
        return frozenset() if self.whole is not None else self.names

    @property
    def changes(self) -> tuple[Changed, ...]:
        """See Change."""
        whole = self.whole
        after = self._pins if whole is None else distributions_of(whole)
        return between(distributions_of(self.before), after)

    def expect(self, download: int | None, on_disk: int | None) -> None:
        """See Change: its recipe has them."""

    def carry_out(self, uv: Uv, check: Check, on_event: OnEvent) -> Carried:
        """Build a generation, check it, and make it current if it passed; else it is removed again."""
        staged = generations.stage(
            self.place.home,
            uv,
            self.recipe,
            device=self._device,
            environ=self.place.environ,
            check=check,
            elsewhere=self.place.elsewhere,
            deep=self.repair,
            on_event=on_event,
        )
        if not staged.check.ok:
            generations.discard(staged)
            return Carried(self.before, staged.check, made=False)
        on_event(Event("start", "switch", "making it current"))
        target = generations.switch(self.place.home, staged)
        on_event(Event("done", "switch", f"{self.recipe.build} {self.recipe.version} is current"))
        return Carried(target, staged.check, made=True)

    @property
    def details(self) -> None:
        """See Change."""

    @functools.cached_property
    def _pins(self) -> Mapping[str, str]:
        # A run that has nothing to change, which is nearly every one, need not load what reads locks.
        from imprint.runtime.distributions.pins import pins_of

        return pins_of(self.recipe.locks)

    @property
    def _device(self) -> Device | None:
        # Of another machine's GPU nothing can be proved here, but the build has to load and compute.
        return None if self.place.elsewhere else self.plan.device


def distributions_of(target: Target | None) -> Mapping[str, str]:
    """Return what a managed target holds, versions by name."""
    return target.manifest.distributions if target is not None and target.manifest is not None else {}
