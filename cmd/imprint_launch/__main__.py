"""Builds a tool environment from a hash-locked requirement file; what the launchers run when there is none yet.

Run as `python3 -I cmd/imprint_launch [--program imprint] --home HOME --lock LOCK --into ENV -- ARGS` with any Python
from 3.11 and the standard library alone. ARGS are the words the launcher was called with: `--json` among them asks for
the failure as an envelope. With `--program imprint` those that ask for help or the version are answered without
building anything: exit code 0 and no environment.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "cmd")]

from imprint.errors import ImprintError  # noqa: E402 - the path comes first
from imprint_launch.brief import Reply, answer  # noqa: E402
from imprint_launch.building import install  # noqa: E402
from imprint_launch.failure import Failure, of_system, report  # noqa: E402
from imprint_launch.progress import Progress  # noqa: E402
from imprint_launch.words import parse_arguments  # noqa: E402

_HANGUP = "SIGHUP"


def main() -> int:
    """Build, answer without building, or say why not; returns the exit code."""
    for stream in filter(None, (sys.stdout, sys.stderr)):
        # Text that the terminal's encoding lacks is shown escaped; it is no reason to fail.
        getattr(stream, "reconfigure", lambda **_: None)(errors="backslashreplace")
    options, words = parse_arguments(sys.argv[1:])
    if "program" in options and (told := answer(words, os.environ, ROOT)) is not None:
        return _show(told)

    _heed_signals()
    progress = Progress(sys.stderr, quiet="--json" in words)
    failure = _build(options, words, progress)
    progress.close()
    if failure is None:
        return 0
    report(failure, words)
    return failure.exit_code


def _heed_signals() -> None:
    """Have SIGTERM and a closed terminal end this as Ctrl-C does; what `nohup` has ignored stays so."""
    for name in (signal.SIGTERM.name, _HANGUP):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _interrupt)


def _interrupt(number: int, _frame: FrameType | None) -> None:
    # A terminal and its shell both say that it was closed: the second must not disturb the cleaning up.
    signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt(signal.Signals(number).name)


def _build(options: dict[str, str], words: list[str], progress: Progress) -> Failure | None:
    try:
        install(Path(options["home"]), Path(options["lock"]), Path(options["into"]), words, progress)
    except Failure as failure:
        return failure
    except ImprintError as error:
        return Failure.of(error)
    except KeyboardInterrupt as interrupt:
        return _interrupted(interrupt)
    except OSError as error:
        return of_system(error, Path(options["home"]))
    except Exception as error:
        kind = type(error).__name__
        return Failure("bug", f"this is a bug in Imprint's launcher ({kind}: {error})", "please report it")
    return None


def _interrupted(interrupt: KeyboardInterrupt) -> Failure:
    if interrupt.args == (_HANGUP,):
        return Failure("hangup", "the terminal was closed; nothing was changed")
    return Failure("interrupted", "interrupted; nothing was changed")


def _show(told: Reply) -> int:
    stream = sys.stderr if told.exit_code else sys.stdout
    try:
        if told.text:
            print(told.text, end="", file=stream, flush=True)
    except OSError:  # nobody reads any more; the interpreter would try once more at its end, and complain
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        return 1
    return told.exit_code


if __name__ == "__main__":
    sys.exit(main())
