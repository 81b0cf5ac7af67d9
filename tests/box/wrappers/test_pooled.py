"""Hedges: whatever fails, each query is answered once, and all that were sent are on the bill."""

import threading

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as some

from soda_tta.box import Batched, CallableBox, Ledger, Meter, Retrying
from soda_tta.box.replicas import Replica, Replicas
from soda_tta.box.wrappers.pooled import Hedges, Pooled
from soda_tta.errors import BoxUnavailable, BudgetError
from soda_tta.storage.book import Book

IMAGES = np.random.default_rng(0).random((24, 3, 2, 2)).astype(np.float32)


class Servers:
    """Replicas of one model that fail as planned; counts what a vendor would bill."""

    def __init__(self, plans: list[list[str]]) -> None:
        self.computed = 0
        self.running = 0
        self.changed = threading.Condition()
        self.replicas = Replicas([self.replica(plan) for plan in plans])

    def replica(self, plan: list[str]) -> Replica:
        plan = list(plan)

        def model(images):
            with self.changed:
                fate = plan.pop(0) if plan else "fine"
                self.running += 1
                self.computed += 0 if fate == "refused" else len(images)
            try:
                if fate == "slow":
                    with self.changed:
                        self.changed.wait(0.003)
                if fate in ("lost", "refused"):
                    raise BoxUnavailable(fate, sent=fate == "lost")
                light = images.mean((1, 2, 3))
                return np.stack([light, 1 - light], 1)
            finally:
                with self.changed:
                    self.running -= 1
                    self.changed.notify_all()

        box = CallableBox(model)
        return Replica(f"server {id(plan)}", lambda: box, box)

    def finish(self) -> None:
        """Wait for the losers of races."""
        with self.changed:
            assert self.changed.wait_for(lambda: self.running == 0, 5)


class Eager(Hedges):
    """Hedges every request that the ledger allows."""

    def patience(self) -> float:
        return 0.0005

    def take(self) -> bool:
        return True


FATES = some.lists(some.sampled_from(["fine", "slow", "lost", "refused"]), max_size=8)


@settings(max_examples=60, deadline=None)
@given(
    plans=some.lists(FATES, min_size=2, max_size=4),
    limit=some.integers(24, 120),
    margin=some.integers(0, 40),
)
def test_the_budget_is_never_exceeded_and_every_query_is_answered_once(
    plans, limit, margin
) -> None:
    servers = Servers(plans)
    pooled = Pooled(servers.replicas, hedge=1.0)
    pooled.hedges = Eager(1.0)
    ledger = Ledger(limit=limit, margin=margin)
    box = Batched(Retrying(pooled, sleep=lambda _: None), batch=4, workers=3)
    try:
        rows = Meter(box, ledger).asking("probe")(IMAGES)
    except (BudgetError, BoxUnavailable):
        rows = None
    servers.finish()
    assert servers.computed <= ledger.total <= limit
    assert ledger.hedged <= margin // 2
    if rows is not None:
        np.testing.assert_allclose(rows[:, 0], IMAGES.mean((1, 2, 3)), rtol=1e-5)
        assert ledger.queries == {"probe": 24}
        assert ledger.total == 24 + ledger.retried + ledger.hedged


def test_hedges_are_a_share_of_the_requests() -> None:
    hedges = Hedges(0.1)
    assert hedges.patience() is None and not hedges.take()
    for _ in range(20):
        hedges.measured(0.02)
    assert hedges.patience() == 3 * 0.02
    assert [hedges.take() for _ in range(4)] == [True, True, False, False]
    hedges.given_up = True
    for _ in range(20):
        hedges.measured(0.02)
    assert not hedges.take()


def test_hedges_are_in_the_book(tmp_path) -> None:
    ledger = Ledger(limit=100, book=Book(tmp_path / "book"), margin=20)
    ledger.spend(30, "probe")
    assert ledger.hedge(6) and ledger.hedge(4)
    assert not ledger.hedge(1)  # the other half of the margin is for retries
    ledger.unhedge(4)
    assert ledger.by_purpose() == {"probe": 30, "hedged": 6}
    resumed = Ledger(limit=100, book=Book(tmp_path / "book"), margin=20)
    assert resumed.by_purpose() == {"hedged": 6, "lost": 30}
    assert resumed.calls == ledger.calls == 2
    assert not Ledger(limit=100).hedge(1)
    assert Ledger().hedge(1)


def test_another_number_of_classes_is_refused() -> None:
    servers = Servers([[]])
    other = CallableBox(lambda images: np.full((len(images), 3), 1 / 3))
    servers.replicas.all.append(Replica("other", lambda: other, other))
    pooled = Pooled(servers.replicas)
    pooled(IMAGES)
    try:
        pooled(IMAGES)
    except Exception as error:
        assert "other returned 3 classes and another replica 2" in str(error)
    else:
        raise AssertionError("not refused")


def test_facts_that_are_stated_later_reach_every_replica() -> None:
    servers = Servers([[], []])
    mirrored = Pooled(servers.replicas).restated(logits=True)
    for _ in range(2):
        assert np.abs(mirrored(IMAGES).max()) < 0.8  # a softmax of values in [0, 1]
