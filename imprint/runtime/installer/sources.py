"""Where packages come from."""

from __future__ import annotations

from pathlib import Path

from imprint.values import Record, replace


class Sources(Record):
    """Where packages come from: the index (or a mirror), a folder of wheels, or only what is already here."""

    offline: bool = False
    find_links: Path | None = None
    index_url: str | None = None

    def without_network(self) -> Sources:
        """Return the same sources without the network."""
        return replace(self, offline=True)


INDEX = Sources()
"""The index, or whoever sets a mirror for it."""
