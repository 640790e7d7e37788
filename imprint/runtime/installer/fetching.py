"""Reads one file from an index or a folder: the same proxies, certificates and credentials as the installer's.

A connection that breaks off is tried again; what redirects elsewhere gets no credentials there. What an error shows of
an address is its host, since the rest may be a secret.
"""

from __future__ import annotations

import ssl
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from imprint.addresses import host_of
from imprint.certificates import certificate_settings
from imprint.errors import NetworkError
from imprint.hints import helps
from imprint.runtime.installer.watch import STALL_BYTES, STALL_SECONDS

if TYPE_CHECKING:
    from urllib3 import PoolManager

SECONDS = 30.0
"""How long a server may be silent."""

TRIES = 4
"""How often a file is asked for before it counts as unreachable."""

_ELSEWHERE = "another-index"
_BUSY = (429, 500, 502, 503, 504)
_CHUNK = 1 << 20


class _BrokenOffError(Exception):
    """The file ended before its announced size; the message says where."""


@dataclass(frozen=True, slots=True)
class Source:
    """A file to read: its address or path, its name, and its size if the index announced one.

    `index` is the index it was found through; credentials in it go to its own host alone.
    """

    where: str
    name: str
    size: int | None
    index: str | None = field(default=None, repr=False)
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)


def read(source: Source, again: Callable[[], None]) -> Iterator[bytes]:
    """Yield a file in pieces, in order.

    Where the connection breaks off `again` is called, and then the file comes from its beginning. Raises NetworkError,
    and OSError for a local file.
    """
    parts = urllib.parse.urlsplit(source.where)
    if "://" not in source.where or parts.scheme == "file":
        local = urllib.request.url2pathname(parts.path) if parts.scheme == "file" else source.where
        yield from _read_local(Path(local))
        return
    if parts.scheme not in {"http", "https"}:
        raise NetworkError(f"`{source.name}` is at an address that Imprint does not download from ({parts.scheme})")
    from urllib3.exceptions import HTTPError, MaxRetryError

    with _client(parts, source.environ) as client:
        for left in reversed(range(TRIES)):
            try:
                yield from _read_remote(client, source)
            except (HTTPError, _BrokenOffError) as error:
                if not left or isinstance(error, MaxRetryError):
                    raise _unreachable(source, error) from error
                again()
            else:
                return


def _read_local(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            yield chunk


def _read_remote(client: PoolManager, source: Source) -> Iterator[bytes]:
    headers = _credentials(source)
    response = client.request("GET", source.where, headers=headers, preload_content=False, decode_content=False)
    try:
        if response.status != 200:
            raise _refused(source, response.status)
        count = moved = 0
        since = time.monotonic()
        while chunk := response.read1(_CHUNK):
            count += len(chunk)
            yield chunk
            if count - moved >= STALL_BYTES:
                moved, since = count, time.monotonic()
            elif time.monotonic() - since > STALL_SECONDS:
                raise _failed(
                    source, f"fewer than {STALL_BYTES} bytes arrived in {STALL_SECONDS:.0f} s", helps(_ELSEWHERE)
                )
        if source.size is not None and count < source.size:
            raise _BrokenOffError(f"it ended after {count} of {source.size} bytes")
    finally:
        response.close()


def _client(parts: urllib.parse.SplitResult, environ: Mapping[str, str]) -> PoolManager:
    from urllib3 import PoolManager, ProxyManager, Retry, Timeout, make_headers

    retries = Retry(
        TRIES - 1, redirect=10, status_forcelist=_BUSY, backoff_factor=0.3, raise_on_status=False,
        respect_retry_after_header=False,
    )  # fmt: skip
    timeout = Timeout(connect=SECONDS, read=SECONDS)
    context = _certificates(environ)
    proxy = _proxy(parts)
    if proxy is None:
        return PoolManager(retries=retries, timeout=timeout, ssl_context=context)
    split = urllib.parse.urlsplit(proxy)
    if split.scheme not in {"http", "https"}:
        raise NetworkError(
            f"proxies of the kind `{split.scheme}` are not supported here",
            hint=helps("http-proxy"),
        )
    pair = _pair(split)
    headers = make_headers(proxy_basic_auth=pair) if pair else None
    return ProxyManager(
        proxy, proxy_headers=headers, proxy_ssl_context=context, retries=retries, timeout=timeout, ssl_context=context
    )


def _pair(address: urllib.parse.SplitResult) -> str | None:
    """Return the credentials in an address, `user:password`."""
    if not address.username:
        return None
    return f"{urllib.parse.unquote(address.username)}:{urllib.parse.unquote(address.password or '')}"


def _proxy(parts: urllib.parse.SplitResult) -> str | None:
    """Return the proxy that the environment names for an address, None where it is to be reached directly."""
    proxies = urllib.request.getproxies()
    found = proxies.get(parts.scheme) or proxies.get("all")
    if not found or urllib.request.proxy_bypass(parts.netloc.rpartition("@")[2]):
        return None
    return found if "://" in found else f"http://{found}"


def _certificates(environ: Mapping[str, str]) -> ssl.SSLContext:
    environ = {**environ, **certificate_settings(environ)}
    file, folder = environ.get("SSL_CERT_FILE") or None, environ.get("SSL_CERT_DIR") or None
    try:
        context = ssl.create_default_context(cafile=file, capath=folder)
        if client := environ.get("SSL_CLIENT_CERT"):
            context.load_cert_chain(client)
    except OSError as error:
        raise NetworkError(
            f"the certificates that SSL_CERT_FILE, SSL_CERT_DIR or SSL_CLIENT_CERT name cannot be read: {_why(error)}",
            hint=helps("pem-file"),
        ) from error
    return context


def _credentials(source: Source) -> dict[str, str]:
    """Return the header that signs in with the credentials in the index's own address, for its own host alone."""
    from urllib3 import make_headers

    own, file = urllib.parse.urlsplit(source.index or ""), urllib.parse.urlsplit(source.where)
    pair = _pair(own)
    if pair is None or (own.scheme, own.hostname, own.port) != (file.scheme, file.hostname, file.port):
        return {}
    return dict(make_headers(basic_auth=pair))


def _refused(source: Source, status: int) -> NetworkError:
    hint = helps("check-the-index")
    if status in {401, 403}:
        hint = helps("index-login")
    elif status in _BUSY:
        hint = helps("again-later-kept")
    return _failed(source, f"HTTP status {status}", hint)


def _unreachable(source: Source, error: BaseException) -> NetworkError:
    why = _why(error)
    return _failed(source, why, helps("ca-file" if "certificate" in why else _ELSEWHERE))


def _failed(source: Source, why: str, hint: str) -> NetworkError:
    host = host_of(source.where).partition("://")[2]
    return NetworkError(f"`{source.name}` could not be fetched from {host}: {why}", hint=hint)


def _why(error: BaseException) -> str:
    """Return the innermost cause in words: what the layers above add is addresses."""
    from urllib3.exceptions import TimeoutError as SilentError

    while (inner := getattr(error, "reason", None) or error.__cause__ or error.__context__) is not None:
        if not isinstance(inner, BaseException):
            break
        error = inner
    if isinstance(error, TimeoutError | SilentError):
        return f"the server was silent for {SECONDS:.0f} s"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted ({error.verify_message})"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    if isinstance(error, _BrokenOffError):
        return str(error)
    return "the connection was lost"
