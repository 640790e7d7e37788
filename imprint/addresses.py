"""Takes all but the host out of every address in a text, before the text reaches an error, a log or a report. Pure.

Logins, tokens in paths and queries, and whatever else an index's address carries are nobody's business. Where it
cannot be told which part is the host (a password may hold `/` and `@`), not even that is left.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import quote, unquote

HIDDEN = "…"

_STOP = r"\s`'\"<>{}|\\^"
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*")
_ADDRESS = re.compile(rf"(?P<scheme>{_SCHEME.pattern})://(?P<rest>[^{_STOP}]*)")
_LOGIN = re.compile(rf"[^{_STOP}()/]+:[^{_STOP}]*@[^{_STOP}]*")
"""A login before a host, without a scheme."""

_HOST = re.compile(r"(?P<host>\[[0-9A-Fa-f:.%]+\]|[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?\.?)(?P<port>:\d{1,5})?")
_ENDS = ".,;:)!?"
_VARIABLES = frozenset(
    ("UV_DEFAULT_INDEX", "PIP_INDEX_URL", "PIP_PROXY", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "FTP_PROXY")
)
_LONG = 8
"""Characters from which a part of a known address is taken out wherever it stands, also inside words."""


def hosts_only(text: str, known: Iterable[str | None] = ()) -> str:
    """Return `text` with each address cut down to its scheme and host; a login without a scheme goes whole.

    `known` are addresses that are in use, such as the index's and the proxies'. What they carry besides their host is
    taken out also where a text holds it in pieces, decoded, or with spaces in it.
    """
    for address in filter(None, known):
        text = _without(text, address)
    return _LOGIN.sub(HIDDEN, _ADDRESS.sub(lambda found: _host_of(found["scheme"], found["rest"]), text))


def addresses_in(environ: Mapping[str, str]) -> list[str]:
    """Return the addresses in use that an environment names: the index's and the proxies', which may hold logins."""
    return [value for name, value in environ.items() if name.upper() in _VARIABLES and value]


def host_of(address: str) -> str:
    """Return an address as it may be told: its scheme and host, or `…` where it is no address."""
    scheme, given, rest = address.strip().partition("://")
    return _host_of(scheme, rest) if given and _SCHEME.fullmatch(scheme) else HIDDEN


def _host_of(scheme: str, rest: str) -> str:
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    after = rest[len(authority) :]
    host = _HOST.fullmatch(authority.rpartition("@")[2].rstrip(_ENDS))
    # With an @ behind the first slash, what stands before that slash may be a login cut in two.
    told = host["host"] + (host["port"] or "") if host is not None and not re.search("@|%40", after) else HIDDEN
    ending = rest[len(rest.rstrip(_ENDS)) :]
    return f"{scheme}://{told}{ending}"


def _without(text: str, address: str) -> str:
    told = host_of(address)
    for whole in sorted({address, unquote(address), quote(address, safe=":/@?=&#%")}, key=len, reverse=True):
        text = text.replace(whole, told)
    for part in sorted(set(_private(address)), key=len, reverse=True):
        # A short one may be part of any word.
        pattern = re.escape(part) if len(part) >= _LONG else rf"(?<!\w){re.escape(part)}(?!\w)"
        text = re.sub(pattern, HIDDEN, text)
    return text


def _private(address: str) -> Iterator[str]:
    """Yield what an address carries beside its host: its login, and whatever in path and query looks like no word."""
    rest = address.partition("://")[2] or address
    login, at, place = rest.rpartition("@")
    if at:
        yield from _spellings(login)
        for part in (login.partition(":")[0], login.partition(":")[2], *re.split(r"[:/?#@]", login)):
            yield from _spellings(part)
    for part in re.split(r"[/?#&=]", place)[1:]:
        if len(part) >= _LONG or (part and not part.isalpha()):
            yield from _spellings(part)


def _spellings(part: str) -> Iterator[str]:
    for spelling in (part, unquote(part), quote(part, safe="")):
        if spelling:
            yield spelling
