"""As much of numpy as the check needs to get to a session, for tests in which no session computes anything."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any


class Anything:
    """Whatever is done with it gives another one."""

    shape = (2, 2)

    def __getattr__(self, name: str) -> Anything:
        return Anything()

    def __call__(self, *_: object, **__: object) -> Anything:
        """Give another one."""
        return Anything()

    def _operate(self, _: object) -> Anything:
        return Anything()

    __matmul__ = __sub__ = __add__ = __radd__ = __mul__ = __truediv__ = __pow__ = _operate


random = SimpleNamespace(RandomState=Anything())
lib = SimpleNamespace(stride_tricks=SimpleNamespace(sliding_window_view=Anything()))


def einsum(*_: object) -> Anything:
    """Return nothing in particular."""
    return Anything()


def sqrt(_: object) -> Anything:
    """Return nothing in particular."""
    return Anything()


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever is asked for
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(sys, name, Anything())
