"""What every operation is given: where state lives, the environment, and the configuration flags of this one run."""

from __future__ import annotations

import os
from collections.abc import Mapping

from imprint.paths import Home, find_home
from imprint.values import Record


class Context(Record):
    """One run's surroundings. `flags` maps configuration keys to values given on the command line."""

    home: Home
    environ: Mapping[str, str]
    flags: Mapping[str, str] = {}

    @classmethod
    def of_process(cls, flags: Mapping[str, str] | None = None) -> Context:
        """Return the context of this process: its environment and the home that names."""
        environ = dict(os.environ)
        return cls(find_home(environ), environ, dict(flags or {}))
