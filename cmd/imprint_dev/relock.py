"""`relock`: recompiles the locks from their .in files, says what changed, and proves what each lock claims."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from imprint_dev.claims import Lock, TargetPlatform, parse_claims
from imprint_dev.layout import LOCKS
from imprint_dev.lockfile import diff, parse_lockfile, without_hashes
from imprint_dev.uv import UvError, find_uv, run_uv

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]  # noqa: SLF001 - argparse gives it no public name

Say = Callable[[str], None]
_AT_ONCE = 4
"""Dry runs at a time: each waits for the index most of the time."""


@dataclass(frozen=True, slots=True)
class Mode:
    """`check` writes nothing and fails on a difference; `upgrade` takes newest versions instead of keeping pins."""

    check: bool = False
    upgrade: bool = False


def register(commands: Commands) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser("relock", help="recompile locks and verify the platforms they claim")
    parser.add_argument("names", nargs="*", metavar="NAME", help="locks to do, by default all")
    parser.add_argument("--check", action="store_true", help="write nothing; fail when a lock would change")
    parser.add_argument("--upgrade", action="store_true", help="take newest versions instead of keeping pins")
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    locks = parse_claims((LOCKS / "platforms.toml").read_text(encoding="utf-8"))
    unknown = sorted(set(arguments.names) - set(locks))
    if unknown:
        _error(f"no such lock: {', '.join(unknown)}; there are {', '.join(locks)}")
        return 2
    mode = Mode(check=arguments.check, upgrade=arguments.upgrade)
    try:
        uv = find_uv()
        failures = 0
        for name in arguments.names or locks:
            failures += relock(uv, locks[name], LOCKS, mode, say=_print)
    except UvError as error:
        _error(str(error))
        return 1
    return 1 if failures else 0


def relock(uv: str, lock: Lock, folder: Path, mode: Mode, *, say: Say) -> int:
    """Recompile one lock and verify its claims; return the number of failures.

    A lock with a claim that does not hold is not written. Errors: UvError when a lock does not compile.
    """
    target = folder / f"{lock.name}.txt"
    old = target.read_text(encoding="utf-8") if target.exists() else ""
    new = compile_lock(uv, lock, folder, old, upgrade=mode.upgrade)
    failures = 0
    if new == old:
        say(f"{lock.name}: unchanged")
    else:
        for line in diff(parse_lockfile(old), parse_lockfile(new)) or ["only comments or order differ"]:
            say(f"{lock.name}: {line}")
        if mode.check:
            failures += 1
            say(f"{lock.name}: differs from what its .in file compiles to")
    refusals = verify(uv, lock, new)
    for spot, words in refusals:
        say(f"{lock.name}: claims {spot}, but {words}")
    if refusals:
        return failures + len(refusals)
    say(f"{lock.name}: {len(lock.spots)} claims hold")
    if new != old and not mode.check:
        target.write_text(new, encoding="utf-8")
    return failures


def compile_lock(uv: str, lock: Lock, folder: Path, old: str, *, upgrade: bool) -> str:
    """Return the text of the lock as its .in file compiles today; pins of `old` are kept unless `upgrade`.

    Its hashes are not: uv would take them over unseen, also wrong ones and those of a release that has more files now.
    """
    with tempfile.TemporaryDirectory() as scratch:
        output = Path(scratch, f"{lock.name}.txt")
        if old:
            output.write_text(without_hashes(old), encoding="utf-8")
        arguments = ["pip", "compile", "--quiet", "--universal", "--generate-hashes"]
        arguments += ["--python-version", lock.python, "--output-file", str(output), f"{lock.name}.in"]
        arguments += ["--no-deps"] if lock.no_deps else []
        arguments += ["--upgrade"] if upgrade else []
        # The header of the file would otherwise hold the scratch folder's path.
        header = {"UV_CUSTOM_COMPILE_COMMAND": f"python -m imprint_dev relock {lock.name}"}
        done = run_uv(uv, arguments, cwd=folder, extra=header)
        if done.returncode != 0:
            raise UvError(f"{lock.name}.in does not compile:\n{done.stderr.strip()}")
        return output.read_text(encoding="utf-8")


def verify(uv: str, lock: Lock, text: str) -> list[tuple[TargetPlatform, str]]:
    """Return the claims that do not hold: those for which `text` does not resolve to hashed wheels alone."""
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(_AT_ONCE) as pool:
        file = Path(scratch, f"{lock.name}.txt")
        file.write_text(text, encoding="utf-8")
        answers = pool.map(lambda spot: _dry_run(uv, lock, file, spot), lock.spots)
        return [(spot, words) for spot, words in zip(lock.spots, answers, strict=True) if words is not None]


def _dry_run(uv: str, lock: Lock, file: Path, spot: TargetPlatform) -> str | None:
    """Return why the lock does not install on the machine, None when it does."""
    arguments = ["pip", "install", "--dry-run", "--only-binary", ":all:", "--require-hashes"]
    arguments += ["--python-platform", spot.triple, "--python-version", spot.python]
    arguments += ["--target", f"{spot.platform}-{spot.python}", "--requirements", file.name]
    arguments += ["--no-deps"] if lock.no_deps else []
    extra = {"MACOSX_DEPLOYMENT_TARGET": spot.macos} if spot.macos else {}
    done = run_uv(uv, arguments, cwd=file.parent, extra=extra)
    return None if done.returncode == 0 else _cause(done.stderr)


def _cause(stderr: str) -> str:
    """Return uv's own cause in one line, without its hints."""
    lines = [line.strip() for line in stderr.strip().splitlines()]
    causes = [line.removeprefix("cause: ") for line in lines if line.startswith("cause: ")]
    return (causes or lines or ["uv gave no reason"])[-1]


def _print(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _error(line: str) -> None:
    sys.stderr.write(f"error: {line}\n")
