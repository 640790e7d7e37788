"""Where things are in the checkout that the maintainers' commands work on."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LOCKS = ROOT / "locks"
BUILDS = ROOT / "data" / "builds.json"
