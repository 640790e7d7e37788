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
from imprint_launch.brief import answer  # noqa: E402
from imprint_launch.building import install  # noqa: E402
from imprint_launch.failure import Failure, of_system, report  # noqa: E402
from imprint_launch.progress import Progress  # noqa: E402
from imprint_launch.words import parse_arguments  # noqa: E402


def main() -> int:
    """Build, answer without building, or say why not; returns the exit code."""
    options, words = parse_arguments(sys.argv[1:])
    if "program" in options and (told := answer(words, os.environ, ROOT)) is not None:
        print(told.text, end="", file=sys.stderr if told.exit_code else sys.stdout)
        return told.exit_code

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)
    progress = Progress(sys.stderr, quiet="--json" in words)
    try:
        install(Path(options["home"]), Path(options["lock"]), Path(options["into"]), words, progress)
    except Failure as failure:
        told_failure = failure
    except ImprintError as error:
        told_failure = Failure.of(error)
    except KeyboardInterrupt:
        told_failure = Failure("interrupted", 130, "interrupted; nothing was changed")
    except OSError as error:
        told_failure = of_system(error, Path(options["home"]))
    else:
        return 0
    finally:
        progress.close()
    report(told_failure, words)
    return told_failure.exit_code


if __name__ == "__main__":
    sys.exit(main())
