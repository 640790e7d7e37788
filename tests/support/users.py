"""Runs the command line as another user of this machine, where permissions bind as they do not for root."""

from __future__ import annotations

import functools
import hashlib
import os
import stat
import subprocess
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from contracts.runner import ROOT, Ran, scrubbed
from imprint.embedding.catalogue import load_catalogue
from imprint.embedding.models import folder_of
from imprint.ownership import claim
from imprint.paths import Home
from imprint.runtime.managed.recipe import own_python
from imprint.runtime.target import Manifest, Pointer, generation_folder, interpreter_of, manifest_to_json, write_pointer
from imprint.state import config_file, last_run
from imprint.state.files import write_json
from imprint.state.last_run import LastRun

GENERATION = "20260101T000000Z-cpu-1.31.1-0123"
PATHS = "|".join([*(str(ROOT / name) for name in ("", "cmd", "tests")), sysconfig.get_path("purelib")])

_START = "import sys; sys.path[:0] = sys.argv[1].split('|'); del sys.argv[1]; "
CLI = f"{_START}from imprint_cli.app import main; sys.exit(main())"
EMBED = f"{_START}from support.played_embed import main; sys.exit(main())"


@dataclass(frozen=True, slots=True)
class User:
    """A user by numbers, which need not be in any list of users, and the umask of its shell."""

    uid: int
    gid: int
    groups: tuple[int, ...] = ()
    umask: int = 0o022

    def run(self, home: Path, *words: str, environ: Mapping[str, str] | None = None) -> Ran:
        """Run `imprint WORDS`; `embed` alone runs on a worker that is only played. `OPEN` is a folder for everybody."""
        code = EMBED if words == ("embed",) else CLI
        meant = [os.fspath(home.parent / "open" / "new") if word == "OPEN" else word for word in words]
        return self.start([python(), "-P", "-B", "-c", code, PATHS, *meant], home, environ)

    def start(self, command: Sequence[str], home: Path, environ: Mapping[str, str] | None = None) -> Ran:
        """Run any command with that home."""
        # The installer lies beside this Python, which need not be the one that is used.
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
        inherited = scrubbed(os.environ) | {
            "IMPRINT_HOME": str(home),
            "NO_COLOR": "1",
            "HOME": "/nonexistent",
            "PATH": path,
        }
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
            cwd="/",
            env=inherited | dict(environ or {}),
            user=self.uid,
            group=self.gid,
            extra_groups=list(self.groups),
            umask=self.umask,
        )
        return Ran(done.returncode, done.stdout, done.stderr)


ROOT_USER = User(0, 0)
SERVICE = User(54321, 54321)
OWNER = User(54322, 54322)
SHARERS = 54323
"""A group; whoever shares a home with it has it among its groups."""


@functools.cache
def python() -> str:
    """Return a Python of this version that every user may run: this one may lie in a folder that is root's alone."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    for candidate in (os.path.realpath(sys.executable), f"/usr/bin/python{version}", f"/usr/local/bin/python{version}"):
        try:
            done = SERVICE.start([candidate, "-P", "-B", "-c", CLI, PATHS, "--version"], Path("/nonexistent"))
        except OSError:
            continue
        if done.code == 0:
            return candidate
    return ""


def why_not() -> str | None:
    """Return why nothing can be run as another user here, None when it can."""
    if os.geteuid() != 0:
        return "only root may run something as another user"
    return None if python() else "another user can run no Python of this version, or cannot read this checkout"


def make_home(root: Path) -> Home:
    """Return a home with a runtime and a model that are only there by name, a configuration, a secret and a note."""
    home = Home(root)
    claim(home)
    prefix = generation_folder(home, GENERATION)
    interpreter_of(prefix).parent.mkdir(parents=True)
    interpreter_of(prefix).symlink_to(python())
    (prefix / "pyvenv.cfg").write_text(f"home = {Path(python()).parent}\n", encoding="utf-8")
    manifest = Manifest(GENERATION, "cpu", "1.31.1", {}, own_python(), python(), None, "2026-01-01T00:00:00Z", {})
    write_json(prefix / "manifest.json", manifest_to_json(manifest), within=root)
    write_pointer(home, Pointer(GENERATION, "2026-01-01T00:00:00Z"))
    model = load_catalogue().model(load_catalogue().default)
    folder_of(home, model.name).mkdir(parents=True)
    for file in model.files:
        path = folder_of(home, model.name) / file.name
        path.touch()
        os.truncate(path, file.size)
    config_file.set_value(home, "model.max_tokens", "200")
    config_file.set_value(home, "server.token", "secret")
    last_run.note(home, LastRun("cpu", "CPUExecutionProvider", GENERATION, model.name))
    home.mutex.touch()
    return home


def give(root: Path, user: User, *, group: int | None = None) -> None:
    """Make everything below `root` a user's; with `group` it shares it with that group."""
    for path in (root, *sorted(root.rglob("*"))):
        os.chown(path, user.uid, user.gid if group is None else group, follow_symlinks=False)
        if group is not None and not path.is_symlink() and path.name != "secrets.toml":
            path.chmod(0o2775 if path.is_dir() else 0o664)


def seen(root: Path) -> dict[str, tuple[object, ...]]:
    """Return what lies below `root`: kind and mode, owner, time, and content of each path."""
    found: dict[str, tuple[object, ...]] = {}
    for path in (root, *sorted(root.rglob("*"))):
        status = path.lstat()
        content = ""
        if stat.S_ISLNK(status.st_mode):
            content = str(path.readlink())
        elif stat.S_ISREG(status.st_mode) and status.st_size < 1 << 20:
            content = hashlib.sha256(path.read_bytes()).hexdigest()
        found[str(path.relative_to(root))] = (
            oct(status.st_mode),
            status.st_uid,
            status.st_gid,
            status.st_size,
            status.st_mtime_ns,
            content,
        )
    return found
