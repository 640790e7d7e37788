"""Decides which texts run together: sorted by length, as many as fit a budget of padded tokens. Pure.

Why: a batch costs its longest text times its size. In-order batches of 32 pad documentation texts 4.8 times over; a
budget over sorted texts pads them by 3 %. And a batch above about a thousand tokens no longer fits a core's cache.
"""

from __future__ import annotations

from collections.abc import Sequence


def plan_batches(lengths: Sequence[int], budget: int) -> list[list[int]]:
    """Return batches of indices into `lengths` (tokens per text), longest first.

    Each index appears once. The padded size of a batch (its longest text times its count) is at most `budget`, except
    that a text longer than the budget is a batch of its own. Longest first, so that workers that take batches in turn
    end together, and memory reaches its peak at once instead of growing.
    """
    batches: list[list[int]] = []
    longest = 0
    for index in sorted(range(len(lengths)), key=lambda index: (-lengths[index], index)):
        if batches and (len(batches[-1]) + 1) * longest <= budget:
            batches[-1].append(index)
        else:
            batches.append([index])
            longest = max(1, lengths[index])
    return batches


def padded_tokens(lengths: Sequence[int], batches: Sequence[Sequence[int]]) -> int:
    """Return how many tokens the model computes for these batches, padding included."""
    return sum(len(batch) * max(lengths[index] for index in batch) for batch in batches)
