"""Hints that cannot be read hide no error."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from imprint import resources
from imprint.hints import helps, hints


def test_a_hint_that_cannot_be_opened_says_so_and_the_next_one_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_name: str) -> Path:
        raise OSError(errno.EMFILE, "Too many open files")

    hints.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(resources, "data_path", refuse)
        assert "Too many open files" in helps("setup")
    assert helps("setup") == "run `imprint setup`"
