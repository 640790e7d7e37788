"""Says what a failed call of uv means, from its exit code and what it wrote. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from imprint.addresses import addresses_in, hosts_only
from imprint.causes.circumstances import here
from imprint.causes.errors import whose
from imprint.errors import BusyError, ImprintError, IntegrityError, NetworkError
from imprint.hints import helps
from imprint.last_words import shortened
from imprint.runtime.check.outside import outside_cause
from imprint.runtime.installer import space
from imprint.runtime.installer.sources import INDEX, Sources
from imprint.runtime.installer.startup_output import startup_error

_FAILED_ITEM = r"Failed to (?:download|fetch|extract|read)[^`\n]*`([^`\n]+)`"
_MISMATCH = r"Hash mismatch for `([^`]+)`"
_COMPUTED = r"Computed:\s+(\S+)"
_EXPECTED = r"Expected:\s+((?:\S+\s+)+?)\s*Computed:"
_NO_SPACE = r"(?i)os error (?:28|112|122)\b|No space left|disk quota"
_NETWORK = (
    r"network was disabled|[Nn]etwork connectivity is disabled|not found in the cache|Request failed"
    r"|error sending request|Failed to fetch|dns error|[Cc]onnection|timed out|error decoding response body"
    r"|HTTP status|not found in the package registry|not found in the provided package locations"
    r"|There are no versions of|there is no version of|no version of|has no usable wheels"
)
_BAD_BYTES = (
    r"(?i)Failed to extract archive|[Ii]nvalid [Zz]ip|not a valid wheel|corrupt|trusted hash|Hash-checking|checksum"
    r"|must have their versions pinned|RECORD"
)
_UNTRUSTED = r"(?i)UnknownIssuer|certificate verify failed|unknown issuer|self[- ]signed"


def classify(  # noqa: PLR0911, PLR0913 - one for each cause; all but the first two are keywords
    returncode: int,
    text: str,
    *,
    where: Path,
    needed: int | None = None,
    sources: Sources = INDEX,
    environ: Mapping[str, str] = MappingProxyType({}),
) -> ImprintError:
    """Return the error that a failed uv call amounts to.

    `text` is what it told stderr, `sources` where it looked, `environ` its environment. Of every address only the host
    is passed on.
    """
    text = hosts_only(text, addresses_in(environ))
    if startup := startup_error(text):
        return startup
    last = last_lines(text)
    if re.search(_NO_SPACE, text):
        return space.error(needed, where)
    if "when waiting for lock" in text:
        return BusyError(f"another uv process is using the cache in `{where}`", hint=helps("again-later"))
    if found := re.search(_MISMATCH, text):
        return IntegrityError(
            f"`{found[1]}` does not match the lock: {_hashes(text)}",
            hint=helps("another-mirror"),
        )
    item = re.search(_FAILED_ITEM, text)
    named = f" (`{item[1]}`)" if item else ""
    if re.search(_BAD_BYTES, text) and not re.search(r"error decoding|timed out|[Cc]onnection", text):
        return IntegrityError(f"a package does not match the lock{named}: {last}", hint=helps("again-nothing-changed"))
    # A folder with wheels for another Python or system; an index without them would be a wrong lock.
    unfit = sources.find_links is not None and "no wheels with a matching" in text
    if unfit or re.search(_NETWORK, text):
        hint = helps("ca-file") if re.search(_UNTRUSTED, text) else _where_to_look(sources)
        return NetworkError(f"packages could not be fetched{named}: {last}", hint=hint)
    outside = outside_cause(text, environ)
    if outside is not None:
        fix = outside.fix(here(environ, traits=[whose(where)]))
        return ImprintError(f"the installer failed: {outside.seen}", hint=fix, code=outside.code)
    how = f"was ended by signal {-returncode}" if returncode < 0 else f"failed with exit code {returncode}: {last}"
    return ImprintError(f"the installer {how}", hint=helps("again"), code="installer-failed")


def _where_to_look(sources: Sources) -> str:
    if not sources.offline:
        return helps("another-index-again")
    if sources.find_links is None:
        return helps("without-offline")
    return helps("folder-lacks-wheels", folder=str(sources.find_links))


def last_lines(text: str, count: int = 6) -> str:
    """Return the last lines of uv's own words as one line, without its notices about environments and hints."""
    lines = [line.strip() for line in text.splitlines()]
    kept = [
        line
        for line in lines
        if line and not line.startswith(("Using Python", "Using CPython", "Resolved", "hint:", "Downloading"))
    ]
    return (
        shortened("; ".join(line.removeprefix("error: ").removeprefix("cause: ") for line in kept[-count:]))
        or "no output"
    )


def _hashes(text: str) -> str:
    computed = re.search(_COMPUTED, text)
    expected = re.search(_EXPECTED, text)
    names = expected[1].split() if expected else []
    if len(names) > 1:
        wanted = f"one of {len(names)} hashes, among them {names[0]}"
    else:
        wanted = names[0] if names else "another hash"
    return f"expected {wanted}, got {computed[1] if computed else 'something else'}"
