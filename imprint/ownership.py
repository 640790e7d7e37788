"""Says whether a folder is a home of Imprint's, and whether what lies in it may be run.

Before anything in a home is removed, set aside or written, the folder has to be ours: it carries our mark, or it is
empty, or what it holds proves it. Before anything in it is run, nobody but its owner and ours may have put it there.
Standard library only, so that the launcher can ask the same questions before there is a tool environment.
"""

from __future__ import annotations

import json
import os
import re
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

from imprint import access, touch
from imprint.errors import ImprintError
from imprint.hints import helps
from imprint.paths import Home
from imprint.quoting import typed

MARK = "Imprint keeps its configuration, runtimes and caches in this folder, and may remove what lies in it.\n"
"""What the mark of a home (`Home.marker`) says to a person who finds it."""

_NOBODYS = frozenset({"lost+found", ".DS_Store", ".directory", "System Volume Information"})
"""What file systems and desktops put into a folder that is as good as empty."""

_FILES = frozenset({"config.toml", "secrets.toml", "setup.lock", "setup.lock.holder"})
_FOLDERS = frozenset({"data", "runtimes", "models", "tool", ".uv-cache"})
_OURS_ALONE = frozenset({"setup.lock", "runtimes", "models", "tool", ".uv-cache"})
"""Names that hardly anybody else's folder has, unlike `data` and `config.toml`."""

_STATE = frozenset({"current.json", "gpu_state.json", "last_run.json", "deferred.json"})
_OTHER_DATA = frozenset(
    {"config.lock", "logs", "inplace", "jobs.sqlite3", "jobs.sqlite3-wal", "jobs.sqlite3-shm", "ui.token"}
)
TOOL_ENVIRONMENT = re.compile(r"env-(?:[0-9a-f]{64}|\d+)")
"""The launcher names its environments after a lock's checksum."""

_REST = re.compile(r"\..+\.tmp|.+\.corrupt-.+")

_LONGEST = 1 << 20


def claim(home: Home) -> None:
    """Make the home if it is missing, and mark it as ours. Raises ImprintError as the two functions below, OSError."""
    if os.path.lexists(home.root):
        require_ours(home)
        require_safe(home, home.root)
    touch.make_folder(home.root, within=home.root)
    if not _is_file(home.marker):
        touch.write_file(home.marker, MARK.encode(), within=home.root, durable=False)


def require_ours(home: Home) -> None:
    """Raise ImprintError (`not-ours`) when the home's folder is another application's."""
    error = foreign(home)
    if error is not None:
        raise error


def foreign(home: Home) -> ImprintError | None:
    """Return why the home's folder is not taken for ours, None when it is ours or can become so."""
    entries = foreign_entries(home)
    if not entries:
        return None
    named = " and ".join(f"`{name}`" for name in entries[:2])
    if _may_be_marked(home.root):
        hint = helps("empty-home-or-mark", command=typed("touch", home.marker))
    else:
        hint = helps("empty-home")
    return ImprintError(
        f"`{home.root}` is not one of Imprint's folders: it contains {named}",
        hint=hint,
        code="not-ours",
    )


def _may_be_marked(root: Path) -> bool:
    """Whether a person may be told how to mark a folder as ours: one that looks like it, and no system's or user's."""
    real = Path(os.path.realpath(root))
    if real == Path(real.anchor) or real == Path(os.path.realpath(os.path.expanduser("~"))):  # noqa: PTH111
        return False
    return not _OURS_ALONE.isdisjoint(_names(root))


def foreign_entries(home: Home) -> tuple[str, ...]:
    """Return what speaks against the home's folder being ours, relative to it; empty when it is or may become ours.

    A folder without our mark is ours when this process runs from inside it, or when a state file or a manifest in it
    is one that only Imprint writes. What cannot be listed speaks against nothing: whoever reads on is told why.
    """
    # Named first: another process may put the mark there meanwhile.
    entries = [name for name in _names(home.root) if name not in _NOBODYS]
    if _is_file(home.marker):
        return ()
    if not entries or _is_proven(home):
        return ()
    found = [name for name in entries if name not in _FILES | _FOLDERS and not _REST.fullmatch(name)]
    found += [f"{name}/{inner}" for name in ("runtimes", "models", "tool") for inner in _names(home.root / name)]
    return (*found, *(f"data/{name}" for name in _foreign_data(home)))


