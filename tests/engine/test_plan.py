"""Plans: what a run will cost, and that it never exceeds its budget."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soda_tta.engine.plan import plan_run
from soda_tta.errors import BudgetError
from soda_tta.methods.registry import all_methods

SODA = all_methods()["soda"]
AUTO = all_methods()["soda-auto"]
DEPLOYED = all_methods()["deployed"]
ECONOMY = all_methods()["soda-e"]
STREAM = all_methods()["soda-o"]


def test_the_papers_cost_is_900_queries_per_image_apart_from_two_passes() -> None:
    assert plan_run(SODA, 10_000).queries == {
        "select": 10_000,
        "evaluate": 10_000,
        "probe": 9_000_000,
    }
    assert plan_run(SODA.but(q=10), 10_000).queries["probe"] == 16_500_000
    assert plan_run(DEPLOYED, 10_000).queries == {"select": 10_000}


@given(
    images=st.integers(1, 3000),
    budget=st.floats(1, 2000),
    method=st.sampled_from(
        [SODA, AUTO, DEPLOYED, ECONOMY, ECONOMY.but(judged=50), SODA.but(batch=7, q=3, epochs=4)]
    ),
)
def test_a_plan_never_exceeds_its_budget(images: int, budget: float, method) -> None:
    try:
        plan = plan_run(method, images, budget)
    except BudgetError:
        assert method is AUTO
        return
    assert plan.total <= budget * images + 1e-6
    assert plan.limit is not None and plan.total <= plan.limit


def test_a_budget_of_one_covers_the_first_pass_and_less_is_refused() -> None:
    assert plan_run(SODA, 500, budget=1).queries == {"select": 500}
    assert not plan_run(SODA, 500, budget=1).learns
    with pytest.raises(BudgetError, match="at least 1"):
        plan_run(SODA, 500, budget=0.9)


def test_a_small_budget_covers_part_of_an_epoch() -> None:
    plan = plan_run(SODA, 51_200, budget=5)
    # The margin costs one step: 256 images times 6 candidates.
    assert plan.queries["probe"] == 3 * 51_200 - 6 * 256 and plan.epochs == 1 and plan.shortened


@pytest.mark.parametrize(("budget", "margin"), [(1, 0), (4, 8), (5, 10), (902, 0), (903, 64)])
def test_a_plan_leaves_a_margin_unless_the_whole_method_needs_it(
    budget: float, margin: int
) -> None:
    plan = plan_run(SODA.but(batch=20), 100, budget=budget)
    assert plan.limit == 100 * budget
    assert plan.margin == margin
    assert plan.total <= plan.planned_limit
    assert plan.shortened == (budget < 902)


def test_the_plan_includes_the_queries_that_choose_a_learning_rate() -> None:
    plan = plan_run(AUTO.but(epochs=100), 1000)
    assert plan.rungs == (5, 20, 50)
    assert plan.queries["tune"] == 6000 * (5 * 5 + 3 * 15 + 2 * 30)
    assert plan.queries["probe"] == 6000 * 50
    with pytest.raises(BudgetError, match="lr="):
        plan_run(AUTO, 1000, budget=10)


def test_the_plan_of_a_stream_may_cover_only_the_first_pass() -> None:
    plan = plan_run(STREAM, 1000, budget=1)
    assert plan.queries == {"select": 1000, "probe": 0, "evaluate": 0}
    assert plan_run(STREAM, 1000, budget=1.5).total == 1500


def test_progress_ends_at_the_epoch_of_the_last_step() -> None:
    last_epochs = {
        name: plan_run(all_methods()[name], 1000).last_epoch
        for name in ("soda", "soda-e", "soda-o", "dine", "ma-so")
    }
    assert last_epochs == {"soda": None, "soda-e": 0, "soda-o": 80, "dine": 150, "ma-so": 150}
