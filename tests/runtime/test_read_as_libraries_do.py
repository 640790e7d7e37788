"""What installed packages say is read as the standard library and packaging read it, over this very environment."""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path

from packaging.utils import canonicalize_name

from imprint.runtime.distributions import inventory
from imprint.runtime.distributions.metadata import read_held


def test_names_versions_needs_and_files_are_the_librarys() -> None:
    held = {found.name: found for found in read_held(inventory.inspect(Path(sys.prefix)))}
    packages = inventory.packages_folder(Path(sys.prefix))
    theirs = {canonicalize_name(one.name): one for one in metadata.distributions(path=[str(packages)])}
    assert len(theirs) > 20
    assert set(held) == set(theirs)
    for name, one in theirs.items():
        ours = held[name]
        assert (name, ours.version, list(ours.requires)) == (name, one.version, one.requires or [])
        assert {canonicalize_name(extra) for extra in one.metadata.get_all("Provides-Extra") or ()} == set(ours.extras)
        recorded = {str(path) for path in one.files or () if "__pycache__" not in path.parts}
        assert (name, set(ours.files)) == (name, recorded)
