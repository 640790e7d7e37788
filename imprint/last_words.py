"""Picks the line that says why out of what a child, an exception or an installer wrote, and words how a child ended.

Pure. The decisive line is seldom the first or the last: NumPy gives a page of advice, ONNX Runtime puts its own source
files before it, a loader's message stands in the middle. Addresses are cut down to their hosts on the way. Patterns are
strings, here and in other readers of messages: few runs need them, and compiling them would slow every start.
"""

from __future__ import annotations

import re
import signal

from imprint.addresses import hosts_only

LIMIT = 300
"""Characters of a line that are kept; of a longer one the beginning and, for it says more, the end."""

_HEAD = 90

_COLOUR = r"\x1b\[[0-9;?]*[A-Za-z]"
_LOG = r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[.,]\d+ \[[^\]]*\] "
"""The head of a line of ONNX Runtime's log."""

_STATUS = r"\[ONNXRuntimeError\] : \d+ : \w+ : "
_POSITION = r"(?:/[\w.+-]+)*/?[\w+-]+\.(?:cc|cpp|cxx|cu|cuh|h|hpp|inc):\d+ ?"
"""A place in somebody's source, such as `/onnxruntime_src/onnxruntime/core/graph/model.cc:179 `."""

_FUNCTION = r"(?:[\w:<>,&*~ ]+ )?[\w:<>,&*~]+::[\w~<>]+\(|operator\(\)\("

_SIGNS = (
    # What a loader says of a file that it does not take (glibc, musl, macOS, Windows).
    (
        r"cannot open shared object file|cannot enable executable stack|cannot allocate memory in static TLS|"
        r"version `?[A-Z]+_[\d.]+'? not found|undefined symbol|symbol not found|invalid ELF header|wrong ELF class|"
        r"file too short|failed to map segment|cannot apply additional memory protection|ELF load command|"
        r"Error loading shared library|Library not loaded|incompatible architecture|DLL load failed|"
        r"depends on \"[^\"]+\" which is missing"
    ),
    r"No module named|cannot import name|partially initialized module|_ARRAY_API not found",
)
"""What is decisive wherever it stands, the most telling first."""

_SYSTEM = (
    r"(?i)No space left on device|Read-only file system|Permission denied|Disk quota exceeded|Illegal instruction|"
    r"Segmentation fault|Bus error|core dumped|Fatal Python error|MemoryError|bad_alloc"
)
"""What the system says; decisive where no exception has a message, for a warning may say it too."""

_ORIGINAL = r"^(?:Original error was|Caused by|cause): (?P<why>.+)$"
_RAISED = (
    r"^(?:[A-Za-z_][\w.]*\.)?(?:[A-Za-z_]\w*(?:Error|Exception|Exit|Interrupt|Warning|Failure)|(?:EP)?Fail"
    r"|InvalidArgument|InvalidGraph|InvalidProtobuf|NoSuchFile|NoModel|NotFound|NotImplemented)\b(?::.*)?$"
)
"""An exception's line; the second half are ONNX Runtime's own names (1.31)."""
_ADVICE = (
    r"^(?:hint|help|note|warning|tip)s?:|^(?:IMPORTANT|NOTE|WARNING)\b|^https?://\S+$|^[*•-] |^\^|^~|^File \"|"
    r"^Traceback|^During handling of|^The above exception|^Please |^[Tt]ry |^usage:|^If you |^We have |"
    r"^Importing the numpy|^many reasons|^installed\.$|^and make sure|"
    r"^(?:downgrade|versions of|some module may|to support)|^\W*$"
)
"""What surrounds a reason and is none."""


def decisive_line(text: str) -> str:
    """Return the one line of `text` that says why, without colours and places in source; empty when it says nothing."""
    lines = [line for raw in hosts_only(re.sub(_COLOUR, "", text)).splitlines() if (line := _bare(raw))]
    for sign in _SIGNS:
        if found := [line for line in lines if re.search(sign, line)]:
            return shortened(_told(found[-1]))
    for line in reversed(lines):
        if original := re.match(_ORIGINAL, line):
            return shortened(original["why"])
    raised = [line for line in lines if re.match(_RAISED, line)]
    system = [line for line in lines if re.search(_SYSTEM, line)]
    saying = [line for line in lines if not re.search(_ADVICE, line)]
    chosen = [line for line in raised if ": " in line] or system or saying or raised or lines
    return shortened(chosen[-1]) if chosen else ""


_CRASHES = frozenset({"SIGSEGV", "SIGBUS", "SIGILL", "SIGABRT", "SIGFPE", "SIGTRAP", "SIGSYS"})
"""Signals that a process brings upon itself."""

_NTSTATUS_ERROR, _CONTROL_C = 0xC0000000, "0xC000013A"
"""On Windows what ended a process is its exit code: from the first on an error; the second is Ctrl-C."""


def how_it_ended(returncode: int | None) -> str:
    """Return how a process ended, in words: `exit code 3`, `SIGSEGV (segmentation fault)`, `exit code 0xC0000005`."""
    if returncode is None:
        return "it is not known how it ended"
    if returncode >= 0:
        return f"exit code {what_ended_it(returncode) or returncode}"
    try:
        found = signal.Signals(-returncode)
    except ValueError:
        return f"signal {-returncode}"
    return f"{found.name} ({(signal.strsignal(found) or 'a signal').lower()})"


def what_ended_it(returncode: int) -> str | None:
    """Return what ended a process that did not exit by itself: `SIGSEGV`, `signal 77`, or Windows' `0xC0000005`."""
    if returncode >= 0:
        return f"0x{returncode:08X}" if returncode >= _NTSTATUS_ERROR else None
    try:
        return signal.Signals(-returncode).name
    except ValueError:
        return f"signal {-returncode}"


def is_of_outside(ended: str) -> bool:
    """Whether what `what_ended_it` names came from outside of the process, and so proves nothing about it."""
    return ended == _CONTROL_C or (ended.startswith(("SIG", "signal ")) and ended not in _CRASHES)


def why_it_ended(returncode: int | None, text: str) -> str:
    """Return how a process ended and the decisive line of what it wrote: `exit code 1: ImportError: …`."""
    return f"{how_it_ended(returncode)}: {decisive_line(text) or 'no output'}"


def _bare(raw: str) -> str:
    line = re.sub(_STATUS, "", re.sub(_LOG, "", raw.strip()))
    while found := re.search(_POSITION, line):
        line = line[: found.start()] + _after_function(line[found.end() :])
    return " ".join(line.split())


def _after_function(rest: str) -> str:
    """Return what follows a function's signature with its balanced parentheses; all of it where there is none."""
    found = re.match(_FUNCTION, rest)
    if found is None:
        return rest
    depth = 0
    for at in range(found.end() - 1, len(rest)):
        depth += {"(": 1, ")": -1}.get(rest[at], 0)
        if depth == 0:
            return re.sub(r"^(?: const)?(?: \[with [^\]]*\])? ?", " ", rest[at + 1 :])
    return rest


def _told(line: str) -> str:
    """Return a line without what an exception or an advice puts before the loader's own words."""
    original = re.match(_ORIGINAL, line)
    return original["why"] if original else line


def shortened(line: str, limit: int = LIMIT) -> str:
    """Return a line with its middle left out where it is longer than `limit`."""
    return line if len(line) <= limit else f"{line[:_HEAD]} … {line[-(limit - _HEAD - 3) :]}"
