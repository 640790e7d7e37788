"""From the model's token vectors to one unit vector a text, in float32; refuses what is no vector."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any
"""A numpy array; numpy is not installed where types are checked."""


class BadVectorError(Exception):
    """The model produced a zero vector, or one with NaN or infinity in it."""


def mean_pool(hidden: Array, mask: Array) -> Array:
    """Return the mean over each text's own tokens: [n, tokens, dims] and a 0/1 mask [n, tokens] give [n, dims]."""
    weights = mask.astype(np.float32)
    # One small matrix product a text: no temporary of the size of `hidden`.
    summed = np.matmul(weights[:, None, :], hidden)[:, 0, :]
    return summed / weights.sum(axis=1, keepdims=True)


def unit(vectors: Array) -> Array:
    """Return the vectors [n, dims] scaled to length 1. Raises BadVectorError for a zero, NaN or infinite one."""
    lengths = np.sqrt(np.einsum("nd,nd->n", vectors, vectors))
    if not np.isfinite(lengths).all() or not (lengths > 0).all():
        raise BadVectorError("the model returned a zero vector or one that is not finite")
    return vectors / lengths[:, None]
