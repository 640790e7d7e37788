"""Every code is in the interface's list, documented for people, and reached by some machine."""

from __future__ import annotations

import re

from architecture.tree import ROOT
from imprint.planning import reasons
from planning.conftest import TABLE
from planning.test_golden import FILES, case_of, planned
from planning.test_portable import PORTABLE_CODES

PAGE = (ROOT / "docs" / "reason-codes.md").read_text("utf-8")
SECTIONS = re.split(r"^### ", PAGE, flags=re.MULTILINE)[1:]

INTERFACE = {
    *("gpu-native", "gpu-jit", "gpu-portable"),
    *("device-cpu", "os-no-gpu-build", "arch-no-gpu-build", "libc-too-old", "libc-musl", "python-no-gpu-wheel"),
    *("jetson-vendor-build", "no-nvidia-gpu", "vendor-not-nvidia", "driver-missing", "driver-too-old"),
    *("driver-mismatch", "driver-unreadable", "compat-unsupported", "uvm-unavailable", "no-device"),
    *("container-no-gpu", "wsl-linux-driver", "visible-devices-empty", "visible-devices-invalid", "gpu-not-found"),
    *("gpu-list-unsupported", "compute-capability-unsupported", "ptx-needs-newer-driver", "check-failed"),
    *("not-reached", "os-no-wheel", "arch-no-wheel", "python-no-wheel", "python-abi-no-wheel"),
}
"""The codes that the interface promises; they are never renamed."""


def test_the_codes_are_those_of_the_interface() -> None:
    assert set(reasons.CODES) == INTERFACE
    assert set(reasons.NULL_CODES) <= INTERFACE


def test_every_code_is_documented_and_nothing_else() -> None:
    documented = [section.partition("\n")[0].strip() for section in SECTIONS]
    assert len(documented) == len(set(documented))
    assert set(documented) == {*reasons.CODES, *reasons.NOTE_CODES}


def test_every_entry_says_what_was_seen_what_it_means_and_what_to_do() -> None:
    for section in SECTIONS:
        words = [section.find(f"- **{word}:**") for word in ("Seen", "Means", "To do")]
        assert -1 not in words, section
        assert words == sorted(words), section


def test_every_code_is_reached_by_a_golden_plan() -> None:
    reached, notes = set(PORTABLE_CODES), set()
    for path in FILES:
        _, plan = planned(case_of(path), TABLE)
        reached |= {plan.code, *(one.code for one in plan.refused)}
        notes |= {note.code for note in plan.notes}
    assert reached == set(reasons.CODES)
    assert notes == set(reasons.NOTE_CODES)


def test_every_code_without_a_build_is_reached_as_such() -> None:
    plans = [planned(case_of(path), TABLE)[1] for path in FILES]
    assert {plan.code for plan in plans if plan.build is None} == set(reasons.NULL_CODES)
