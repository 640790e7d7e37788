"""The one place that removes, moves, creates or overwrites: "may this path be touched" is asked here and nowhere else.

Every function takes the folder that its caller means to work in (`within`) and raises NotOursError for a path whose
real parent lies elsewhere, whatever links or `..` it goes through. The last part of a path is never followed: a link
is removed or replaced itself. Only the system's own errors (OSError) come out beside. Standard library only, so that
state and the launcher can use it; a test finds every call that changes files outside this module.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
import sys
import time
from pathlib import Path
from typing import IO

from imprint.errors import NotOursError
from imprint.hints import helps

_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
_FLAGS = getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0) | _NOFOLLOW

TEMPORARY = ".tmp"
"""How the files end that are written beside what they are about to replace; a killed run leaves one at most."""


class Fence:
    """The folder that a caller means to work in, for thousands of files in one go: each parent is looked up once.

    It is for the moment of one change alone; what a link is made to lead to meanwhile it does not see.
    """

    def __init__(self, within: Path) -> None:
        self.within = within
        self._root: str | None = None
        self._reals: dict[str, str | None] = {}

    def __fspath__(self) -> str:
        return os.fspath(self.within)

    def real_of(self, folder: str) -> str | None:
        """Return where a folder really is; None when that is neither this one nor below it."""
        if folder in self._reals:
            return self._reals[folder]
        try:
            root = self._root = self._root or os.path.realpath(self.within)
            real: str | None = os.path.realpath(folder)
        except OSError:
            return None
        if real != root and not (real or "").startswith(root.rstrip(os.sep) + os.sep):
            real = None
        self._reals[folder] = real
        return real


def require_within(path: Path, within: Path | Fence) -> Path:
    """Return where `path` really is, itself not followed. Raises NotOursError when that is not below `within`."""
    place = _place(path, within)
    if place is None:
        raise NotOursError(
            f"`{path}` is not inside `{os.fspath(within)}`, so it was not changed",
            hint=helps("points-outside"),
        )
    return Path(place)


def remove_file(path: Path, *, within: Path | Fence) -> bool:
    """Remove a file, or a link and not what it leads to; return whether there was one. Folders are refused."""
    place = require_within(path, within)
    try:
        if stat.S_ISDIR(os.lstat(place).st_mode):
            raise NotOursError(f"`{path}` is a folder where a file was expected, so it was not removed")
        os.unlink(place)
    except FileNotFoundError:
        return False
    except PermissionError:
        # Windows keeps a file that is mapped, but lets it be renamed.
        if os.name != "nt":
            raise
        os.rename(place, place.with_name(f".{place.name}.{os.urandom(4).hex()}{TEMPORARY}"))
    return True


def forget_file(path: Path, *, within: Path | Fence) -> None:
    """Remove a file that nothing depends on, as far as that is possible: what lies in its place otherwise stays."""
    with contextlib.suppress(OSError, NotOursError):
        remove_file(path, within=within)


def remove_tree(path: Path, *, within: Path | Fence) -> bool:
    """Remove a folder and all below it, or a link itself; return whether nothing of it is left.

    Folders in it that may not be written are made writable, as far as they are this user's. What cannot be removed
    stays, and is for the caller to notice: half a folder is no reason to keep the other half.
    """
    place = require_within(path, within)
    try:
        mode = os.lstat(place).st_mode
    except FileNotFoundError:
        return True
    if stat.S_ISDIR(mode):
        shutil.rmtree(place, ignore_errors=True)
        if os.path.lexists(place):
            _make_writable(place)
            shutil.rmtree(place, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            os.unlink(place)
    return not os.path.lexists(place)


def _make_writable(top: Path) -> None:
    for folder, _, _ in os.walk(top):
        with contextlib.suppress(OSError):
            # Opened first: what is a link by now is an error, and not followed.
            descriptor = os.open(folder, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | _FLAGS)
            try:
                os.chmod(descriptor, stat.S_IMODE(os.fstat(descriptor).st_mode) | stat.S_IRWXU)
            finally:
                os.close(descriptor)


def remove_empty(path: Path, *, within: Path | Fence) -> bool:
    """Remove a folder if it is empty; return whether it was. A link to a folder stays."""
    place = require_within(path, within)
    try:
        if not stat.S_ISDIR(os.lstat(place).st_mode):
            return False
        os.rmdir(place)
    except OSError:
        return False
    return True


def move(source: Path, target: Path, *, within: Path | Fence) -> None:
    """Rename `source` to `target`, over a file or a link that is there; both lie below `within`.

    Raises IsADirectoryError when a folder is there. Between two disks a file is copied, and a link made again.
    """
    start, place = require_within(source, within), require_within(target, within)
    with contextlib.suppress(FileNotFoundError):
        if stat.S_ISDIR(os.lstat(place).st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(target))
    try:
        _rename_over(start, place)
    except OSError as error:
        mode = os.lstat(start).st_mode
        if error.errno != errno.EXDEV or not (stat.S_ISREG(mode) or stat.S_ISLNK(mode)):
            raise
        if stat.S_ISLNK(mode):
            _copy_link(start, place)
        else:
            copy_file(start, place, within=within)
        os.unlink(start)


def _copy_link(source: Path, place: Path) -> None:
    temporary = _beside(place)
    os.symlink(os.readlink(source), temporary)
    try:
        _rename_over(temporary, place)
    except BaseException:
        _forget(temporary)
        raise


def copy_file(source: Path, target: Path, *, within: Path | Fence) -> None:
    """Copy a regular file's content and mode over `target`, which is replaced whole."""
    place = require_within(target, within)
    temporary = _beside(place)
    descriptor = _create(temporary, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as copy, Path(source).open("rb") as original:
            shutil.copyfileobj(original, copy, 1024 * 1024)
        shutil.copystat(source, temporary)
        _rename_over(temporary, place)
    except BaseException:
        _forget(temporary)
        raise


def write_file(  # noqa: PLR0913 - all but the first two are keywords
    path: Path,
    content: bytes,
    *,
    within: Path | Fence,
    durable: bool = True,
    private: bool = False,
    mode: int | None = None,
) -> None:
    """Replace `path` so that a reader, or a power cut, sees the old content or the new; missing folders are made.

    The mode is `mode` where one is given, else 0600 when `private`, else as the umask says. Without `durable` a power
    cut may leave a damaged file.
    """
    make_folder(path.parent, within=within)
    place = require_within(path, within)
    temporary = _beside(place)
    descriptor = _create(temporary, 0o600 if private or mode is not None else 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            if mode is not None and hasattr(os, "fchmod"):
                os.fchmod(descriptor, mode)
            file.write(content)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        _rename_over(temporary, place)
    except BaseException:
        _forget(temporary)
        raise
    if durable:
        sync_folder(place.parent)


def create_file(path: Path, *, within: Path | Fence, private: bool = False) -> int:
    """Create a file that is not there yet and return its descriptor for reading and writing.

    Raises FileExistsError when anything is there, a dangling link too.
    """
    return _create(require_within(path, within), 0o600 if private else 0o666)


def create_unnamed(path: Path, *, within: Path | Fence) -> int | None:
    """Create the file that `name_file` will call `path`, and return its descriptor: a killed run leaves nothing.

    None where the system or the disk has no files without a name, or none can be made there.
    """
    if not hasattr(os, "O_TMPFILE") or not os.path.exists("/proc/self/fd"):
        return None
    try:
        return os.open(require_within(path, within).parent, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o666)
    except OSError:
        return None


def name_file(descriptor: int, path: Path, *, within: Path | Fence) -> None:
    """Give a file that `create_unnamed` made its name; raises FileExistsError when anything is there."""
    # Only with a descriptor, which an absolute path makes idle, does Python follow the link in /proc.
    os.link(f"/proc/self/fd/{descriptor}", require_within(path, within), src_dir_fd=descriptor, follow_symlinks=True)


def nameless_file() -> IO[bytes]:
    """Open a file that nobody else can open and that goes by itself: in memory where no folder takes one.

    Raises FileNotFoundError where there is neither.
    """
    import tempfile  # with much behind it, for what runs children

    try:
        return tempfile.TemporaryFile()
    except FileNotFoundError:
        # No folder for temporary files can be written, as in a container without any.
        if not hasattr(os, "memfd_create"):
            raise
        return os.fdopen(os.memfd_create("imprint"), "w+b")


def open_lock(path: Path, *, within: Path | Fence) -> int:
    """Open a file of ours to lock it, or to write into it, and create it when missing; a link there is an error."""
    return os.open(require_within(path, within), os.O_RDWR | os.O_CREAT | _FLAGS, 0o666)


def make_folder(path: Path, *, within: Path | Fence) -> None:
    """Make a folder and those above it, `within` too; one that is there stays."""
    if os.path.normpath(path) != os.path.normpath(within):
        # The nearest folder that is there has to be ours; what is made below it then is.
        first = path
        while not os.path.lexists(first.parent) and first.parent != first:
            first = first.parent
        if os.path.lexists(within):
            require_within(first, within)
    Path(path).mkdir(parents=True, exist_ok=True)


def new_folder(prefix: str, *, within: Path | Fence) -> Path:
    """Make a folder in `within` that nobody else has and return it; its name begins with `prefix`."""
    for _ in range(100):
        folder = Path(within) / f"{prefix}{os.urandom(4).hex()}"
        try:
            require_within(folder, within).mkdir(mode=0o777)
        except FileExistsError:
            continue
        return folder
    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), os.path.join(within, prefix))


