"""soda-e: what a budget buys, and what happens if it buys too little."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from soda_tta import adapt, all_methods
from soda_tta.engine.plan import plan_run, query_limit
from soda_tta.errors import MethodError
from soda_tta.methods.economy_sizes import FEWEST_IMAGES

SODA_E = all_methods()["soda-e"]
RACE_OF_RECIPES = 128 + 24 * 18 + 12 * 37 + 6 * 73  # 18 + 37 + 73 images: 128


@pytest.mark.parametrize("budget", [1, 2])
@pytest.mark.parametrize("count", [1, 30, 1000, 10_000])
def test_a_budget_of_one_or_two_buys_only_the_first_pass(count: int, budget: int) -> None:
    plan = plan_run(SODA_E, count, budget)
    assert plan.queries == {"select": count}
    assert not plan.learns
    assert plan.shortened == (count > 30)  # 30 images are too few for any budget


@pytest.mark.parametrize(
    ("count", "budget", "probe"),
    [
        (10_000, 3, 8_000),
        (10_000, 5, 28_000),
        (1000, 10, 6_500),
        (200, 30, 5_300),
        (1000, 30, 26_500),
        (1000, 100, 96_500),
        # by default: six rounds on 128 images, however many images there are. The first has 38
        # moves and the current point, each of the others 12 steps and the current point. Before
        # them, a race of the recipes in three heats
        (10_000, None, 128 * (39 + 5 * 13) + RACE_OF_RECIPES),
        (1000, None, 128 * (39 + 5 * 13) + RACE_OF_RECIPES),
    ],
)
def test_a_budget_buys_a_first_pass_a_search_a_verdict_and_the_answers(
    count: int, budget, probe: int
) -> None:
    plan = plan_run(SODA_E.but(conditions=1), count, budget)
    # all images but those of the search: a quarter, or what a round needs
    judged = {200: 150, 1000: 750, 10_000: 1000}[count]
    assert plan.margin == (0 if budget is None else 64)
    learning = {"probe": probe - plan.margin, "judge": 2 * judged}
    assert plan.queries == {"select": count, **learning, "evaluate": count}
    assert plan.learns
    assert not plan.shortened


@given(images=st.integers(1, 20_000), budget=st.floats(1, 1000))
@settings(max_examples=200, deadline=None)
def test_no_plan_exceeds_its_limit_or_searches_on_too_few_images(
    images: int, budget: float
) -> None:
    plan = plan_run(SODA_E, images, budget)
    assert plan.total <= plan.limit <= budget * images + 1e-6
    if plan.learns:
        sizes = SODA_E.sizes(images, plan.planned_limit)
        assert sizes.batch >= FEWEST_IMAGES
        assert sizes.judged >= 10
        assert sizes.judged + sizes.batch <= images
        assert sizes.probe >= SODA_E.search_cost(sizes.batch, rounds=2)


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        (5, "at most 2 rounds on 24 images each; a verdict on 217 others"),
        (15, "at most 5 rounds on 70 images each, the first on recipes; a verdict on 450 others"),
        (
            100,
            "at most 32 rounds on 128 images each, the first on recipes; if they end early, CMA-ES "
            "may use the queries that are left; a verdict on 450 others",
        ),
    ],
)
def test_the_outline_says_how_many_rounds_there_are_and_what_follows(
    budget: int, words: str
) -> None:
    method = SODA_E.but(conditions=1)
    assert method.outline(plan_run(method, 600, budget)) == words


@pytest.mark.parametrize("count", [1, 10, FEWEST_IMAGES - 1, FEWEST_IMAGES])
def test_too_few_images_get_the_models_own_answers_and_a_reason(model, count: int) -> None:
    images = np.random.default_rng(0).random((count, 3, 8, 8), dtype=np.float32)
    for budget in (None, 100):
        run = adapt(images, model, method="soda-e", budget=budget)
        np.testing.assert_array_equal(run.probabilities, run.before)
        assert run.ledger.queries == {"select": count}
        assert run.verdict is None
        assert f"{count} images are too few" in run.reason
        assert run.reason.endswith(".")


def test_the_reason_names_the_smallest_budget_that_is_enough(model) -> None:
    images = np.random.default_rng(0).random((200, 3, 8, 8), dtype=np.float32)
    run = adapt(images, model, method="soda-e", budget=5)
    assert run.ledger.queries == {"select": 200}
    assert run.stopped == "budget"
    assert "5 queries per image are too few" in run.reason
    enough = float(run.reason.split("At least ")[1].split()[0])
    assert plan_run(SODA_E, 200, enough).learns
    assert not plan_run(SODA_E, 200, enough - 0.01).learns


@pytest.mark.parametrize(
    ("count", "aside", "most"),
    # Whole numbers from 3 on would give 5, 3 and 3; clean images raise what is needed.
    [(600, 0, 4.99), (10_000, 0, 2.5), (100_000, 0, 2.1), (200, 100, 12)],
)
def test_the_least_budget_is_named_to_a_hundredth_of_a_query(
    count: int, aside: int, most: float
) -> None:
    least = SODA_E.least_budget(count, aside)
    assert least <= most
    assert plan_run(SODA_E, count, least, {"clean": aside}).learns
    plan = plan_run(SODA_E, count, least - 0.01, {"clean": aside})
    assert not plan.learns
    outline = SODA_E.outline(plan)
    assert outline.startswith(f"{least - 0.01:.3g} queries per image are too few")
    assert outline.endswith(f"At least {least:g} are needed.")


@given(
    images=st.integers(100, 20_000),
    views=st.sampled_from(["1", "2", "auto"]),
    step=st.integers(1, 300),
)
@settings(max_examples=100, deadline=None)
def test_no_budget_below_the_least_buys_a_search_and_every_one_above_does(
    images: int, views: str, step: int
) -> None:
    """What the bisection relies on."""
    method = SODA_E.but(views=views)
    least = method.least_budget(images)
    if least is None:
        return
    above = query_limit(least + step / 100, images)
    below = query_limit(least - step / 100, images)
    assert method.sizes(images, above) is not None
    assert method.sizes(images, below) is None


@pytest.mark.parametrize(
    "wrong",
    [{"level": 0.0}, {"level": 0.5}, {"judged": 5}, {"batch": 10}, {"tried": 1}, {"population": 2}],
)
def test_impossible_settings_are_refused(wrong) -> None:
    with pytest.raises(MethodError):
        SODA_E.but(**wrong)
