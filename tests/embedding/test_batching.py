"""Batches hold every text once, within the budget, and waste little."""

from hypothesis import given
from hypothesis import strategies as st

from imprint.inside.batching import padded_tokens, plan_batches

LENGTHS = st.lists(st.integers(1, 256), max_size=400)
BUDGETS = st.integers(1, 2048)


@given(LENGTHS, BUDGETS)
def test_every_text_is_in_exactly_one_batch(lengths: list[int], budget: int) -> None:
    batches = plan_batches(lengths, budget)
    assert sorted(index for batch in batches for index in batch) == list(range(len(lengths)))
    assert all(batches)


@given(LENGTHS, BUDGETS)
def test_a_batch_of_several_keeps_within_the_budget(lengths: list[int], budget: int) -> None:
    for batch in plan_batches(lengths, budget):
        assert len(batch) == 1 or len(batch) * max(lengths[index] for index in batch) <= budget


@given(LENGTHS, BUDGETS)
def test_the_longest_come_first(lengths: list[int], budget: int) -> None:
    longest = [lengths[index] for batch in plan_batches(lengths, budget) for index in batch]
    assert longest == sorted(lengths, reverse=True)


def test_sorting_spares_the_padding_of_batches_in_order() -> None:
    """Documentation texts: mostly short, some long. In-order batches of 32 compute more than twice as much."""
    lengths = [256 if index % 20 == 0 else 5 + index % 40 for index in range(2000)]
    sorted_cost = padded_tokens(lengths, plan_batches(lengths, 256))
    in_order = [list(range(start, min(start + 32, 2000))) for start in range(0, 2000, 32)]
    assert sorted_cost < 1.1 * sum(lengths)
    assert padded_tokens(lengths, in_order) > 2 * sorted_cost


def test_no_texts_make_no_batches() -> None:
    assert plan_batches([], 256) == []
