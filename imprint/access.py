"""Says what the system refused, whose fault it is, and the command that helps: "no permission" is never "damaged".

Looks at owners and modes, changes nothing. A command is named only where it can work: `chmod` for the owner, `chown` or
`chmod` as root for what is somebody else's, none for what no command changes. Standard library only.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import sys
from pathlib import Path

from imprint.errors import ImprintError
from imprint.hints import helps
from imprint.quoting import typed

_PERMISSION = {errno.EACCES, errno.EPERM}
_BAD_PATH = {errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG}
_NO_FOLDER = {errno.ENOTDIR, errno.EEXIST}
"""What the system says where something else lies in a folder's place: it was to be entered, or to be made."""

CODES = {
    **dict.fromkeys(_PERMISSION, "no-permission"),
    **dict.fromkeys(_BAD_PATH, "bad-path"),
    errno.EROFS: "read-only",
    errno.EIO: "disk-error",
    errno.ESTALE: "disk-error",
    errno.ENXIO: "disk-error",
    errno.ENODEV: "disk-error",
    errno.EMFILE: "open-files-limit",
    errno.ENFILE: "open-files-limit",
    errno.EAGAIN: "process-limit",
    errno.ENOMEM: "no-memory",
}
"""The stable code of each error number that is a fact about the surroundings and not a fault of Imprint's."""

_HINTS = {
    errno.EROFS: "mount-writable",
    errno.EIO: "disk-errors",
    errno.ESTALE: "mount-again",
    errno.EMFILE: "more-open-files",
    errno.ENFILE: "close-files",
    errno.EAGAIN: "more-processes",
    errno.ENOMEM: "free-memory",
    errno.ENAMETOOLONG: "shorter-path",
}
_WORDS = {
    errno.EROFS: "the file system is read-only",
    errno.EIO: "the disk failed (input/output error)",
    errno.ESTALE: "the network file system is gone (stale file handle)",
    errno.EMFILE: "this process has too many files open",
    errno.ENFILE: "the system has too many files open",
    errno.EAGAIN: "the system does not allow another process",
    errno.ENOMEM: "the system is out of memory",
    errno.ENAMETOOLONG: "the path, or a name in it, is too long",
}


def is_file(path: Path) -> bool:
    """Whether there is a regular file, links followed. What this user may not look at is none, as on a newer Python."""
    return os.path.isfile(path)  # noqa: PTH113 - `Path.is_file` raises before Python 3.14


def is_folder(path: Path) -> bool:
    """Whether there is a folder, links followed. What this user may not look at is none, as on a newer Python."""
    return os.path.isdir(path)  # noqa: PTH112 - as above


def error_of(error: OSError, root: Path | None = None) -> ImprintError | None:
    """Return what an error of the system's amounts to for a person, None where it says nothing about the system.

    `root` is the home, where it is known.
    """
    code = CODES.get(error.errno or 0)
    if code is None:
        return None
    named = error.filename if isinstance(error.filename, str | bytes) else None
    path = Path(os.fsdecode(named)).absolute() if named else None
    ours = path is not None and root is not None and path.is_relative_to(root)
    why, hint = explain(error, path, root if ours else None)
    return ImprintError(f"cannot use `{path}`: {why}" if path is not None else why, hint=hint, code=code)


def explain(
    error: OSError, path: Path | None, root: Path | None = None, *, writing: bool = False
) -> tuple[str, str | None]:
    """Return why the system refused `path`, as a fragment, and what helps, None where nothing is known to.

    `root` is the folder of ours in which `path` lies: what belongs to one user there is meant to belong to them all.
    """
    number = error.errno or 0
    if path is not None and number in _PERMISSION:
        return _permission(path, root or path, writing=writing)
    if path is not None and number in _NO_FOLDER | {errno.ELOOP, errno.EISDIR}:
        return _bad_path(path, error)
    if number == errno.ENAMETOOLONG and root is not None:
        return _WORDS[number], helps("shorter-home")
    hint = helps(_HINTS[number]) if number in _HINTS else None
    return _WORDS.get(number, (error.strerror or str(error)).lower()), hint


def owner_of(status: os.stat_result) -> str:
    """Return the user a file belongs to: the name, or `user 1000` where the system has none for that number."""
    return _user(status.st_uid, "user ")


def me() -> str:
    """Return this user as `chown` takes it: the name, or the number where the system has no name for it."""
    return _user(os.geteuid())


def as_root(*command: str | Path) -> str:
    """Return a command, in backticks, as somebody who may run it types it: with sudo where there is one."""
    text = typed(*command)
    return f"`sudo {text}`" if shutil.which("sudo") else f"as root `{text}`"


