"""Names what the check does. Apart from the check itself, so that planning need not import what only a check needs."""

from __future__ import annotations

import hashlib
from pathlib import Path

CHILD = Path(__file__).with_name("check_child.py")
CHECK_ID = hashlib.sha256(CHILD.read_bytes()).hexdigest()[:16]
"""A verdict counts only for the check that gave it."""
