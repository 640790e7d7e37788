"""`python -m imprint`: the command `imprint`, which comes with the terminal face; the library knows none of it."""

from __future__ import annotations

import sys
from importlib import import_module

if __name__ == "__main__":
    try:
        face = import_module("imprint_cli.__main__")
    except ModuleNotFoundError as error:
        if error.name != "imprint_cli":
            raise
        sys.stderr.write("error: the command line is not installed here\nhint: in a checkout, run `./cmd/imprint`\n")
        sys.exit(1)
    sys.exit(face.main())
