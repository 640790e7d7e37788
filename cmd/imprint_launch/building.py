"""Builds the tool environment beside its place and renames it, so that it is there whole or not at all.

One first start at a time: the others wait, and find the environment there.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

from imprint import ownership, touch
from imprint.addresses import addresses_in
from imprint.causes.errors import blocked_error, error_of
from imprint.paths import Home
from imprint_launch.failure import Failure, classify, no_space, not_writable
from imprint_launch.progress import Progress
from imprint_launch.surroundings import check_home, clean_environment, suitable_uv
from imprint_launch.words import value_of

STAGE = ".building-"


class Builder:
    """Runs the steps in one staging folder; every child is its own process group, so that it can be ended whole."""

    def __init__(self, stage: Path, cache: Path, words: Sequence[str], progress: Progress) -> None:
        self.stage = stage
        self.environ = clean_environment(os.environ, cache, value_of("--index-url", words))
        self.offline = "--offline" in words
        folder = value_of("--find-links", words)
        self.links = ("--find-links", str(Path(folder).absolute())) if folder else ()
        self.progress = progress
        self.child: subprocess.Popen[str] | None = None

    def run(self, name: str, *command: str | Path) -> None:
        """Run one command to its end, quietly; raise Failure with its last words when it fails."""
        self.child = subprocess.Popen(
            [str(word) for word in command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env=self.environ,
            cwd=self.stage.parent,
            start_new_session=True,
        )
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                output, _ = self.child.communicate(timeout=1)
                break
            self.progress.tick()
        if code := self.child.returncode:
            free = shutil.disk_usage(self.stage.parent).free
            where, given = self.stage.parent, addresses_in(self.environ)
            raise classify(
                output, free, where, command=name, returncode=code, addresses=given,
                offline=self.offline, links=self.links[-1] if self.links else None,
            )  # fmt: skip

    def stop(self) -> None:
        """End the running child and all it started."""
        if self.child is not None and self.child.poll() is None:
            if sys.platform == "win32":
                self.child.kill()
            else:
                os.killpg(self.child.pid, signal.SIGKILL)
            self.child.wait()

    def build(self, lock: Path) -> None:
        """Make the environment in the staging folder."""
        python = interpreter_of(self.stage)
        uv = suitable_uv(self.environ)
        if uv is None:
            self.progress.say("fetching uv, the installer")
            self._make_with_venv(python, lock.with_name("uv.txt"))
            uv = str(python.with_name("uv.exe" if os.name == "nt" else "uv"))
        else:
            self.run("uv venv", uv, "venv", "--no-config", "--quiet", "--python", sys.executable, self.stage)
        self.progress.say(f"installing {count_of(lock)} packages")
        self.run(
            "uv pip install",
            uv, "pip", "install", "--no-config", "--quiet", "--python", python,
            "--require-hashes", "--only-binary", ":all:", "--no-deps", "-r", lock,
            *self.links, *(("--offline",) if self.offline else ()),
        )  # fmt: skip

    def _make_with_venv(self, python: Path, uv_lock: Path) -> None:
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        if any(is_missing(name) for name in ("venv", "ensurepip")):
            raise Failure(
                "failed", f"Python {version} at {sys.executable} lacks the venv module",
                f"install it (Debian and Ubuntu: `apt install python{version}-venv`) or put uv on PATH",
            )  # fmt: skip
        for module in ("_ssl", "zlib"):
            if is_missing(module):
                message = (
                    f"Python {version} at {sys.executable} lacks the module `{module}`, so it cannot download anything"
                )
                raise error_of("python-module-missing", message, headers="the development")
        if os.pathsep in str(self.stage):
            message = f"Python's venv cannot work in a folder whose name contains `{os.pathsep}`: {self.stage.parent}"
            raise Failure(
                "usage", message,
                "set IMPRINT_HOME to another folder, or put uv on PATH",
            )  # fmt: skip
        self.run("python -m venv", sys.executable, "-I", "-m", "venv", self.stage)
        self.run(
            "python -m pip install",
            python, "-I", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input",
            "--require-hashes", "--only-binary", ":all:", "--no-deps", "-r", uv_lock,
            *self.links, *(("--no-index",) if self.offline else ()),
        )  # fmt: skip


def is_missing(module: str) -> bool:
    """Whether this Python came without one of its own modules."""
    return find_spec(module) is None


def interpreter_of(environment: Path) -> Path:
    """Return where an environment's interpreter lies."""
    return environment / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def count_of(lock: Path) -> int:
    """Return how many packages a lock pins."""
    return len(re.findall(r"^[\w.-]+==", lock.read_text("utf-8"), re.MULTILINE))


def install(home: Path, lock: Path, into: Path, words: Sequence[str], progress: Progress) -> None:
    """Build the environment that belongs at `into`, below `home`.

    `words` are those of the command; its `--index-url`, `--find-links` and `--offline` count here too. Raises Failure,
    ImprintError or OSError, with nothing half made left behind; nothing is made in a folder that is somebody else's.
    """
    check_home(home, os.environ)
    _require_reachable(into)
    try:
        ownership.claim(Home(home))
        touch.make_folder(into.parent, within=home)
    except OSError as error:
        if error.errno == 28:
            raise no_space(0, home) from error
        raise not_writable(home, error.strerror or str(error)) from error
    progress.say("preparing the tool environment (once, about 40 MB)")
    with _alone(into.parent, home, progress) as alone:
        if os.access(interpreter_of(into), os.X_OK):
            return  # another first start was faster, and its environment may be in use already
        if alone:
            for left in into.parent.glob(f"{STAGE}*"):
                touch.remove_tree(left, within=home)
        _build_beside(home, lock, into, words, progress)


def _build_beside(home: Path, lock: Path, into: Path, words: Sequence[str], progress: Progress) -> None:
    stage = touch.new_folder(STAGE, within=into.parent)
    old = stage.with_name(f"{stage.name}-old")
    builder = Builder(stage, home / ".uv-cache", words, progress)
    try:
        try:
            builder.build(lock)
        except Failure as failure:
            if failure.code != "no-space":
                raise
            touch.remove_tree(stage, within=home)  # first, so that what it took counts as free again
            raise no_space(shutil.disk_usage(into.parent).free, into.parent) from failure
        if os.path.lexists(into):  # its interpreter is gone, or it is a link to somewhere else
            touch.move(into, old, within=home)
        touch.move(stage, into, within=home)
    finally:
        builder.stop()
        for left in (stage, old):
            touch.remove_tree(left, within=home)


def _require_reachable(into: Path) -> None:
    """Raise ImprintError where the environment is there and only this user cannot start its interpreter."""
    python = interpreter_of(into)
    if os.path.lexists(python) and (error := blocked_error(str(python))) is not None:
        raise error


@contextlib.contextmanager
def _alone(folder: Path, home: Path, progress: Progress) -> Iterator[bool]:
    """Hold the lock of first starts; False where this disk has no locks."""
    descriptor = touch.open_lock(folder / "building.lock", within=home)
    try:
        yield _lock(descriptor, progress)
    finally:
        os.close(descriptor)


def _lock(descriptor: int, progress: Progress) -> bool:
    if sys.platform == "win32":
        return False
    import fcntl

    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress.say("waiting for another process to build the tool environment")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
    except OSError:
        return False
    return True
