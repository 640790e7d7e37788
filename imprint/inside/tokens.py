"""Turns texts into token ids as the model wants them, in bounded memory, and counts what had to be cut.

The tokenizer file's own truncation and padding are overridden: they are the exporter's, not the model's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

_CHUNK_TEXTS = 64
_CHUNK_CHARACTERS = 64 * 1024
"""How much is tokenised in one call: an encoding takes some hundred bytes a token until it is dropped."""

_HEAD_CHARACTERS = 4096
_MARGIN = 128
"""Only the head of a long text is tokenised. It is enough when it yields this many tokens above the limit: cutting a
text can change the tokens of the word that is cut, and a word longer than 100 characters is one unknown token."""


class Tokens:
    """A tokenizer file with a limit of `max_tokens` for each text, special tokens included."""

    def __init__(self, path: str, max_tokens: int) -> None:
        from tokenizers import Tokenizer

        self._tokenizer: Any = Tokenizer.from_file(path)
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        # Without the offsets, which nobody needs; tokenizers before 0.20 has no such way.
        self._encode: Any = getattr(self._tokenizer, "encode_batch_fast", self._tokenizer.encode_batch)
        self._max_tokens = max_tokens
        # How many special tokens close a text (BERT: one [SEP]); they survive truncation.
        mask = list(self._tokenizer.encode("a").special_tokens_mask)
        self._closing = len(mask) - (max(i for i, special in enumerate(mask) if not special) + 1) if mask else 0

    def encode(self, texts: Sequence[str]) -> tuple[list[Any], int]:
        """Return (ids, truncated): for each text an int32 array of 1 to `max_tokens` ids, and how many were cut."""
        ids: list[Any] = []
        truncated = 0
        for chunk in _chunks(texts):
            heads = [text[:_HEAD_CHARACTERS] for text in chunk]
            for text, head, encoding in zip(chunk, heads, self._encode(heads)):  # noqa: B905
                found = encoding.ids if len(head) == len(text) else self._of_long(text, encoding.ids)
                truncated += len(found) > self._max_tokens
                ids.append(np.array(self._cut(found), dtype=np.int32))
        return ids, truncated

    def _of_long(self, text: str, found: list[int]) -> list[int]:
        size = _HEAD_CHARACTERS
        while len(found) < self._max_tokens + _MARGIN and size < len(text):
            size *= 4
            found = self._encode([text[:size]])[0].ids
        return found

    def _cut(self, found: list[int]) -> list[int]:
        if len(found) <= self._max_tokens:
            return found
        kept = found[: max(0, self._max_tokens - self._closing)]
        return (kept + found[len(found) - self._closing :])[: self._max_tokens]


def _chunks(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    start = characters = 0
    for end, text in enumerate(texts):
        size = min(len(text), _HEAD_CHARACTERS)
        if end > start and (end - start == _CHUNK_TEXTS or characters + size > _CHUNK_CHARACTERS):
            yield texts[start:end]
            start, characters = end, 0
        characters += size
    if start < len(texts):
        yield texts[start:]
