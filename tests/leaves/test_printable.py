"""What a terminal would act on is shown, not acted on."""

from __future__ import annotations

import json
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from imprint.printable import printable, printable_data, printable_json, printable_line

ANY = st.text(st.characters(codec=None), max_size=40)


def acts(text: str, *, allowed: str = "") -> set[str]:
    """Return the characters of a text that a terminal or a reader's eye would be misled by."""
    order = set("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
    return {one for one in text if (unicodedata.category(one) in {"Cc", "Cs", "Zl", "Zp"} or one in order)} - set(
        allowed
    )


def test_each_is_shown_as_its_code() -> None:
    assert printable_line("a\x1b[31mb\x07\x7f\x9b\n\t") == "a\\x1b[31mb\\x07\\x7f\\x9b\\x0a\\x09"
    assert printable("a\r\n\tb\u202egnp.exe\udcff") == "a\\x0d\n\tb\\u202egnp.exe\\udcff"
    assert printable_line("Grüße, 模型 and 🦊 stay") == "Grüße, 模型 and 🦊 stay"


@given(ANY)
def test_nothing_that_acts_is_left(text: str) -> None:
    assert acts(printable_line(text)) == set()
    assert acts(printable(text), allowed="\n\t") == set()
    assert printable(printable(text)) == printable(text)


@given(
    st.recursive(
        ANY | st.none() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(ANY, inner), max_leaves=8
    )
)
def test_data_of_any_shape_is_clean_and_json_stays_the_same_document(value: object) -> None:
    assert acts(json.dumps(printable_data(value), ensure_ascii=False)) == set()
    document = printable_json(json.dumps(value, ensure_ascii=False, indent=1))
    assert acts(document, allowed="\n") == set()
    assert json.loads(document) == json.loads(json.dumps(value))


def test_lines_are_kept_where_they_are_ours() -> None:
    data = {"report": "a\nb\x1b", "name": "a\nb"}
    assert printable_data(data, frozenset({"report"})) == {"report": "a\nb\\x1b", "name": "a\\x0ab"}
