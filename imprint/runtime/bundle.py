"""Collects the wheels that a lock pins for another machine into a folder, each checked against the lock's hashes.

Which files those are, and where, is the installer's answer; it has no command that fetches files without unpacking
them, so that is done here, with the same proxies, certificates and credentials.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import shutil
import ssl
import tempfile
import tomllib
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from imprint.errors import ImprintError, IntegrityError, NetworkError
from imprint.planning.model import Platform
from imprint.runtime.uv import MIRROR, Spot, Uv
from imprint.runtime.watch import most_of
from imprint.state.files import raise_for_write

_GLIBC = (17, 28, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40)
"""The glibc 2.x that the installer knows platforms for (uv 0.13, read 2026-11-29)."""

_SECONDS = 30.0
"""How long a server may be silent."""

_TRIES = 3
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class File:
    """One wheel: its name, SHA-256, size (None where the index does not say), and where it is."""

    distribution: str
    version: str
    name: str
    sha256: str
    size: int | None
    where: str


def spot_of(platform: Platform, python: str) -> Spot:
    """Return a platform as the installer names it. Raises ImprintError (`platform-unknown`) when it has no name."""
    arch = platform.arch
    if platform.os == "linux" and arch in {"x86_64", "aarch64"}:
        libc = platform.libc
        if libc is not None and libc.name == "musl":
            return Spot(f"{arch}-unknown-linux-musl", python)
        stated = re.match(r"2\.(\d+)", (libc.version if libc is not None else None) or "")
        minor = int(stated[1]) if stated else 34 if arch == "aarch64" else 28
        return Spot(f"{arch}-manylinux_2_{max((m for m in _GLIBC if m <= minor), default=17)}", python)
    if platform.os == "windows" and arch in {"x86_64", "aarch64"}:
        return Spot(f"{arch}-pc-windows-msvc", python)
    if platform.os == "macos" and arch in {"x86_64", "aarch64"}:
        return Spot(f"{arch}-apple-darwin", python, platform.os_version or "14.0")
    raise ImprintError(
        f"nothing can be collected for {platform.os or 'an unknown system'} {arch or ''}".rstrip(),
        hint="name one of linux, windows and macos with x86_64 or aarch64, such as linux-x86_64",
        code="platform-unknown",
    )


def files_of(uv: Uv, lock: Path, spot: Spot) -> tuple[File, ...]:
    """Return the wheels that a machine takes of a lock. Raises as `Uv.resolve`, and IntegrityError as `parse_files`."""
    with tempfile.TemporaryDirectory(dir=uv.home.root) as scratch:
        output = Path(scratch, "pylock.toml")
        uv.resolve(lock, spot, output)
        return parse_files(output.read_text("utf-8"), lock.read_text("utf-8"), lock.name)


def parse_files(text: str, lock: str, name: str) -> tuple[File, ...]:
    """Return the wheels of a pylock document. Raises IntegrityError for one whose hash the lock does not name."""
    found: list[File] = []
    for package in tomllib.loads(text).get("packages", ()):
        for row in package.get("wheels", ()):
            where = str(row.get("url") or row.get("path"))
            file = str(row.get("name") or urllib.parse.unquote(where.rsplit("/", 1)[-1]))
            digest = str(row.get("hashes", {}).get("sha256"))
            if f"sha256:{digest}" not in lock:
                raise IntegrityError(
                    f"`{file}` of the index is not one of those that `{name}` pins",
                    hint="nothing was kept of it; if a mirror alters packages, leave it out, else report this",
                )
            if Path(file).name != file or not file.endswith(".whl"):
                raise IntegrityError(f"the index names a file `{file}`, which is no wheel")
            size = row.get("size")
            found.append(File(package["name"], package["version"], file, digest, size, where))
    return tuple(found)


def fetch(file: File, folder: Path, uv: Uv, on_bytes: Callable[[int], None]) -> int:
    """Put one wheel into the folder and return its size; a file that is right already is kept.

    `on_bytes` is told how many bytes came. Raises NetworkError, IntegrityError (then no file is left), NoSpaceError.
    """
    path = folder / file.name
    if path.is_file() and _digest(path) == file.sha256:
        return path.stat().st_size
    partial = folder / f"{file.name}.part"
    try:
        for left in reversed(range(_TRIES)):
            try:
                digest = _copy(file, partial, uv, on_bytes)
                break
            except (urllib.error.URLError, TimeoutError, ConnectionError, ValueError) as error:
                if not left or (isinstance(error, urllib.error.HTTPError) and error.code < 500):
                    raise _unreachable(file, error) from error
        if digest != file.sha256:
            raise IntegrityError(
                f"the bytes of `{file.name}` are not those the lock names: expected {file.sha256}, got {digest}",
                hint="it was not kept; if a mirror or a proxy alters downloads, leave it out, else report this",
            )
        partial.replace(path)
    except OSError as error:
        raise_for_write(path, error)
    finally:
        partial.unlink(missing_ok=True)
    return path.stat().st_size


def _copy(file: File, partial: Path, uv: Uv, on_bytes: Callable[[int], None]) -> str:
    seen = hashlib.sha256()
    count, most = 0, file.size if file.size is not None else most_of(None)
    with _open(file, uv) as source, partial.open("wb") as target:
        while chunk := source.read(_CHUNK):
            count += len(chunk)
            if count > most:
                raise IntegrityError(f"`{file.name}` is longer than the index says ({most} bytes)")
            seen.update(chunk)
            target.write(chunk)
            on_bytes(len(chunk))
        target.flush()
        os.fsync(target.fileno())
    return seen.hexdigest()


def _open(file: File, uv: Uv) -> IO[bytes]:
    if "://" not in file.where:
        return Path(file.where).open("rb")
    parts = urllib.parse.urlsplit(file.where)
    if parts.scheme == "file":
        return Path(urllib.request.url2pathname(parts.path)).open("rb")
    if parts.scheme not in {"http", "https"}:
        raise NetworkError(f"`{file.name}` is at an address that is not fetched ({parts.scheme})")
    request = urllib.request.Request(file.where, headers=_credentials(parts, uv))  # noqa: S310 - http and https only
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler(), urllib.request.HTTPSHandler(context=_certificates(uv.environ))
    )
    opened: IO[bytes] = opener.open(request, timeout=_SECONDS)
    return opened


def _certificates(environ: Mapping[str, str]) -> ssl.SSLContext:
    context = ssl.create_default_context(
        cafile=environ.get("SSL_CERT_FILE") or None, capath=environ.get("SSL_CERT_DIR") or None
    )
    if client := environ.get("SSL_CLIENT_CERT"):
        context.load_cert_chain(client)
    return context


def _credentials(file: urllib.parse.SplitResult, uv: Uv) -> dict[str, str]:
    """Return the header that signs in with the credentials in the index's own address, for its own host alone."""
    index = urllib.parse.urlsplit(uv.sources.index_url or uv.environ.get(MIRROR, ""))
    if not index.username or (index.scheme, index.hostname, index.port) != (file.scheme, file.hostname, file.port):
        return {}
    pair = f"{urllib.parse.unquote(index.username)}:{urllib.parse.unquote(index.password or '')}"
    return {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}


def _unreachable(file: File, error: Exception) -> NetworkError:
    why = f"HTTP status {error.code}" if isinstance(error, urllib.error.HTTPError) else str(error)
    return NetworkError(
        f"`{file.name}` could not be fetched: {why}",
        hint="check the connection or name a mirror with `--index-url URL`; what is there already is kept",
    )


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def copy_lock(lock: Path, folder: Path) -> str:
    """Copy a lock into the folder and return its SHA-256."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(lock, folder / lock.name)
    except OSError as error:
        raise_for_write(folder / lock.name, error)
    return _digest(folder / lock.name)


def manifest_of(files: Mapping[str, tuple[File, ...]], locks: Mapping[str, str], spot: Spot) -> dict[str, Any]:
    """Return what a bundle holds as its `manifest.json` says it: every file with its hash, and the lock it is for."""
    wheels: dict[str, dict[str, Any]] = {}
    for lock, found in files.items():
        for file in found:
            entry = wheels.setdefault(file.name, {"sha256": file.sha256, "bytes": file.size, "locks": []})
            entry["locks"].append(lock)
    return {
        "schema": 1,
        "platform": spot.triple,
        "python": spot.python,
        "locks": dict(locks),
        "wheels": dict(sorted(wheels.items())),
    }
