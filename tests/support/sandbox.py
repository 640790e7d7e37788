"""Runs a callable where one folder alone can be written, and tells whether anything beside it changed.

A fork enters a mount namespace of its own in which every mount is read-only, bound over which the one folder is
writable. What runs there may try to delete the whole disk. The network, `/proc` and devices stay as they are.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import os
import pickle
import select
import signal
import stat
import struct
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

SECONDS = 200.0
"""Nothing that is run here takes that long unless it hangs."""

_CLONE_NEWNS, _CLONE_NEWUSER = 0x20000, 0x10000000
_MS_BIND, _MS_REC, _MS_PRIVATE = 0x1000, 0x4000, 0x40000
_MOUNT_SETATTR, _AT_FDCWD, _AT_RECURSIVE, _RDONLY = 442, -100, 0x8000, 1
_PR_CAPBSET_DROP, _CAPABILITIES_3 = 24, 0x20080522
_PAST_MODES = (1, 2, 3)
"""CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH and CAP_FOWNER of capability.h (Linux 6)."""
_WHOLE = 4 << 20


class SandboxError(AssertionError):
    """No sandbox could be made, or what ran in it failed; never an outcome to be taken for a pass."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What a path is: its kind and mode, a link's target or a file's content, owner, and how many names it has."""

    kind: str
    mode: int
    content: str
    owner: int
    names: int

    def __str__(self) -> str:
        names = f", {self.names} names" if self.names != 1 else ""
        return f"{self.kind}{self.mode:o} {self.content[:30]}{names}".strip()


@dataclass(slots=True)
class _Answer:
    """What the fork sends: a value, or the text of what it raised."""

    value: object = None
    problem: str | None = None


def run_in(scratch: Path, body: Callable[[], T], seconds: float = SECONDS, *, plain: bool = False) -> T:
    """Run `body` in a fork that can write below `scratch` alone and return what it returned, which is pickled.

    With `plain` the superuser loses the right to go past modes, as everybody else never had it.

    Raises SandboxError when there can be no such fork, with the reason, when the body raises, with its traceback, and
    when it has not ended after `seconds`.
    """
    scratch = scratch.resolve()
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        # Python warns of a fork with threads; nothing here starts any before it.
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        os.close(reader)
        _be_the_fork(scratch, body, writer, plain=plain)
    os.close(writer)
    try:
        received = _receive(reader, pid, seconds)
    finally:
        os.close(reader)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
    if not received:
        raise SandboxError(f"the sandbox ended without an answer (status {os.waitstatus_to_exitcode(status)})")
    answer: _Answer = pickle.loads(received)  # noqa: S301 - our own fork wrote it
    if answer.problem is not None:
        raise SandboxError(answer.problem)
    return answer.value  # type: ignore[return-value]


def sandboxed(test: Callable[P, None]) -> Callable[P, None]:
    """Run a test in a fork that can write below its `tmp_path` alone. It has to ask for that fixture."""

    @functools.wraps(test)
    def inside(*arguments: P.args, **named: P.kwargs) -> None:
        scratch = named["tmp_path"]
        assert isinstance(scratch, Path)
        run_in(scratch, lambda: test(*arguments, **named))

    return inside


def snapshot(root: Path, *, without: Callable[[str], bool] = lambda _: False) -> dict[str, Entry]:
    """Return every path below `root`, itself as `.`, links not followed; those for which `without` holds are left out.

    Nothing where there is no `root`. Times are not told: looking changes them.
    """
    found: dict[str, Entry] = {}
    pending: list[str] = []
    if os.path.lexists(root):
        found["."] = _entry(str(root))
        pending.append("")
    while pending:
        folder = pending.pop()
        with contextlib.suppress(PermissionError), os.scandir(root / folder) as entries:
            for entry in entries:
                path = f"{folder}{entry.name}"
                if without(path):
                    continue
                found[path] = _entry(entry.path)
                if entry.is_dir(follow_symlinks=False):
                    pending.append(f"{path}/")
    return found


def differences(before: Mapping[str, Entry], after: Mapping[str, Entry]) -> list[str]:
    """Return what differs between two snapshots, a line each."""
    lines = []
    for path in sorted({*before, *after}, key=str):
        old, new = before.get(path), after.get(path)
        if old is not None and new is not None and old != new:
            lines.append(f"changed: {path}: {old} -> {new}")
        elif old is None or new is None:
            lines.append(f"{'new' if old is None else 'gone'}: {path}: {new or old}")
    return lines


