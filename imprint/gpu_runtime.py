"""Plumbing for launchers: `python -m imprint.gpu_runtime plan [--retry] [--machine FILE]`, and `check`.

Runs from a bare checkout with the standard library alone, on Python 3.11 and later, and decides exactly as
`imprint plan` does. The plan document goes to stdout; what went wrong goes to stderr, with the exit codes of imprint.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence

from imprint.context import Context
from imprint.errors import EXIT_CODES, ImprintError, NoSpaceError, UsageError
from imprint.paths import is_absent
from imprint.printable import printable_line
from imprint.situation.inputs import Inputs, gather, gather_what_if

_USAGE = "usage: python -m imprint.gpu_runtime plan [--retry] [--machine FILE|-] | check"


def main(arguments: Sequence[str]) -> int:
    """Run one subcommand and return its exit code."""
    try:
        if arguments[:1] == ["plan"]:
            return _plan(arguments[1:])
        if list(arguments) == ["check"]:
            return _check()
        raise UsageError("expected the word `plan` or `check`", hint=_USAGE)
    except ImprintError as error:
        told = f"\nhint: {printable_line(error.hint)}" if error.hint else ""
        sys.stderr.write(f"error: {printable_line(error.message)}{told}\n")
        return error.exit_status
    except KeyboardInterrupt:
        sys.stderr.write("error: interrupted\n")
        return EXIT_CODES["interrupted"]


def _plan(options: Sequence[str]) -> int:
    retry, machine = _plan_options(options)
    context = Context.of_process()
    inputs = _here(context, retry=retry) if machine is None else _elsewhere(context, machine, retry=retry)
    _write(inputs.plan.to_json())
    return 0


def _plan_options(options: Sequence[str]) -> tuple[bool, str | None]:
    retry, machine = False, None
    rest = iter(options)
    for option in rest:
        name, given, value = option.partition("=")
        if option == "--retry":
            retry = True
        elif name == "--machine":
            machine = value if given else next(rest, None)
            if not machine:
                raise UsageError("--machine needs a file, or `-` for standard input", hint=_USAGE)
        else:
            raise UsageError(f"unknown option: {option}", hint=_USAGE)
    return retry, machine


def _here(context: Context, *, retry: bool) -> Inputs:
    target = None
    if not is_absent(context.home.current):
        from imprint.runtime.target import current_target

        target = current_target(context.home)
    return gather(context, target, ignore_failed=retry, to_record=False)


def _elsewhere(context: Context, machine: str, *, retry: bool) -> Inputs:
    from imprint.planning.wire import machine_from_json
    from imprint.situation.documents import parse_document

    document = parse_document(_read(machine), "standard input" if machine == "-" else machine, "machine-document")
    return gather_what_if(context, machine_from_json(document), ignore_failed=retry)


def _read(name: str) -> str:
    try:
        if name == "-":
            return sys.stdin.buffer.read().decode("utf-8-sig")
        with open(name, encoding="utf-8-sig") as file:  # noqa: PTH123 - no pathlib for one file
            return file.read()
    except UnicodeDecodeError:
        raise UsageError(f"{name} is not UTF-8") from None
    except OSError as error:
        raise UsageError(f"{name} cannot be read: {error.strerror}") from None


def _check() -> int:
    from imprint.operations.check import check

    result = check(Context.of_process())
    _write(dict(result.data))
    # It is the runtime that is asked about here; whoever asks may embed with something else.
    return 0 if result.data["outcome"] == "ok" else 1


def _write(document: object) -> None:
    import json

    try:
        sys.stdout.write(json.dumps(document, indent=2) + "\n")
        sys.stdout.flush()
    except OSError as error:
        # What is left of it goes nowhere: the interpreter would try once more at its end, and complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        kind = NoSpaceError if error.errno == errno.ENOSPC else ImprintError
        raise kind(f"standard output cannot be written: {error.strerror}") from None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
