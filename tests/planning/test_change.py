"""What a plan would change, given any plan and anything installed."""

from __future__ import annotations

import pytest

from imprint.planning.model import Installed
from imprint.planning.rule import decide, settled
from imprint.values import replace
from planning.conftest import TABLE
from planning.test_rule import AMPERE, AUTO, machine

SEEN = machine(AMPERE)
PLAN = decide(AUTO, SEEN, TABLE, (), None)


@pytest.mark.parametrize(("build", "pending"), [("cuda13", False), ("cpu", True)])
def test_what_is_installed_is_in_the_plan(build: str, pending: bool) -> None:
    installed = Installed(build, PLAN.version)
    found = settled(replace(PLAN, pending=not pending), SEEN, TABLE, installed)
    assert (found.installed, found.pending) == (installed, pending)


def test_a_version_that_the_table_does_not_have_is_of_unknown_size() -> None:
    found = settled(replace(PLAN, version="0.0.1"), SEEN, TABLE, Installed("cpu"))
    assert found.pending
    assert (found.download_bytes, found.installed_bytes, found.free_bytes_after_prune) == (None, None, None)
