"""Ctrl-C, the request to end and a closed terminal all end a run in one way; what is ignored is ignored."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator

import pytest

from imprint.errors import InterruptedByUserError
from imprint.runtime.interrupts import held_back, interruptible


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize(
    ("number", "code", "exit_code"),
    [(signal.SIGINT, "interrupted", 130), (signal.SIGTERM, "interrupted", 130), (signal.SIGHUP, "hangup", 129)],
)
@pytest.mark.parametrize("holding", [False, True])
def test_each_ends_with_an_error_that_says_what_stays(
    number: signal.Signals, code: str, exit_code: int, holding: bool
) -> None:
    before = signal.getsignal(number)
    cleaned = []

    def body() -> None:
        try:
            with held_back() if holding else contextlib.nullcontext():
                os.kill(os.getpid(), number)
                cleaned.append("the rest of what must not be cut")
        finally:
            cleaned.append("up")

    with pytest.raises(InterruptedByUserError) as caught, interruptible("setup"):
        body()
    assert (caught.value.specific_code, caught.value.exit_status) == (code, exit_code)
    assert caught.value.hint
    assert cleaned[-1] == "up"
    assert len(cleaned) == 1 + holding
    assert signal.getsignal(number) == before


def test_a_second_hangup_does_not_disturb_the_cleaning_up() -> None:
    cleaned = []

    def body() -> None:
        try:
            os.kill(os.getpid(), signal.SIGHUP)
        finally:
            os.kill(os.getpid(), signal.SIGHUP)
            cleaned.append("up")

    with pytest.raises(InterruptedByUserError), interruptible("setup"):
        body()
    assert cleaned == ["up"]


def test_what_is_ignored_under_nohup_is_ignored() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with interruptible("setup"):
        os.kill(os.getpid(), signal.SIGHUP)
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