def _entry(path: str) -> Entry:
    status = os.lstat(path)
    mode = status.st_mode
    content = ""
    if stat.S_ISLNK(mode):
        content = os.readlink(path)  # noqa: PTH115 - thousands of these
    elif stat.S_ISREG(mode):
        content = f"{status.st_size} {_digest(path, status)}"
    names = 1 if stat.S_ISDIR(mode) else status.st_nlink
    return Entry(stat.filemode(mode)[0], stat.S_IMODE(mode), content, status.st_uid, names)


def _digest(path: str, status: os.stat_result) -> str:
    # The first part of a file that was made large on purpose has to do.
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - as above
            return hashlib.sha256(file.read(min(status.st_size, _WHOLE))).hexdigest()[:20]
    except PermissionError:
        return "unreadable"


def _be_the_fork(scratch: Path, body: Callable[[], object], writer: int, *, plain: bool) -> NoReturn:
    code = 1
    try:
        os.setsid()
        try:
            _confine(scratch)
            if plain:
                _heed_modes()
            answer = _Answer(body())
        except BaseException:
            answer = _Answer(problem=traceback.format_exc())
        content = pickle.dumps(answer)
        while content:
            content = content[os.write(writer, content) :]
        code = 0
    finally:
        os._exit(code)


def _receive(reader: int, pid: int, seconds: float) -> bytes:
    deadline = time.monotonic() + seconds
    parts: list[bytes] = []
    while True:
        ready, _, _ = select.select([reader], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            raise SandboxError(f"what ran in the sandbox (process {pid}) did not end within {seconds:g} s")
        part = os.read(reader, 1 << 16)
        if not part:
            return b"".join(parts)
        parts.append(part)


def _confine(scratch: Path) -> None:
    """Make everything but `scratch` read-only for this process and its children, and see that it is so."""
    libc = ctypes.CDLL(None, use_errno=True)
    user, group = os.geteuid(), os.getegid()
    _call(libc.unshare(_CLONE_NEWNS | (_CLONE_NEWUSER if user else 0)), "no mount namespace can be made here")
    if user:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"0 {user} 1")
        Path("/proc/self/gid_map").write_text(f"0 {group} 1")
    name = os.fsencode(scratch)
    _call(libc.mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE, None), "mounts cannot be made private")
    _call(libc.mount(name, name, None, _MS_BIND, None), "the folder cannot be bound")
    read_only, writable = struct.pack("QQQQ", _RDONLY, 0, 0, 0), struct.pack("QQQQ", 0, _RDONLY, 0, 0)
    for path, flags, attributes in ((b"/", _AT_RECURSIVE, read_only), (name, 0, writable)):
        answer = libc.syscall(_MOUNT_SETATTR, _AT_FDCWD, path, flags, attributes, len(attributes))
        _call(answer, "mounts cannot be made read-only (Linux 5.12 can)")
    os.chdir(scratch)
    left = [where for where, options in _mounts() if "ro" not in options and where != str(scratch)]
    if left or not os.access(scratch, os.W_OK):
        raise SandboxError(f"no sandbox: these mounts can still be written: {left}")


def _heed_modes() -> None:
    """Give up, for this process and its children, the capabilities that go past modes and owners."""
    libc = ctypes.CDLL(None, use_errno=True)
    for capability in _PAST_MODES:
        _call(libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0), "capabilities cannot be given up")
    header, kept = struct.pack("Ii", _CAPABILITIES_3, 0), 0xFFFFFFFF & ~sum(1 << each for each in _PAST_MODES)
    sets = (ctypes.c_uint32 * 6)()
    _call(libc.capget(header, sets), "capabilities cannot be read")
    for number in range(3):
        sets[number] &= kept
    _call(libc.capset(header, sets), "capabilities cannot be set")


def _call(answer: int, problem: str) -> None:
    if answer:
        reason = os.strerror(ctypes.get_errno())
        raise SandboxError(f"no sandbox, so nothing that deletes is tried: {problem}: {reason}")


def _mounts() -> Iterator[tuple[str, list[str]]]:
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        fields = line.split()
        yield fields[4].encode().decode("unicode_escape").encode("latin-1").decode(), fields[5].split(",")
