"""What errors advise, by name: the hints of the catalogue (`data/hints.toml`), with their words filled in.

Standard library only, since the launcher's errors have hints too. The file is read when the first one is needed.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

from imprint import resources


def helps(name: str, /, **words: object) -> str:
    """Return the hint of that name. Raises KeyError for a name or a word that is not there, which tests find.

    Where the catalogue cannot be opened, as with no descriptors left, it says so: an error must not hide another.
    """
    try:
        known = hints()
    except OSError as error:
        return f"run the same command again later; what helps cannot be read now ({error.strerror})"
    return known[name].format(**words)


@functools.cache
def hints() -> Mapping[str, str]:
    """Return all hints by name, with `{words}` where something of this run belongs."""
    import tomllib

    return tomllib.loads(resources.data_path("hints.toml").read_text("utf-8"))
