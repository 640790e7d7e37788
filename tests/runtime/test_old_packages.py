"""What the programs in a target use of its packages: an older release of one is used, or told from a whole one."""

from __future__ import annotations

import sys
from importlib.machinery import SourceFileLoader
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from imprint.inside.check import missing_packages
from imprint.inside.embed import CODES
from imprint.runtime.check.children import INSIDE


class Old:
    """A tokenizer as tokenizers 0.19 has it."""

    @classmethod
    def from_file(cls, _path: str) -> Old:
        """Read nothing."""
        return cls()

    def no_truncation(self) -> None:
        """Change nothing."""

    no_padding = no_truncation

    def encode(self, _text: str) -> Any:  # noqa: ANN401 - as it is there
        """Return one token between two special ones."""
        return SimpleNamespace(ids=[1, 7, 2], special_tokens_mask=[1, 0, 1])

    def encode_batch(self, texts: list[str]) -> list[Any]:
        """Return the same for each."""
        return [self.encode(text) for text in texts]


def test_a_tokenizer_without_the_fast_way_is_used_the_slow_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numpy", SimpleNamespace(array=lambda ids, dtype: ids, int32=None))  # noqa: ARG005 - as numpy names it
    monkeypatch.setitem(sys.modules, "tokenizers", SimpleNamespace(Tokenizer=Old))
    # As a module of its own: the one that others may import belongs to the numpy that is there.
    loader = SourceFileLoader("old_tokens", str(INSIDE / "tokens.py"))
    module = ModuleType(loader.name)
    loader.exec_module(module)
    assert module.Tokens("tokenizer.json", 8).encode(["one", "two"]) == ([[1, 7, 2]] * 2, 0)


def test_a_package_without_what_embedding_uses_counts_as_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", ModuleType("tokenizers"))
    whole = SimpleNamespace(dumps=None, OPT_APPEND_NEWLINE=1, OPT_SERIALIZE_NUMPY=2)
    monkeypatch.setitem(sys.modules, "orjson", whole)
    assert missing_packages() == ["tokenizers"]


@pytest.mark.parametrize("error", [AttributeError, TypeError])
def test_a_package_that_is_used_wrongly_is_the_target_s_fault(error: type[Exception]) -> None:
    """That code comes with the command that sets the target up."""
    assert CODES[error.__name__] == "target-incomplete"
