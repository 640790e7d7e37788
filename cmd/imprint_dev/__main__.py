"""Maintainers' commands, run from a checkout with `cmd/` on the module path: `python -m imprint_dev COMMAND`."""

from __future__ import annotations

import argparse
import sys

from imprint_dev import pages, read_wheels, relock


def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit status: 0 in order, 1 a difference or a failed claim, 2 usage."""
    parser = argparse.ArgumentParser(prog="python -m imprint_dev", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    relock.register(commands)
    read_wheels.register(commands)
    pages.register(commands)
    arguments = parser.parse_args(argv)
    status: int = arguments.run(arguments)
    return status


if __name__ == "__main__":
    sys.exit(main())
