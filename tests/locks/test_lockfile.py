"""Parsing hashed requirement files, and telling two of them apart."""

from __future__ import annotations

import pytest

from imprint_dev.lockfile import Entry, LockfileError, diff, parse_lockfile, without_hashes

A, B, C = ("sha256:" + letter * 64 for letter in "abc")


def lock(*entries: str) -> str:
    return "# header\n" + "\n".join(entries) + "\n"


def entry(pin: str, *hashes: str) -> str:
    return pin + "".join(f" \\\n    --hash={one}" for one in hashes) + "\n    # via something"


def test_an_entry_has_name_version_marker_and_every_hash() -> None:
    text = lock(entry("numpy==2.4.6 ; python_full_version < '3.12'", A, B), entry("uv==0.13.9", C))
    assert parse_lockfile(text) == [
        Entry("numpy", "2.4.6", "python_full_version < '3.12'", frozenset({A, B})),
        Entry("uv", "0.13.9", "", frozenset({C})),
    ]


@pytest.mark.parametrize("line", ["numpy>=2 --hash=" + A, "numpy", "-r other.txt", "numpy==1.0"])
def test_a_line_without_pin_or_hashes_is_refused(line: str) -> None:
    with pytest.raises(LockfileError, match=r"numpy|other"):
        parse_lockfile(line)


def test_hashes_can_be_taken_off_and_pins_stay() -> None:
    text = without_hashes(lock(entry("numpy==2.4.6 ; python_full_version < '3.12'", A, B), entry("uv==0.13.9", C)))
    assert "sha256" not in text
    assert "\\" not in text
    assert "numpy==2.4.6 ; python_full_version < '3.12'\n    # via something\nuv==0.13.9\n" in text


def test_equal_locks_have_no_difference() -> None:
    entries = parse_lockfile(lock(entry("uv==0.13.9", A)))
    assert diff(entries, entries) == []


def test_each_changed_entry_is_told_by_name_version_and_hashes() -> None:
    old = parse_lockfile(
        lock(entry("gone==1", A), entry("moved==1", A, B), entry("rebuilt==1", A), entry("same==1", A))
    )
    new = parse_lockfile(
        lock(entry("come==2", C), entry("moved==2", B, C), entry("rebuilt==1", A, B), entry("same==1", A))
    )
    assert diff(old, new) == [
        "come: (none) -> 2, hashes +1 -0",
        "gone: 1 -> (none), hashes +0 -1",
        "moved: 1 -> 2, hashes +1 -1",
        "rebuilt: 1 (same version), hashes +1 -0",
    ]


def test_entries_split_by_python_are_compared_marker_by_marker() -> None:
    old = parse_lockfile(
        lock(entry("numpy==2.4 ; python_version < '3.12'", A), entry("numpy==2.5 ; python_version >= '3.12'", B))
    )
    new = parse_lockfile(
        lock(entry("numpy==2.4 ; python_version < '3.12'", A), entry("numpy==2.6 ; python_version >= '3.12'", C))
    )
    assert diff(old, new) == ["numpy ; python_version >= '3.12': 2.5 -> 2.6, hashes +1 -1"]
