"""Why no tool environment was built, and how that is told: two lines on stderr, or one envelope on stdout."""

from __future__ import annotations

import errno
import json
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from imprint.addresses import hosts_only
from imprint.causes.errors import error_of
from imprint.errors import EXIT_CODES, ImprintError
from imprint.hints import helps
from imprint.printable import printable_line
from imprint_launch.words import command_of


class Failure(Exception):  # noqa: N818 - it is the answer, not only an error
    """Why no environment was built: the code and exit code of docs/exit-codes.md, a sentence, a hint."""

    def __init__(self, code: str, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.exit_code = EXIT_CODES.get(code, 1)
        self.message = message
        self.hint = hint

    @classmethod
    def of(cls, error: ImprintError) -> Failure:
        """Return the failure that an error of the library amounts to."""
        return cls(error.specific_code, error.message, error.hint)


_NETWORK = (
    "connect",
    "resolve",
    "timed out",
    "network",
    "retries",
    "no matching distribution",
    "dns",
    "fetch",
    "unreachable",
    "tls",
    "certificate",
)
_CERTIFICATE = re.compile(r"(?i)unknownissuer|certificate verify failed|unknown issuer|self[- ]signed")

_CAUSE = r"(?:[Cc]aused by:|cause:|╰─▶) (.+)"
"""How uv writes a cause; the last of a chain says why."""


def classify(  # noqa: PLR0913 - all but the first three are keywords
    output: str,
    free_bytes: int,
    where: Path,
    *,
    command: str,
    returncode: int,
    addresses: Iterable[str] = (),
    offline: bool = False,
    links: str | None = None,
) -> Failure:
    """Turn how a child of pip or uv ended, and its last words, into a failure with code and hint.

    `addresses` are the index's and the proxies' that it was given: only their hosts are told. `offline` is whether it
    was to use no network, and `links` the folder of packages that it was given.
    """
    told = _last_words(output, addresses)
    last = told or f"`{command}` {_ended(returncode)} without any output"
    lower = output.lower()
    if "no space left" in lower or "os error 28" in lower:
        return no_space(free_bytes, where)
    if "do not match the hashes" in lower or "hash mismatch" in lower:
        return Failure(
            "integrity",
            f"a download does not match its locked hash: {last}",
            "a mirror or proxy changed the file; try another network",
        )
    if "resource temporarily unavailable" in lower or "can't start new thread" in lower or "cannot fork" in lower:
        return Failure.of(error_of("process-limit", f"`{command}` could not start another process or thread"))
    if "permission denied" in lower or "read-only file system" in lower:
        return not_writable(where, last)
    if any(word in lower for word in _NETWORK):
        return _nothing_at_hand(last, links) if offline else _not_downloaded(last, output)
    how, hint = (f"`{command}` {_ended(returncode)}: {last}", None) if told else (last, f"run `{command}` by hand")
    return Failure("failed", f"the tool environment could not be built: {how}", hint)


def _not_downloaded(last: str, output: str) -> Failure:
    """Return the failure of a first start that the network, or its certificates, kept from what it needs."""
    untrusted = _CERTIFICATE.search(output) is not None
    return Failure(
        "network",
        f"the tool environment could not be downloaded: {last}",
        "set SSL_CERT_FILE to the file with your network's CA certificates and run this again"
        if untrusted
        else "check the network (HTTPS_PROXY, SSL_CERT_FILE) and run this again",
    )


def _nothing_at_hand(last: str, links: str | None) -> Failure:
    """Return the failure of a first start without a network that lacks packages."""
    hint = helps("without-offline") if links is None else helps("folder-lacks-wheels", folder=links)
    return Failure("network", f"the tool environment cannot be built with `--offline`: {last}", hint)


def _last_words(output: str, addresses: Iterable[str]) -> str:
    output = hosts_only(output, addresses)
    lines = [line for line in map(str.strip, output.splitlines()) if line and not line.startswith("note:")]
    first = next(
        (line for line in lines if re.match(r"(?i)(error|\u00d7|caused by)", line)), lines[-1] if lines else ""
    )
    causes = [found[1] for line in lines if (found := re.match(_CAUSE, line))]
    return f"{first}: {causes[-1]}" if causes and causes[-1] not in first else first


def _ended(returncode: int) -> str:
    return f"was ended by signal {-returncode}" if returncode < 0 else f"failed with exit code {returncode}"


def no_space(free_bytes: int, where: Path) -> Failure:
    """Return the failure of a disk that is too full."""
    return Failure(
        "no-space",
        f"the tool environment needs about 120 MiB, {free_bytes // 2**20} MiB are free in {where}",
        "free some space there, or set IMPRINT_HOME to a folder on another disk",
    )


def not_writable(where: Path, why: str) -> Failure:
    """Return the failure of a folder that this user may not write to."""
    return Failure(
        "home-not-writable", f"cannot write in {where}: {why}", "set IMPRINT_HOME to a folder that you can write to"
    )


def of_system(error: OSError, home: Path) -> Failure:
    """Return the failure that the system's own error amounts to, wherever it came up."""
    why = error.strerror or str(error)
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return no_space(0, home)
    if error.errno in {errno.EACCES, errno.EPERM, errno.EROFS}:
        return not_writable(home, why)
    if error.errno in {errno.EAGAIN, errno.ENOMEM}:
        return Failure.of(error_of("process-limit", f"the system does not allow another process: {why}"))
    named = f" ({error.filename})" if error.filename else ""
    return Failure("failed", f"the tool environment could not be built: {why}{named}")


def report(failure: Failure, words: Sequence[str]) -> None:
    """Say why: an envelope on stdout when the command asked for JSON, else two lines on stderr."""
    if "--json" in words:
        command = command_of(words)
        error = {"code": failure.code, "message": failure.message, "hint": failure.hint}
        envelope = {
            "schema": 1,
            "command": command,
            "ok": False,
            "data": {},
            "warnings": [],
            "errors": [error],
        }
        event = {"event": "result"} if command in {"setup", "bootstrap"} else {}
        print(json.dumps(event | envelope))
        return
    print(f"error: {printable_line(failure.message)}", file=sys.stderr)
    if failure.hint:
        print(f"hint: {printable_line(failure.hint)}", file=sys.stderr)
