"""Names what the check does. Apart from the check itself, so that planning need not import what only a check needs."""

from __future__ import annotations

import hashlib
from pathlib import Path

from imprint import inside

PROGRAM = [Path(inside.__file__).with_name(name) for name in ("check.py", "loading.py", "one_node.py")]
CHECK_ID = hashlib.sha256(b"".join(path.read_bytes() for path in PROGRAM)).hexdigest()[:16]
"""A verdict counts only for the check that gave it."""
