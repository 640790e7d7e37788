"""Runs uv, the only installer: finds it, and builds its arguments and environment.

Every call is made the same way whatever surrounds it: no configuration files, a folder of our own, an environment
with the allowed names only, hashes required, wheels only. What to install where is decided by the callers.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from imprint import access, ownership
from imprint.causes.errors import outside_error
from imprint.certificates import certificate_settings
from imprint.errors import ImprintError, IntegrityError, NetworkError, NotOursError
from imprint.hints import helps
from imprint.paths import Home
from imprint.runtime.distributions.records import is_name
from imprint.runtime.installer import space
from imprint.runtime.installer.sources import INDEX, Sources
from imprint.runtime.installer.watch import Watch, run_installer
from imprint.values import Record

OLDEST = (0, 11)
"""uv releases before this one were not tried with our locks and arguments; an older one on PATH is not used."""

PASSED_THROUGH = frozenset(
    name
    for upper in (
        *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "SSL_CLIENT_CERT", "UV_SYSTEM_CERTS"),
        *("HOME", "USERPROFILE", "NETRC", "TMPDIR", "TEMP", "TMP", "SYSTEMROOT", "SYSTEMDRIVE", "LANG", "LC_ALL"),
    )
    for name in (upper, upper.lower())
)
"""What uv may see of our environment: proxies, certificates, credentials for them, and what a process needs at all.

Besides, `UV_DEFAULT_INDEX` is the mirror of whoever sets it; `--index-url` beats it. Every other `UV_*`, `PIP_*`,
`PYTHON*` and `VIRTUAL_ENV` of the surroundings never counts."""

MIRROR = "UV_DEFAULT_INDEX"

_LOCK_SECONDS = 60
_CLEAN_SECONDS = 15
"""How long another uv is waited for; the cache is not worth a long wait."""


class TargetPlatform(Record):
    """A machine as uv names it: its platform, a Python like `3.12`, and the oldest macOS to serve."""

    triple: str
    python: str
    macos: str | None = None


@dataclass(frozen=True, slots=True)
class Uv:
    """A uv and the surroundings to run it in."""

    executable: Path
    home: Home
    environ: Mapping[str, str] = field(repr=False)
    sources: Sources = INDEX

    def version(self) -> str | None:
        """Return the version this uv states, None when it does not run."""
        return _version_of(self.executable)

    def create(self, prefix: Path, python: Path) -> None:
        """Create an environment without pip at `prefix` for the interpreter `python`."""
        self._run(venv_arguments(prefix, python))

    def install(  # noqa: PLR0913 - all but the first are keywords
        self,
        locks: Sequence[Path],
        *,
        python: Path,
        folder: Path | None = None,
        prefix: Path | None = None,
        needed: int | None = None,
        on_bytes: Callable[[int], None] | None = None,
    ) -> bool:
        """Install exactly what `locks` pin into the environment of `python`, or into `folder` when one is given.

        With `prefix` the files are laid out below that folder as in the environment of `python`, whose scripts they
        are, and share nothing with the cache.
        What the cache already holds is taken from there without asking the network. `needed` (bytes) is what a
        download takes at most; it is checked against the free space before one begins. `on_bytes` is told now and
        then how much the cache has grown. Returns whether anything had to be fetched. Raises NetworkError,
        IntegrityError, NoSpaceError or ImprintError.
        """
        places = ["--target", os.fspath(folder)] if folder is not None else []
        if prefix is not None:
            places = ["--prefix", os.fspath(prefix), "--link-mode", "copy"]
        try:
            self._run(install_arguments(locks, python, self.sources.without_network()) + places, place=prefix)
        except (NetworkError, IntegrityError):
            if self.sources.offline:
                raise
        else:
            return False
        if needed is not None:
            space.require(needed, self.home.root)
        place = folder or prefix or python.parent.parent
        watch = Watch(
            (self.home.cache, place),
            _names_in(locks),
            needed,
            on_bytes,
        )
        self._run(install_arguments(locks, python, self.sources) + places, needed, watch, place=prefix)
        return True

    def resolve(self, lock: Path, spot: TargetPlatform, output: Path) -> None:
        """Write to `output`, as a pylock document, which wheels of a lock a machine takes and where they are.

        Raises NetworkError, IntegrityError or ImprintError.
        """
        arguments = ["pip", "compile", "--quiet", "--no-deps", "--no-header", "--only-binary", ":all:"]
        arguments += ["--format", "pylock.toml", "--python-platform", spot.triple, "--python-version", spot.python]
        arguments += ["--python", sys.executable, "--output-file", os.fspath(output), os.fspath(lock)]
        if self.sources.find_links is not None:
            arguments += ["--find-links", os.fspath(self.sources.find_links)]
        self._run([*arguments, *(["--offline"] if self.sources.offline else [])], macos=spot.macos)

    def clean(self, names: Sequence[str]) -> None:
        """Remove packages from our cache. Raises BusyError when another uv works with it for long.

        What is no name of a distribution is left out: uv would take it for an option.
        """
        if named := [name for name in names if is_name(name)]:
            self._run(["cache", "clean", "--", *named], lock_seconds=_CLEAN_SECONDS)

    def prune(self) -> None:
        """Remove from our cache what nothing can reach any more, such as the rests of killed downloads."""
        self._run(["cache", "prune"], lock_seconds=_CLEAN_SECONDS)

    def _run(  # noqa: PLR0913 - all but the first three are keywords
        self,
        arguments: Sequence[str],
        needed: int | None = None,
        watch: Watch | None = None,
        *,
        lock_seconds: int = _LOCK_SECONDS,
        macos: str | None = None,
        place: Path | None = None,
    ) -> None:
        _require_cache(self.home.cache)
        environ = environment(self.home, self.environ, self.sources) | {"UV_LOCK_TIMEOUT": str(lock_seconds)}
        if macos is not None:
            environ["MACOSX_DEPLOYMENT_TARGET"] = macos
        argv = [os.fspath(self.executable), "--no-config", "--no-progress", "--color", "never", *arguments]
        returncode, text = run_installer(argv, environ, self.home, watch)
        if returncode:
            where, sources = place or self.home.root, self.sources
            from imprint.runtime.installer.uv_failures import classify  # seldom needed, and slow to load

            raise classify(returncode, text, where=where, needed=needed, sources=sources, environ=environ)


_OF_NO_CACHE = re.compile(r"\.lock|\.gitignore|\.link-.*|\.tmp.*")
"""What may lie in a folder of ours before uv has made it a cache."""


def _require_cache(folder: Path) -> None:
    """Raise NotOursError when a folder is not a cache of uv's: uv empties what it takes for one."""
    if access.is_file(folder / "CACHEDIR.TAG"):
        return
    try:
        first = next((name for name in sorted(os.listdir(folder)) if not _OF_NO_CACHE.fullmatch(name)), None)  # noqa: PTH208
    except OSError:
        return
    if first is not None:
        raise NotOursError(
            f"`{folder}` is not a cache of uv's: it holds `{first}`",
            hint=helps("made-anew"),
        )


