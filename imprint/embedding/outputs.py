"""Writes rows to a file or a stream: a file appears whole or not at all, an npy header is completed at the end."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from imprint import access, touch
from imprint.errors import ImprintError, NoSpaceError, UsageError
from imprint.hints import helps

FORMATS = {"jsonl": "jsonl", "npy": "raw", "text": "text"}
"""Each output format and how its rows are encoded."""

STDOUT = frozenset({"-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"})
"""Names of standard output."""

_NPY_HEAD = 128


_NOT_KEPT = (UsageError, NoSpaceError)
"""What the input or the disk is to blame for: it has to be mended first, and then everything comes again."""


class Output:
    """Takes encoded rows. A context manager: what was written counts only after `finish`.

    `path` None writes to `stream`. A regular file is written beside its place and renamed over it at the end; a
    device or a pipe is written to directly. npy rows that cannot be rewound wait in a temporary file. When an interrupt
    or the worker's end breaks the body off, the rows of a file are kept beside its place, in `kept`.
    """

    def __init__(self, path: Path | None, stream: IO[bytes], form: str, dims: int) -> None:
        # A link to a file stays one; a name like /dev/fd/63 leads to a pipe that has no path.
        follow = path is not None and (path.is_file() or not path.exists())
        self._path = Path(os.path.realpath(path)) if path is not None and follow else path
        self._stream = self._given = stream
        self._device: IO[bytes] | None = None
        self._npy = form == "npy"
        self._dims = dims
        self._file: IO[bytes] | None = None
        self._beside: Path | None = None
        self._unfinished: Path | None = None
        self.rows = 0
        self.kept: Path | None = None

    def __enter__(self) -> Self:
        try:
            self._open()
        except OSError as error:
            self._close()
            raise self._error(error) from error
        except UsageError:
            self._close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.rows and isinstance(error, KeyboardInterrupt | ImprintError) and not isinstance(error, _NOT_KEPT):
            with contextlib.suppress(OSError):
                self._keep()
        self._close()

    def write(self, count: int, data: bytes) -> None:
        """Add `count` encoded rows. Raises NoSpaceError, ImprintError (`output-not-writable`), BrokenPipeError."""
        if self._file is None:
            raise ValueError("the output is not open")
        try:
            self._file.write(data)
            if self._file is self._stream:
                self._file.flush()
        except OSError as error:
            raise self._error(error) from error
        self.rows += count

    def finish(self) -> None:
        """Complete the output and put it in its place. Raises as `write` does."""
        if self._file is None:
            raise ValueError("the output is not open")
        try:
            self._complete(self._file)
        except OSError as error:
            raise self._error(error) from error

    def _open(self) -> None:
        direct = self._stream
        if self._path is not None:
            _refuse_loop(self._path)
            if self._path.is_dir():
                raise UsageError(f"`{self._path}` is a folder; `--output` names a file")
            if not self._path.parent.is_dir():
                raise UsageError(f"the folder of `{self._path}` does not exist")
            if not self._path.exists() or stat.S_ISREG(self._path.stat().st_mode):
                beside = self._path.with_name(f".{self._path.name[:200]}.{os.urandom(4).hex()}.tmp")
                self._beside = beside
                descriptor = touch.create_unnamed(beside, within=beside.parent)
                if descriptor is None:
                    descriptor = touch.create_file(beside, within=beside.parent)
                    self._unfinished = beside
                self._file = os.fdopen(descriptor, "w+b")
                if self._path.exists():
                    # What was private stays private.
                    os.chmod(self._unfinished or descriptor, stat.S_IMODE(self._path.stat().st_mode))  # noqa: PTH101
            else:
                self._stream = direct = self._device = self._path.open("wb")
        if self._npy and self._beside is None and direct.isatty():
            raise UsageError("npy is binary, but the output is a terminal", hint=helps("npy-to-a-file"))
        if self._file is None:
            self._file = touch.nameless_file() if self._npy else direct
        if self._npy:
            self._file.write(npy_head(0, self._dims))

    def _close(self) -> None:
        with contextlib.suppress(OSError):
            for file in (self._file, self._device):
                if file is not None and file is not self._given:
                    file.close()
        if self._unfinished is not None:
            touch.remove_file(self._unfinished, within=self._unfinished.parent)

    def _complete(self, file: IO[bytes]) -> None:
        if self._path is not None and self._beside is not None:
            self._put(self._complete_file(file, self._beside), self._path)
            return
        self._complete_head(file)
        if file is not self._stream:
            file.seek(0)
            shutil.copyfileobj(file, self._stream)
            self._stream.flush()

    def _complete_file(self, file: IO[bytes], beside: Path) -> Path:
        """Complete the file and return its name: until then it has none where the system allows that."""
        if not file.closed:  # else it is complete, and only its place refused it
            self._complete_head(file)
            os.fsync(file.fileno())
            if self._unfinished is None:
                touch.name_file(file.fileno(), beside, within=beside.parent)
                self._unfinished = beside
            file.close()
        return beside

    def _complete_head(self, file: IO[bytes]) -> None:
        if self._npy:
            file.seek(0)
            file.write(npy_head(self.rows, self._dims))
        file.flush()

    def _put(self, unfinished: Path, place: Path) -> None:
        touch.move(unfinished, place, within=place.parent)
        self._unfinished = None

    def _keep(self) -> None:
        """Put what was written where nothing is yet."""
        if self._file is None or self._beside is None or self._path is None:
            return
        names = (f"{self._path.name}.partial{number}" for number in ("", *(f"-{n}" for n in range(2, 1000))))
        place = next((place for place in map(self._path.with_name, names) if not os.path.lexists(place)), None)
        if place is None:
            return
        self._put(self._complete_file(self._file, self._beside), place)
        self.kept = place

    def _error(self, error: OSError) -> Exception:
        if isinstance(error, BrokenPipeError):
            return error
        where = f"`{self._path}`" if self._path is not None else "standard output"
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            return NoSpaceError(f"no space left to write {where}", hint=helps("free-space"))
        why = "is closed" if error.errno == errno.EBADF else f"cannot be written: {error.strerror}"
        hint = helps("another-output") if self._path is not None else None
        return ImprintError(f"{where} {why}", hint=hint, code="output-not-writable")


def _refuse_loop(path: Path) -> None:
    """Raise UsageError where a link that leads to itself is on the way: nothing can be written there."""
    try:
        path.stat()
    except OSError as error:
        if error.errno == errno.ELOOP:
            why, hint = access.explain(error, path)
            raise UsageError(why, hint=hint) from error


def npy_head(rows: int, dims: int) -> bytes:
    """Return the 128-byte head of an .npy file (format 1.0) of float32, little-endian, C order, [rows, dims].

    Source: NEP 1. The length is fixed, so that the head of a file of unknown length can be written again at the end.
    """
    text = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {dims}), }}"
    start = b"\x93NUMPY\x01\x00" + (_NPY_HEAD - 10).to_bytes(2, "little")
    return start + text.encode("ascii").ljust(_NPY_HEAD - 10 - 1) + b"\n"
