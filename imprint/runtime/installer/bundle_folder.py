"""The folder a bundle is collected in: what in it is ours, and how files get there and go.

It is ours by its `manifest.json`, which is written before the first wheel: only what a manifest of ours names is ever
replaced or removed there.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

from imprint import touch
from imprint.errors import ImprintError, IntegrityError, NotOursError, UsageError
from imprint.hints import helps
from imprint.runtime.installer import space
from imprint.runtime.installer.bundle import File, digest_of
from imprint.runtime.installer.fetching import Source, read
from imprint.runtime.installer.uv import MIRROR, Uv
from imprint.runtime.installer.watch import most_of
from imprint.state import files

MANIFEST = "manifest.json"
_LOCKS = "locks"
_NAME = re.compile(rf"[\w.+!-]+\.whl|{_LOCKS}/[\w.-]+\.txt")
_NOBODYS = frozenset({"lost+found", ".DS_Store"})


class Folder:
    """A bundle's folder, new or to be brought up to date. Links in it are never followed.

    Raises NotOursError for a folder that holds anything and is no bundle, NoSpaceError and ImprintError
    (`folder-not-writable`) where it cannot be written to.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.owned = self._named_before()
        """The files that are ours to replace or remove."""

    def begin(self, manifest: Mapping[str, Any], digests: Mapping[str, Path]) -> None:
        """Write the locks, and the manifest of a bundle that is not complete yet; it says what will have to go."""
        new = {*manifest["wheels"], *(f"{_LOCKS}/{name}" for name in digests)}
        for name in new - self.owned:
            if os.path.lexists(self.root / name):
                raise NotOursError(
                    f"`{self.root / name}` is not in a bundle's manifest, so it was not replaced",
                    hint=helps("move-away-or-another-folder"),
                )
        stale = sorted(self.owned - new)
        self.owned |= new
        self._write(MANIFEST, _document({**manifest, "complete": False, "stale": stale}))
        for name, path in digests.items():
            self._write(f"{_LOCKS}/{name}", path.read_bytes())

    def fetch(self, file: File, uv: Uv, on_bytes: Callable[[int], None]) -> int:
        """Put one wheel into the folder and return its size; a file that is right already is kept.

        `on_bytes` is told how many bytes came, and a negative number when they have to come again. Raises NetworkError,
        IntegrityError (then no file is left), NoSpaceError.
        """
        path = self.root / file.name
        if _is_regular(path) and digest_of(path) == file.sha256:
            return path.stat().st_size
        partial = self.root / f"{file.name}.part"
        try:
            digest = self._copy(file, partial, uv, on_bytes)
            if digest != file.sha256:
                raise IntegrityError(
                    f"`{file.name}` does not match the lock: expected {file.sha256}, got {digest}",
                    hint=helps("deleted-another-mirror"),
                )
            touch.move(partial, path, within=self.root)
        except OSError as error:
            _raise_for_write(path, error)
        finally:
            touch.remove_file(partial, within=self.root)
        return path.stat().st_size

    def finish(self, manifest: Mapping[str, Any]) -> None:
        """Remove what earlier bundles in this folder held and this one does not, and write the manifest."""
        kept = {*manifest["wheels"], *(f"{_LOCKS}/{name}" for name in manifest["locks"])}
        for name in self.owned - kept:
            touch.remove_file(self.root / name, within=self.root)
        self._write(MANIFEST, _document({**manifest, "complete": True}))

    def _copy(self, file: File, partial: Path, uv: Uv, on_bytes: Callable[[int], None]) -> str:
        """Write the file to `partial` and return its digest."""
        touch.remove_file(partial, within=self.root)
        seen, count = hashlib.sha256(), 0
        most = file.size if file.size is not None else most_of(None)
        with os.fdopen(touch.create_file(partial, within=self.root), "wb") as target:

            def again() -> None:
                nonlocal seen, count
                target.seek(0)
                target.truncate()
                on_bytes(-count)
                seen, count = hashlib.sha256(), 0

            index = uv.sources.index_url or uv.environ.get(MIRROR)
            source = Source(file.where, file.name, file.size, index, uv.environ)
            for chunk in read(source, again):
                count += len(chunk)
                if count > most:
                    raise IntegrityError(f"`{file.name}` is longer than the index says ({most} bytes)")
                seen.update(chunk)
                target.write(chunk)
                on_bytes(len(chunk))
            target.flush()
            os.fsync(target.fileno())
        return seen.hexdigest()

    def _write(self, name: str, content: bytes) -> None:
        try:
            touch.write_file(self.root / name, content, within=self.root)
        except OSError as error:
            _raise_for_write(self.root / name, error)

    def _named_before(self) -> set[str]:
        try:
            touch.make_folder(self.root, within=self.root)
            there = set(os.listdir(self.root)) - _NOBODYS  # noqa: PTH208 - names only
            manifest = files.read_json(self.root / MANIFEST) if _is_regular(self.root / MANIFEST) else None
        except OSError as error:
            _raise_for_write(self.root, error)
        named = parse_manifest(manifest or {})
        if named is None and there:
            raise NotOursError(
                f"`{self.root}` contains files, but is not one of Imprint's bundles",
                hint=helps("empty-folder"),
            )
        return named or set()


def parse_manifest(manifest: Mapping[str, Any]) -> set[str] | None:
    """Return the files that a bundle's manifest names, None for a document that is not one."""
    wheels, locks, stale = (manifest.get(name) for name in ("wheels", "locks", "stale"))
    if not isinstance(wheels, dict) or not isinstance(locks, dict) or not isinstance(manifest.get("platform"), str):
        return None
    names = {*wheels, *(f"{_LOCKS}/{name}" for name in locks), *(stale if isinstance(stale, list) else ())}
    return {name for name in names if isinstance(name, str) and _NAME.fullmatch(name)}


def _document(value: Mapping[str, Any]) -> bytes:
    return (json.dumps(value, indent=2) + "\n").encode("ascii")


def _is_regular(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


def _raise_for_write(path: Path, error: OSError) -> NoReturn:
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        raise space.error(None, path.parent) from error
    if isinstance(error, NotADirectoryError | FileExistsError):
        raise UsageError(f"`{path}` is not a folder", hint=helps("empty-folder")) from error
    raise ImprintError(
        f"cannot write `{path}`: {error.strerror or error}",
        hint=helps("writable-folder"),
        code="folder-not-writable",
    ) from error
