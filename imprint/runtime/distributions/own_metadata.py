"""Says what in a dist-info folder goes with its distribution: what its RECORD claims, and what installers write there.

Anything else is somebody's own. It could only stay in a folder without METADATA, which installers take for a broken
distribution, so a change that would take the rest of the folder away is refused first.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from imprint.errors import NotOursError
from imprint.hints import helps
from imprint.runtime.distributions.claims import Claims, Ground, by_name, claims_of
from imprint.runtime.distributions.metadata import InstalledDistribution
from imprint.runtime.distributions.pins import Pin
from imprint.runtime.distributions.records import normalize

RECORD = "RECORD"

_WRITTEN = (
    r"METADATA|WHEEL|RECORD(\.jws|\.p7s)?|INSTALLER|REQUESTED|direct_url\.json|provenance_url\.json"
    r"|uv_(cache|build)\.json|entry_points\.txt|top_level\.txt|zip-safe"
    # What a killed pip was writing.
    r"|(RECORD|INSTALLER|REQUESTED|direct_url\.json)\w+\.tmp"
    # What desktops leave in every folder that somebody looked into.
    r"|\.DS_Store|\.directory|Thumbs\.db|desktop\.ini"
)
"""Names right in a dist-info that every installer, or nobody, writes there."""

_OF_A_WHEEL = r"(?i)(licenses|license_files|sboms)/.+|(LICEN[CS]E|COPYING|NOTICE|AUTHORS)[\w.-]*"
"""What wheels bring there besides, where no RECORD tells."""


@dataclass(frozen=True, slots=True)
class Contents:
    """What lies in a dist-info: places that go with the distribution, its RECORD last, and paths that are others'."""

    own: tuple[str, ...]
    others: tuple[str, ...]


def contents_of(found: InstalledDistribution, theirs: Claims, ground: Ground) -> Contents:
    """Return what lies in a distribution's dist-info; `theirs` is what those claim who stay. Folders do not count."""
    if found.folder is None:
        return Contents((), ())
    claimed = {place for place in map(ground.place, found.files) if place is not None}
    recorded = any(path.endswith(f".dist-info/{RECORD}") for path in found.files)
    own: list[str] = []
    others: list[str] = []
    for path in sorted(_files_below(found.folder), key=lambda path: (path == RECORD, path)):
        place = ground.place(f"{found.folder.name}/{path}") or ""
        written = re.fullmatch(_WRITTEN, path) or (not recorded and re.fullmatch(_OF_A_WHEEL, path))
        if written or (place in claimed and not theirs.hold(place)):
            own.append(place)
        else:
            others.append(f"{found.folder.name}/{path}")
    return Contents(tuple(own), tuple(others))


def refuse_others(
    ground: Ground, held: Sequence[InstalledDistribution], uninstall: Collection[str], install: Iterable[Pin]
) -> None:
    """Raise NotOursError when a dist-info that would go holds what is not its distribution's own.

    One of the version that is installed again stays, and so does what lies in it.
    """
    again = {(pin.name, pin.version) for pin in install}
    leaving, staying = by_name(held, uninstall)
    theirs = claims_of(staying, ground)
    for found in leaving:
        if found.folder is not None and not _is_for(found.folder, again):
            require_own(found, contents_of(found, theirs, ground), ground)


def require_own(found: InstalledDistribution, contents: Contents, ground: Ground) -> None:
    """Raise NotOursError when there is anything in a dist-info that is not its distribution's own."""
    if contents.others:
        more = f" and {len(contents.others) - 1} more there" if len(contents.others) > 1 else ""
        named = f"`{ground.packages / contents.others[0]}`{more}"
        raise NotOursError(
            f"{named} does not belong to `{found.name}`, whose metadata has to go",
            hint=helps("move-elsewhere-then-again"),
        )


def _is_for(info: Path, pins: set[tuple[str, str]]) -> bool:
    """Whether a dist-info is the one that a wheel with one of these names and versions has."""
    name, _, version = info.name.removesuffix(".dist-info").partition("-")
    return (normalize(name), version) in pins


def _files_below(folder: Path) -> Iterator[str]:
    """Yield what lies below a folder that is no folder itself, relative to it, with `/`; links are not followed."""
    for found, folders, names in os.walk(folder):
        links = [name for name in folders if Path(found, name).is_symlink()]
        for name in (*names, *links):
            yield Path(found, name).relative_to(folder).as_posix()
