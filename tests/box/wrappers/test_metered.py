"""The budget is a hard limit: no query beyond it is ever sent."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from soda_tta.box import CallableBox, Ledger, Metered
from soda_tta.errors import BudgetError, ImageError

CALLS = st.lists(
    st.tuples(st.integers(0, 12), st.sampled_from(["select", "probe", "evaluate"])), max_size=30
)


class Counting:
    """Counts what reaches the model."""

    def __init__(self) -> None:
        self.images = 0
        self.requests = 0

    def __call__(self, images: np.ndarray) -> np.ndarray:
        self.images += len(images)
        self.requests += 1
        return np.full((len(images), 2), 0.5)


def blank(count: int) -> np.ndarray:
    return np.zeros((count, 3, 2, 2), np.float32)


@given(limit=st.integers(0, 100), calls=CALLS)
def test_no_sequence_of_calls_exceeds_the_limit_and_the_ledger_counts_what_was_sent(
    limit: int, calls: list
) -> None:
    counting = Counting()
    ledger = Ledger(limit)
    box = CallableBox(counting, batch=5)
    billed = dict.fromkeys(["select", "probe", "evaluate"], 0)
    for count, purpose in calls:
        fits = sum(billed.values()) + count <= limit
        requests = counting.requests
        try:
            Metered(box, ledger, purpose)(blank(count))
            assert fits
            billed[purpose] += count
        except BudgetError:
            assert not fits
            assert counting.requests == requests  # refused before anything was sent
        assert counting.images == ledger.total == sum(billed.values()) <= limit
        assert ledger.left == limit - ledger.total
    assert {purpose: ledger.queries.get(purpose, 0) for purpose in billed} == billed


def test_the_budget_can_be_spent_to_the_last_query_and_no_further() -> None:
    box = Metered(CallableBox(Counting()), Ledger(10), "probe")
    box(blank(7))
    message = r"4 more queries \(probe\) would exceed the limit of 10; 7 are spent\. Raise"
    with pytest.raises(BudgetError, match=message):
        box(blank(4))
    box(blank(3))
    assert box.ledger.left == 0
    with pytest.raises(BudgetError):
        box(blank(1))


def test_without_a_limit_every_query_is_counted_and_none_is_refused() -> None:
    ledger = Ledger()
    Metered(CallableBox(Counting()), ledger, "serve")(blank(1000))
    assert (ledger.total, ledger.left, ledger.queries) == (1000, None, {"serve": 1000})


def test_many_threads_together_spend_exactly_the_limit() -> None:
    ledger = Ledger(1000)

    def spend(number: int) -> int:
        try:
            ledger.spend(1 + number % 7, f"purpose {number % 3}")
            return 1 + number % 7
        except BudgetError:
            return 0

    with ThreadPoolExecutor(16) as pool:
        spent = sum(pool.map(spend, range(2000)))
    assert spent == ledger.total == 1000
    assert sum(ledger.queries.values()) == 1000


def test_answer_without_checks_is_metered_too() -> None:
    counting = Counting()
    box = Metered(CallableBox(counting), Ledger(3), "probe")
    with pytest.raises(BudgetError):
        box.answer(blank(4))
    assert counting.images == 0


def test_images_that_cannot_be_sent_are_not_billed() -> None:
    box = Metered(CallableBox(Counting()), Ledger(10), "probe")
    with pytest.raises(ImageError):
        box(blank(5).astype(np.uint8))
    assert box.ledger.total == 0


def test_a_negative_number_of_queries_is_refused() -> None:
    with pytest.raises(ValueError, match="-1 queries cannot be spent"):
        Ledger(10).spend(-1, "probe")


def test_the_repr_of_a_ledger_shows_queries_by_purpose() -> None:
    ledger = Ledger(5000)
    assert repr(ledger) == "Ledger(0 queries: none)"
    ledger.spend(1200, "select")
    ledger.spend(30, "probe")
    assert repr(ledger) == "Ledger(1,230 queries: select 1,200, probe 30)"