def is_ours(home: Home, path: Path) -> bool:
    """Whether a path is one of Imprint's own files, or lies in one of its folders, wherever links lead."""
    real = Path(os.path.realpath(path))
    files = [home.marker, *(home.root / name for name in _FILES)]
    folders = [home.root / name for name in _FOLDERS]
    return any(real == Path(os.path.realpath(file)) for file in files) or any(
        real.is_relative_to(os.path.realpath(folder)) for folder in folders
    )


def require_safe(home: Home, path: Path) -> None:
    """Raise ImprintError (`unsafe-home`) when somebody else may have put there what is about to be run."""
    error = unsafe(home, path)
    if error is not None:
        raise error


def unsafe(home: Home, path: Path) -> ImprintError | None:
    """Return why nothing at `path` is run, None when it may be.

    `path` is the home itself or lies in it. It, and every folder on the way, may be written by its owner and a group,
    not by everybody; and root runs nothing that another user owns. A path outside the home is not judged.
    """
    if sys.platform == "win32":
        return None
    shared: Path | None = None
    for place in _way(home.root, path):
        try:
            found = place.lstat()
        except OSError:
            return None
        if shared is not None and found.st_uid not in {0, os.geteuid()}:
            return ImprintError(
                f"every user can put files into `{shared}`, and `{place}` belongs to {access.owner_of(found)}",
                hint=helps("own-home-or-remove", place=place),
                code="unsafe-home",
            )
        shared = place if found.st_mode & stat.S_IWOTH and _is_sticky(found) else None
        if not stat.S_ISLNK(found.st_mode) and found.st_mode & stat.S_IWOTH and not _is_sticky(found):
            mine = os.geteuid() in {0, found.st_uid}
            command = f"`{typed('chmod', 'o-w', place)}`" if mine else access.as_root("chmod", "o-w", place)
            return ImprintError(
                f"every user can write to `{place}`, so Imprint runs nothing in it",
                hint=helps("trusted-run", command=command),
                code="unsafe-home",
            )
        if os.geteuid() == 0 and found.st_uid != 0:
            owner = access.owner_of(found)
            take = typed("chown", "-R", "root", home.root)
            return ImprintError(
                f"`{place}` belongs to {owner}, and as root Imprint neither runs nor changes another user's files",
                hint=helps("as-owner-or-take", owner=owner, take=take),
                code="unsafe-home",
            )
    return None


def _way(root: Path, path: Path) -> Iterator[Path]:
    """Yield the home, each folder on the way down, and the path itself; nothing when it lies elsewhere."""
    if path != root and not path.is_relative_to(root):
        return
    place = root
    yield place
    for part in path.relative_to(root).parts:
        place /= part
        yield place


def _is_sticky(found: os.stat_result) -> bool:
    """Whether it is a folder in which nobody may replace what another user put there."""
    return stat.S_ISDIR(found.st_mode) and bool(found.st_mode & stat.S_ISVTX)


def _is_proven(home: Home) -> bool:
    if Path(os.path.realpath(sys.prefix)).is_relative_to(os.path.realpath(home.tool)):
        return True
    records = [(home.verdicts, {"schema", "verdicts"}), (home.current, {"schema", "generation", "since"})]
    records += [(folder / "manifest.json", {"schema", "id", "build", "locks"}) for folder in _below(home.runtimes)]
    for folder in _below(home.data / "inplace"):
        records += [(folder / name, {"schema", "identity", "prefix"}) for name in ("receipt.json", "journal.json")]
    return any(_holds(path, keys) for path, keys in records) or any(
        TOOL_ENVIRONMENT.fullmatch(folder.name) and _is_file(folder / "pyvenv.cfg") for folder in _below(home.tool)
    )


def _foreign_data(home: Home) -> list[str]:
    """Return what in the folder of state files no Imprint wrote; a file that is damaged may have been ours."""
    found = []
    for name in _names(home.data):
        if name in _STATE:
            path = home.data / name
            if isinstance(_json(path), dict) and not _holds(path, {"schema"}):
                found.append(name)
        elif name not in _OTHER_DATA and not _REST.fullmatch(name):
            found.append(name)
    return found


def _holds(path: Path, keys: set[str]) -> bool:
    value = _json(path)
    return isinstance(value, dict) and keys <= value.keys()


def _json(path: Path) -> object:
    """Return what a JSON file holds, None when it is none or cannot be read; a FIFO or a device is not opened."""
    try:
        if not _is_file(path):
            return None
        with path.open("rb") as file:
            return json.loads(file.read(_LONGEST))
    except (OSError, ValueError, RecursionError):
        return None


def _is_file(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


def _names(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208 - names only
    except OSError:
        return []


def _below(folder: Path) -> list[Path]:
    return [folder / name for name in _names(folder)]
