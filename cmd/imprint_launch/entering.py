"""Runs the command line in its tool environment, once the interpreter is seen to run in that one and in no other.

The launchers start it without `site` (`-S`): what a damaged environment does at its start is then an answer too, and
no package of another Python's is loaded.
"""

from __future__ import annotations

import sys
from pathlib import Path


def enter(env: str) -> int:
    """Run the words of this process in the environment at `env`, and return the exit code."""
    sys.argv[0] = "imprint"
    try:
        _require_inside(env)
        from imprint_cli.__main__ import main

        return main()
    except Exception as error:
        try:
            from imprint_launch.unusable import tell_unusable
        except ImportError:  # the Python that it was made from is not whole either
            sys.stderr.write(f"error: Python cannot run in the tool environment {env!a}: {error}\n")
            sys.stderr.write("hint: install a complete Python 3.11 or newer, then delete that environment\n")
            return 1
        return tell_unusable(error, Path(env))


def _require_inside(env: str) -> None:
    import site

    site.main()
    if not Path(sys.prefix).samefile(env):
        raise ImportError("its interpreter does not run in it")