def find_uv(home: Home, environ: Mapping[str, str], sources: Sources = INDEX) -> Uv:
    """Return the first uv of: beside this interpreter, a tool environment's under the home, PATH (if not too old).

    Raises ImprintError: `uv-missing` when there is none, `unsafe-home` for one that anybody may have put there.
    """
    name = "uv.exe" if sys.platform == "win32" else "uv"
    scripts = Path(sysconfig.get_path("scripts"))
    for found in (scripts / name, *sorted(home.tool.glob(f"env-*/{scripts.name}/{name}"))):
        if os.access(found, os.X_OK) and found.is_file():
            ownership.require_safe(home, found)
            return Uv(found, home, environ, sources)
    on_path = shutil.which("uv", path=environ.get("PATH", os.defpath))
    if on_path and _is_recent(_version_of(Path(on_path))):
        return Uv(Path(on_path).absolute(), home, environ, sources)
    oldest = ".".join(map(str, OLDEST))
    raise ImprintError(
        f"uv {oldest} or newer was not found beside `{sys.executable}` or on PATH",
        hint=helps("install-uv"),
        code="uv-missing",
    )


def environment(home: Home, environ: Mapping[str, str], sources: Sources) -> dict[str, str]:
    """Return the whole environment of a uv call, built from the allowed part of `environ`."""
    passed = {name: value for name, value in environ.items() if name in PASSED_THROUGH} | certificate_settings(environ)
    passed["UV_CACHE_DIR"] = os.fspath(home.cache)
    passed["UV_PYTHON_DOWNLOADS"] = "never"
    passed["UV_LOCK_TIMEOUT"] = str(_LOCK_SECONDS)
    # Not an argument: it may carry a password, and arguments are for everyone to see.
    mirror = sources.index_url or environ.get(MIRROR)
    if mirror:
        passed[MIRROR] = mirror
    return passed


def _names_in(locks: Sequence[Path]) -> tuple[str, ...]:
    from imprint.runtime.distributions.pins import read_lock  # only a download needs it

    return tuple(sorted({pin.name for lock in locks for pin in read_lock(lock)}))


def venv_arguments(prefix: Path, python: Path) -> list[str]:
    """Return uv's arguments to create an environment."""
    return ["venv", "--quiet", "--offline", "--no-project", "--python", os.fspath(python), os.fspath(prefix)]


def install_arguments(locks: Sequence[Path], python: Path, sources: Sources) -> list[str]:
    """Return uv's arguments to install hashed locks: exactly what they pin, from wheels, with every hash checked."""
    arguments = ["pip", "install", "--python", os.fspath(python), "--require-hashes", "--only-binary", ":all:"]
    # A lock is complete, so asking for dependencies could only bring in what it does not pin.
    arguments.append("--no-deps")
    for lock in locks:
        arguments += ["--requirements", os.fspath(lock)]
    if sources.find_links is not None:
        arguments += ["--find-links", os.fspath(sources.find_links)]
    if sources.offline:
        arguments.append("--offline")
    return arguments


def _version_of(executable: Path) -> str | None:
    try:
        ended = subprocess.run(
            [os.fspath(executable), "--version"], capture_output=True, text=True, timeout=20, check=False, env={}
        )
    except OSError as error:
        if (outside := outside_error(error)) is not None:
            raise outside from error
        return None
    except (ValueError, subprocess.TimeoutExpired):
        return None
    found = re.match(r"uv (\d+(?:\.\d+)+)", ended.stdout)
    return found[1] if found else None


def _is_recent(version: str | None) -> bool:
    return version is not None and tuple(map(int, version.split(".")[:2])) >= OLDEST
