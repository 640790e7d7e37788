"""What a change of a target leaves to be said: the notices of setup, prune and rollback, and their JSON."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from imprint.hints import helps
from imprint.results import Notice
from imprint.runtime.distributions import vendors
from imprint.runtime.events import Event, OnEvent
from imprint.runtime.place import Changed
from imprint.sizes import in_units
from imprint.values import Record

if TYPE_CHECKING:
    from imprint.runtime.distributions.claims import Skipped
    from imprint.runtime.distributions.unused import Need
    from imprint.runtime.prune import Pruned


class DeferredFolder(Record):
    """A folder that the process `pid` still uses; a later run removes it."""

    path: str
    bytes: int | None
    pid: int | None


def waiting(pruned: Pruned) -> tuple[DeferredFolder, ...]:
    """Return the folders that wait for a process."""
    return tuple(DeferredFolder(str(left.path), left.size, left.pid) for left in pruned.deferred)


def notices_of_pruned(pruned: Pruned) -> tuple[Notice, ...]:
    """Return the warning that another uv kept the cache from being cleaned."""
    if not pruned.waiting:
        return ()
    message = f"another uv process is using the cache, so {len(pruned.waiting)} packages in it could not be removed"
    return (Notice("cache-busy", message, helps("next-run-removes")),)


def tell_pruned(pruned: Pruned, on_event: OnEvent) -> None:
    """Say what became free, and what waits for whom."""
    if pruned.freed:
        on_event(Event("done", "prune", f"{in_units(pruned.freed)} freed", pruned.freed, pruned.freed))
    for left in pruned.deferred:
        size = in_units(left.size)
        on_event(
            Event("info", "prune", f"`{left.path}` ({size}) is in use by process {left.pid}; a later run removes it")
        )


def notices_of_vendors(changes: Iterable[Changed], *, done: bool) -> tuple[Notice, ...]:
    """Say which provider goes, or went, with a vendor's build that is replaced."""
    names = vendors.leaving(changes)
    if not names:
        return ()
    if done:
        message = f"`imprint setup` replaced {vendors.with_providers(names)}"
        return (Notice("vendor-build-replaced", message, helps("vendor-build-back", names=" and ".join(names))),)
    from imprint.causes.catalogue import as_one, catalogue, general_remedies

    hint = as_one(general_remedies(catalogue().causes["vendor-build-replaced"]))
    return (Notice("vendor-build-replaced", vendors.replaced_sentence(names), hint),)


def notices_of_left_out(needs: Iterable[Need]) -> tuple[Notice, ...]:
    """Say what `pip check` will complain about from now on, to whoever has it in a test of his own."""
    return tuple(
        Notice(
            "requirement-left-out",
            f"{holder} requires {name}, which Imprint does not use and did not install; `pip check` will report it",
            helps("install-yourself", name=name),
        )
        for holder, name in sorted({(need.holder, need.requirement.name) for need in needs})
    )


def notices_of_skipped(skipped: Iterable[Skipped]) -> tuple[Notice, ...]:
    """Say, for each distribution that was removed, what its RECORD named that is not its own and was left alone."""
    by_name: dict[str, list[Skipped]] = {}
    for row in skipped:
        by_name.setdefault(row.name, []).append(row)
    return tuple(
        Notice(
            "rows-skipped",
            f"the RECORD of {name} lists what is not its own; that was left as it is: "
            + ", ".join(f"`{row.path[:120]}` ({row.why})" for row in rows[:3])
            + (f", and {len(rows) - 3} more" if len(rows) > 3 else ""),
            helps("look-at-rows", name=name),
        )
        for name, rows in by_name.items()
    )
