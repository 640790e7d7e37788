"""The claims file: what is refused in it, and that it covers the locks that exist."""

from __future__ import annotations

import pytest

from imprint_dev.claims import ClaimsError, TargetPlatform, parse_claims
from imprint_dev.layout import LOCKS

PLATFORMS = '[platforms]\nmac = { uv = "x86_64-apple-darwin", macos = "13.0" }\n'


def test_a_claim_is_every_platform_with_every_python() -> None:
    text = PLATFORMS + '[locks.a]\npython = "3.11"\nclaims = [{ platforms = ["mac"], pythons = ["3.11", "3.12"] }]\n'
    lock = parse_claims(text)["a"]
    assert lock.spots == (
        TargetPlatform("mac", "x86_64-apple-darwin", "13.0", "3.11"),
        TargetPlatform("mac", "x86_64-apple-darwin", "13.0", "3.12"),
    )
    assert (lock.python, lock.no_deps) == ("3.11", False)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('[locks.a]\npython = "3.11"\nclaims = [{ platforms = ["moon"], pythons = [] }]', "moon"),
        ('[locks.a]\npython = "3.11"\nclaims = []\nnodeps = true', "nodeps"),
        ("[lock]", "lock"),
        ('[platforms]\nmac = { triple = "x" }', "platforms.mac"),
    ],
)
def test_a_malformed_claim_is_refused_with_its_place(text: str, place: str) -> None:
    with pytest.raises(ClaimsError, match=place):
        parse_claims(text)


def test_every_lock_has_a_source_and_claims() -> None:
    claimed = set(parse_claims((LOCKS / "platforms.toml").read_text(encoding="utf-8")))
    assert claimed == {path.stem for path in LOCKS.glob("*.txt")} == {path.stem for path in LOCKS.glob("*.in")}