def link_file(source: Path, target: Path, *, within: Path | Fence) -> None:
    """Give a regular file a second name. Raises OSError where the disk cannot."""
    os.link(source, require_within(target, within), follow_symlinks=False)


def sync_folder(folder: Path) -> None:
    """Make renames in `folder` survive a power cut, where the system can (not on Windows)."""
    if sys.platform == "win32":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some network and overlay file systems cannot sync a folder; the rename itself is still atomic.
        if error.errno not in {errno.EINVAL, errno.ENOTSUP}:
            raise
    finally:
        os.close(descriptor)


def _place(path: Path, within: Path | Fence) -> str | None:
    """Return where `path` really is, itself not followed; None when that is not below `within`."""
    parent, name = os.path.split(os.fspath(path))
    if name in {"", ".", ".."} or "\0" in os.fspath(path):
        return None
    fence = within if isinstance(within, Fence) else Fence(within)
    real = fence.real_of(parent)
    return os.path.join(real, name) if real is not None else None


def _beside(place: Path) -> Path:
    # A long name must not become too long a name.
    return place.with_name(f".{place.name[:200]}.{os.urandom(4).hex()}{TEMPORARY}")


def _create(place: Path, mode: int) -> int:
    return os.open(place, os.O_RDWR | os.O_CREAT | os.O_EXCL | _FLAGS, mode)


def _forget(temporary: Path) -> None:
    with contextlib.suppress(OSError):
        os.unlink(temporary)


def _rename_over(source: Path, target: Path) -> None:
    # On Windows a virus scanner or a reader without delete sharing refuses the replacement for a moment.
    for pause in (0.02, 0.1, 0.5) if sys.platform == "win32" else ():
        try:
            os.replace(source, target)
        except PermissionError:
            time.sleep(pause)
        else:
            return
    os.replace(source, target)
