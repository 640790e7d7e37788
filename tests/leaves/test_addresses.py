"""Of an address only the host is ever told."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from imprint.addresses import HIDDEN, host_of, hosts_only


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("https://host.example/simple", "https://host.example"),
        ("https://host.example:8443/simple/", "https://host.example:8443"),
        ("https://bob:secret@host.example/simple", "https://host.example"),
        ("https://token@host.example/simple", "https://host.example"),
        ("https://bob:p%40ss%2Fword@host.example/", "https://host.example"),
        ("https://[2001:db8::1]:8080/simple", "https://[2001:db8::1]:8080"),
        ("https://bob:secret@[2001:db8::1]/simple", "https://[2001:db8::1]"),
        ("https://host.example/tok-1234/simple?key=abc#frag", "https://host.example"),
        ("http://localhost", "http://localhost"),
        # Nobody can tell which part is the host here, and one of them is the password.
        ("https://bob:sec/ret@host.example/", f"https://{HIDDEN}"),
        ("https://bob:s?cret@host.example/", f"https://{HIDDEN}"),
        ("https://bob:s#cret@host.example/", f"https://{HIDDEN}"),
        ("https://bob:p@ss/word@host.example/", f"https://{HIDDEN}"),
        ("https://bob:secret", f"https://{HIDDEN}"),
        ("https://", f"https://{HIDDEN}"),
        ("https://bob:secret@", f"https://{HIDDEN}"),
        ("bob:secret@host.example/simple", HIDDEN),
    ],
)
def test_only_the_host_is_told(address: str, told: str) -> None:
    assert hosts_only(f"cannot reach {address}") == f"cannot reach {told}"
    assert host_of(address) == told


@pytest.mark.parametrize(
    "text",
    [
        "error: Failed to fetch: `https://bob:sEcr3t@host.example/simple/onnxruntime/`",
        "  Caused by: error sending request for url (https://host.example/sEcr3t/simple/)",
        "invalid URL: 'bob:sEcr3t@host.example'",
        'File "x.py" says <https://host.example/?token=sEcr3t>',
    ],
)
def test_an_installer_s_own_words_lose_it_too(text: str) -> None:
    told = hosts_only(text)
    assert "sEcr3t" not in told
    assert "bob" not in told


def test_what_is_known_is_taken_out_in_pieces_and_decoded() -> None:
    address = "https://bob:se cr/et@host.example/a1b2c3d4/simple"
    told = hosts_only(
        "looked in https://bob:se cr/et@host.example/a1b2c3d4/simple: `se cr`, et, a1b2c3d4 and bob", [address]
    )
    assert not {word for word in ("se cr", " et", "a1b2c3d4", "bob") if word in told}
    assert "simple" in hosts_only("a simple error", [address])


def test_other_text_stays() -> None:
    text = "packages could not be fetched (`numpy==2.4.6`): 12:30, C:\\x, a@b, std::string, /usr/lib/x.so: no (a.b)"
    assert hosts_only(text) == text


SECRET = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=12).map(lambda s: f"Zq{s}9xK")


@given(
    user=SECRET,
    password=SECRET,
    token=SECRET,
    host=st.sampled_from(["host.example", "10.0.0.7", "[2001:db8::1]", "localhost:8080"]),
    encoded=st.booleans(),
    around=st.sampled_from(["{}", "error: `{}`: refused", "({}), twice: {}", "url={}&x", '"{}"']),
)
def test_no_part_of_a_login_or_a_token_ever_passes(
    user: str, password: str, token: str, host: str, around: str, *, encoded: bool
) -> None:
    def written(part: str) -> str:
        return quote(part, safe="") if encoded else part

    address = f"https://{written(user)}:{written(password)}@{host}/{written(token)}/simple?key={written(token)}"
    told = hosts_only(around.format(*[address] * 2), [address])
    for secret in (user, password, token):
        assert secret not in told
        assert written(secret) not in told