def blocked_at(path: Path, *, writing: bool = False) -> Path:
    """Return what keeps this user from `path`: a folder on the way that may not be entered, or the path itself.

    With `writing` also the folder in which the path, or the first missing folder on the way, would have to be made.
    """
    for folder in reversed(path.parents):
        if not os.path.lexists(folder):
            return folder.parent
        if not _may(folder, os.X_OK):
            return folder
    if writing and not _may(path.parent, os.W_OK):
        return path.parent
    return path if os.path.lexists(path) else path.parent


def _may(path: Path, mode: int) -> bool:
    return os.access(path, mode, effective_ids=os.access in os.supports_effective_ids)


def _permission(path: Path, root: Path, *, writing: bool) -> tuple[str, str | None]:
    culprit = blocked_at(path, writing=writing)
    why = "permission denied"
    if sys.platform == "win32":
        return why, helps("give-access", path=os.fspath(culprit))
    try:
        found = culprit.lstat()
    except OSError:
        return why, None
    what = "it" if culprit == path else f"`{culprit}`"
    if found.st_uid == os.geteuid():
        why += f", {what} has the mode {stat.S_IMODE(found.st_mode):04o}"
    else:
        why += f", {what} belongs to {owner_of(found)}"
    if os.geteuid() == 0 or (not stat.S_ISDIR(found.st_mode) and _may(culprit, os.W_OK if writing else os.R_OK)):
        return why, helps("mode-allows")
    return why, _remedy(culprit, found, root, writing=writing)


def _remedy(culprit: Path, found: os.stat_result, root: Path, *, writing: bool) -> str:
    """Return what gives this user access to `culprit`, as far as it lies in `root`, and to what is there like it."""
    if found.st_uid == os.geteuid():
        return helps("run", command=typed("chmod", "-R", "u+rwX", _all_of(culprit, root)))
    if not culprit.is_relative_to(root):
        enter = as_root("chmod", "a+x", culprit)
        return helps("home-or-access-for-all", command=enter)
    whole = root.lstat()
    if whole.st_uid == os.geteuid():
        return helps("take-ownership", command=as_root("chown", "-R", me(), root))
    if whole.st_gid in {os.getegid(), *os.getgroups()} and whole.st_mode & (stat.S_IWGRP if writing else stat.S_IRGRP):
        return _for_the_group(_all_of(culprit, root), found, whole, writing=writing)
    return _for_others(culprit, root, owner_of(whole), writing=writing)


def _for_the_group(shared: Path, found: os.stat_result, whole: os.stat_result, *, writing: bool) -> str:
    if found.st_gid != whole.st_gid:
        return helps("give-to-the-group", command=as_root("chgrp", "-R", _group(whole.st_gid), shared))
    return helps("let-the-group-in", command=as_root("chmod", "-R", "g+rwX" if writing else "g+rX", shared))


def _for_others(culprit: Path, root: Path, owner: str, *, writing: bool) -> str:
    if writing:
        take = as_root("chown", "-R", me(), root)
        return helps("as-owner-or-own-home", owner=owner, command=take)
    only = ["-R"] if culprit != root else []
    enter = as_root("chmod", *only, "a+rX", _all_of(culprit, root))
    return helps("as-owner-or-let-read", owner=owner, command=enter)


def _all_of(culprit: Path, root: Path) -> Path:
    """Return the folder or file directly below `root` that holds `culprit`: as much as one command should change."""
    below = culprit.relative_to(root).parts if culprit.is_relative_to(root) else ()
    return root / below[0] if below else culprit


def _bad_path(path: Path, error: OSError) -> tuple[str, str | None]:
    for place in (*reversed(path.parents), path):
        if error.errno == errno.ELOOP and _loops(place):
            return f"`{place}` is a link that leads to itself", helps("run", command=typed("rm", place))
        if error.errno in _NO_FOLDER and os.path.lexists(place) and not is_folder(place):
            return f"`{place}` is not a folder", helps("move-away-or-another-home", place=place)
    if error.errno == errno.EISDIR and is_folder(path):
        return "it is a folder where a file belongs", helps("move-away-then-again", path=path)
    return (error.strerror or str(error)).lower(), None


def _loops(place: Path) -> bool:
    try:
        place.stat()
    except OSError as error:
        return error.errno == errno.ELOOP
    return False


def _user(number: int, prefix: str = "") -> str:
    try:
        import pwd

        return pwd.getpwuid(number).pw_name
    except (ImportError, KeyError):
        return f"{prefix}{number}"


def _group(number: int) -> str:
    try:
        import grp

        return grp.getgrgid(number).gr_name
    except (ImportError, KeyError):
        return str(number)
