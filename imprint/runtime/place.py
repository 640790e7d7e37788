"""Where a runtime is provisioned, as one small protocol: the managed target, and somebody's own environment.

Setup drives either in the same way: what is there (`current`), what a plan would change (`compare`), the change itself
(`carry_out`, with the check at the right moment of it), and what was changed in the end. The caller holds the mutex.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from imprint.planning.model import Device, Plan
from imprint.runtime.check.result import CheckResult
from imprint.runtime.events import OnEvent
from imprint.runtime.target import Target
from imprint.state.findings import UNHEARD, Findings
from imprint.values import Record

if TYPE_CHECKING:
    from imprint.runtime.distributions.claims import Skipped
    from imprint.runtime.distributions.unused import Need
    from imprint.runtime.installer.uv import Uv

Check = Callable[[Path, Device | None, Mapping[str, str]], CheckResult]
"""Runs the check with an interpreter, on a device (None: the CPU), in an environment."""


class Changed(Record):
    """One distribution that is different: its versions before and after, None where it is not there."""

    name: str
    from_: str | None
    to: str | None


class Replaced(Record):
    """One distribution of an environment that comes, goes or is replaced, as in `Changed`, and why."""

    name: str
    from_: str | None
    to: str | None
    why: str


class Requirer(Record):
    """A distribution of the owner's that requires ONNX Runtime, in its own words, and what it will get instead.

    `satisfied` tells whether the version is one it accepts; `same_name` whether installers will see it as satisfied.
    """

    name: str
    version: str | None
    requires: str
    gets: str
    satisfied: bool
    same_name: bool


class Stays(Record):
    """A shared distribution that stays though the lock pins another version, or though it is damaged; and why."""

    name: str
    version: str | None
    pinned: str
    why: str


class EnvironmentChanges(Record):
    """What changes in somebody's own environment; `download_bytes` is the most that is fetched, None where unknown.

    `leftovers` are files that no distribution claims and that are rests of a build. `removed_bytes` counts a file with
    two names once. `interrupted`: an earlier run was, and this one finishes it.
    """

    environment: str
    changes: tuple[Replaced, ...]
    requirers: tuple[Requirer, ...]
    stays: tuple[Stays, ...]
    leftovers: tuple[str, ...]
    interrupted: bool
    download_bytes: int | None
    removed_bytes: int


class Carried(Record):
    """How a change ended: what is there now, and the check. `made`: the planned build is what is there now."""

    target: Target | None
    check: CheckResult
    made: bool


class Change(Protocol):
    """What one plan changes at a place; nothing is done yet."""

    @property
    def whole(self) -> Target | None:
        """What follows the plan already and needs at most its check; None where something has to be installed."""

    @property
    def interrupted(self) -> bool:
        """Whether an earlier change did not end, and this one finishes it."""

    @property
    def replaces(self) -> str | None:
        """Why what is there is replaced, as a fragment; None where nothing is wrong with it but the plan."""

    @property
    def names(self) -> frozenset[str]:
        """The distributions that the cache may hold for nothing once this is done, or stopped midway."""

    @property
    def install(self) -> frozenset[str]:
        """The distributions that are installed, for which something may have to be fetched."""

    @property
    def changes(self) -> tuple[Changed, ...]:
        """What will be different."""

    def expect(self, download: int | None, on_disk: int | None) -> None:
        """Take over the sizes (bytes) that a person was told, for the room that is needed and for progress."""

    def carry_out(self, uv: Uv, check: Check, on_event: OnEvent) -> Carried:
        """Do it. Raises as `Uv.install` and `inplace.apply` do; then what was there before still is, or a journal."""

    @property
    def details(self) -> EnvironmentChanges | None:
        """All that changes in an environment, None for the managed target."""


class Place(Protocol):
    """The managed target, or one environment of somebody's."""

    @property
    def prefix(self) -> Path | None:
        """The folder of the environment, None for the managed target."""

    @property
    def rebuilds(self) -> bool:
        """Whether what is whole and does not compute is built anew; else installing it again would mend nothing."""

    def current(self, findings: Findings = UNHEARD) -> Target | None:
        """Return what is there, as recorded. Raises StateError, StateNewerError, ImprintError for no environment."""

    def recover(self) -> None:
        """Remove what killed runs left, as far as that is nobody's."""

    def compare(self, plan: Plan, *, needed: int | None, repair: bool, findings: Findings = UNHEARD) -> Change:
        """Return what `plan` changes here; with `repair` everything is installed anew. `needed` is its size (bytes)."""

    def adopt(self, whole: Target) -> Target:
        """Make what is whole current."""

    def changed(self, before: Target | None, after: Target | None) -> tuple[Changed, ...]:
        """Return what is different from before the first change of this run."""

    def keeps(self, before: Target | None, after: Target | None) -> bool:
        """Whether what was there before is worth keeping for a way back."""

    def details(self) -> EnvironmentChanges | None:
        """Return the details of the first change that was carried out, None without one."""

    def left_out(self) -> list[Need]:
        """Return what installed packages require and was left out on purpose."""

    def skipped(self) -> list[Skipped]:
        """Return what the RECORDs of removed distributions named that is not their own and stays."""


def between(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[Changed, ...]:
    """Return what differs between two sets of distributions (versions by name), by name."""
    return tuple(
        Changed(name, before.get(name), after.get(name))
        for name in sorted({*before, *after})
        if before.get(name) != after.get(name)
    )
