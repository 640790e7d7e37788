"""The time as Imprint writes it: UTC, whole seconds, ISO 8601."""

from __future__ import annotations

import time


def now() -> str:
    """Return the time as state files have it: `2026-12-01T13:37:00Z`."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def stamp() -> str:
    """Return the time as names of files and folders have it: `20261201T133700Z`."""
    return time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
