"""soda-e: what a budget buys, that it is kept, that paid answers are used, and the transports it must survive."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from soda_tta import adapt, all_methods, load_box
from soda_tta.adaptors.bank import BankAdaptor
from soda_tta.box import OnnxBox, Quantised
from soda_tta.data import open_images
from soda_tta.demo import accuracy
from soda_tta.engine.plan import plan_run
from soda_tta.errors import MethodError
from soda_tta.methods.economy import ASKED_AT_ONCE, FEWEST_IMAGES
from soda_tta.zoo.digits import hazy_digits, load_digits

SODA_E = all_methods()["soda-e"]


@pytest.mark.parametrize("budget", [1, 2])
@pytest.mark.parametrize("count", [1, 30, 1000, 10_000])
def test_a_budget_of_one_or_two_passes_through(count: int, budget: int) -> None:
    plan = plan_run(SODA_E, count, budget)
    assert plan.queries == {"select": count} and not plan.learns
    assert plan.shortened == (count > 30)  # 30 images are too few for any budget


@pytest.mark.parametrize(
    ("count", "budget", "probe"),
    [
        (10_000, 3, 8_000),
        (10_000, 5, 28_000),
        (1000, 10, 7_024),
        (200, 30, 5_500),
        (1000, 30, 27_024),
        (1000, 100, 97_024),
        (
            10_000,
            None,
            12_288,
        ),  # its own wish: six rounds on 128 images, however many images there are
        (1000, None, 12_288),
    ],
)
def test_a_budget_buys_a_first_look_a_search_a_verdict_and_the_answers(
    count: int, budget, probe: int
) -> None:
    plan = plan_run(SODA_E, count, budget)
    judged = {200: 50, 1000: 488, 10_000: 1000}[
        count
    ]  # a quarter, or more where the search has enough without them
    assert plan.queries == {"select": count, "probe": probe, "judge": 2 * judged, "evaluate": count}
    assert plan.learns and not plan.shortened


@given(images=st.integers(1, 20_000), budget=st.floats(1, 1000))
@settings(max_examples=200, deadline=None)
def test_no_plan_exceeds_its_limit_and_none_searches_on_too_little(
    images: int, budget: float
) -> None:
    plan = plan_run(SODA_E, images, budget)
    assert plan.total <= plan.limit <= budget * images + 1e-6
    if plan.learns:
        sizes = SODA_E.sizes(images, plan.limit)
        assert (
            sizes.batch >= FEWEST_IMAGES
            and sizes.judged >= 10
            and sizes.judged + sizes.batch <= images
        )
        assert sizes.probe >= sizes.batch * (31 + 13)  # at least two rounds of the 30 moves


@pytest.mark.parametrize("count", [1, 10, FEWEST_IMAGES - 1, FEWEST_IMAGES])
def test_too_few_images_are_left_alone_and_told_so(model, count: int) -> None:
    images = np.random.default_rng(0).random((count, 3, 8, 8), dtype=np.float32)
    for budget in (None, 100):
        run = adapt(images, model, method="soda-e", budget=budget)
        np.testing.assert_array_equal(run.probabilities, run.before)
        assert run.ledger.queries == {"select": count} and run.verdict is None
        assert f"{count} images are too few" in run.reason and run.reason.endswith(".")


def test_too_small_a_budget_says_which_would_do(model) -> None:
    images = np.random.default_rng(0).random((200, 3, 8, 8), dtype=np.float32)
    run = adapt(images, model, method="soda-e", budget=5)
    assert run.ledger.queries == {"select": 200} and run.stopped == "budget"
    assert "5 queries an image leave too little" in run.reason
    enough = int(run.reason.split("From ")[1].split()[0])
    assert plan_run(SODA_E, 200, enough).learns and not plan_run(SODA_E, 200, enough - 1).learns


@pytest.mark.parametrize(
    "wrong",
    [{"level": 0.0}, {"level": 0.5}, {"judged": 5}, {"batch": 10}, {"tried": 1}, {"population": 2}],
)
def test_impossible_numbers_are_refused(wrong) -> None:
    with pytest.raises(MethodError):
        SODA_E.but(**wrong)


class World:
    """The hazy digits of the demo."""

    def __init__(self, folder) -> None:
        model, images = hazy_digits(folder, seed=0)
        digits = load_digits(seed=0)
        self.box, self.labels = OnnxBox(model), digits.test_labels
        self.hazy, self.clean = open_images(images)[slice(None)], digits.test

    def gain(self, run) -> float:
        labels = self.labels[: len(run.before)]
        return accuracy(run.probabilities, labels) - accuracy(run.before, labels)


@pytest.fixture(scope="module")
def world(tmp_path_factory) -> World:
    return World(tmp_path_factory.mktemp("digits"))


@pytest.fixture(scope="module")
def plain(world):
    """The run that others are measured by."""
    return adapt(world.hazy, world.box, method="soda-e", budget=10)


def test_it_gains_and_pays_less_than_its_plan(world, plain) -> None:
    assert (
        world.gain(plain) >= 0.4 and plain.verdict.adopt and plain.verdict.images == 899 - 384 - 128
    )
    planned = plan_run(SODA_E, 899, 10).queries
    assert all(spent <= planned[purpose] for purpose, spent in plain.ledger.queries.items())
    assert (
        plain.ledger.queries["evaluate"] < 899
    )  # answers of the last round of the search are answers
    assert plain.reason[0].isupper() or plain.reason[0].isdigit()
    assert plain.reason.endswith(".") and plain.verdict.sentence.endswith(".")


def test_answers_already_paid_are_the_ones_the_adaptor_gives(world, plain) -> None:
    again = world.box(plain.adaptor(world.hazy))
    np.testing.assert_allclose(plain.probabilities, again, atol=1e-4)


def test_a_search_asks_in_questions_a_kill_may_lose(world, plain) -> None:
    asked: list[int] = []

    def answer(images: np.ndarray) -> np.ndarray:
        asked.append(len(images))
        return world.box(images)

    run = adapt(world.hazy, load_box(answer, batch=10_000), method="soda-e", budget=10)
    paid = np.cumsum(asked)
    search = np.array(asked)[
        (paid > 899) & (paid <= 899 + run.ledger.queries["probe"])
    ]  # a first look comes before
    assert search.sum() == run.ledger.queries["probe"] and search.max() <= ASKED_AT_ONCE
    np.testing.assert_allclose(run.probabilities, plain.probabilities, atol=1e-5)


def test_large_images_are_restored_some_at_a_time_and_come_out_alike(world, monkeypatch) -> None:
    monkeypatch.setattr("soda_tta.methods.economy.MOST_IMAGES", 1)  # no more than a round needs
    whole = adapt(world.hazy, world.box, method="soda-e", budget=10)
    image = world.hazy[0].nbytes
    monkeypatch.setattr("soda_tta.methods.economy.PREPARED_BYTES", image)
    monkeypatch.setattr("soda_tta.methods.economy.ASKED_BYTES", 7 * image)
    monkeypatch.setattr("soda_tta.data.images.AT_ONCE_FLOATS", 7 * world.hazy[0].size)
    prepare, made = BankAdaptor.prepare, []

    def seen(self, images, *more):
        made.append(len(images))
        return prepare(self, images, *more)

    monkeypatch.setattr(BankAdaptor, "prepare", seen)
    some = adapt(world.hazy, world.box, method="soda-e", budget=10)
    assert max(made) == 7 and some.ledger.queries == whole.ledger.queries
    np.testing.assert_allclose(some.adaptor.parameters, whole.adaptor.parameters, atol=1e-5)
    np.testing.assert_allclose(some.probabilities, whole.probabilities, atol=1e-4)


@pytest.mark.parametrize(
    ("count", "budget", "least"), [(899, 5, 0.4), (200, 30, 0.35), (899, 30, 0.4), (120, 100, 0.3)]
)
def test_every_sensible_budget_gains_and_is_kept(
    world, count: int, budget: int, least: float
) -> None:
    run = adapt(world.hazy[:count], world.box, method="soda-e", budget=budget)
    assert run.ledger.total <= budget * count
    assert world.gain(run) >= least


def test_more_budget_goes_on_by_evolution(world, plain) -> None:
    run = adapt(world.hazy[:300], world.box, method="soda-e", budget=150)
    assert 13 * 128 * 10 < run.ledger.queries["probe"] <= 150 * 300
    assert run.ledger.total <= 150 * 300 and len(run.history) > len(plain.history)
    assert world.gain(run) >= 0.4


@pytest.mark.parametrize("seed", range(2))
def test_clean_digits_hardly_lose(world, seed: int) -> None:
    """Seen with 3 models and 3 seeds each: from +0.1 to -1.8 points, on average -0.5. Sharper digits make this small
    network surer of both looks, which the verdict takes for a gain; on clean photographs it does not (tests/real).
    """
    run = adapt(world.clean, world.box, method="soda-e", budget=10, seed=seed)
    assert accuracy(run.probabilities, world.labels) >= accuracy(run.before, world.labels) - 0.02


def test_a_model_that_sees_nothing_is_left_alone() -> None:
    """Answers that do not depend on the image: no search and no verdict can find a gain in them."""
    generator = np.random.default_rng(0)
    images = generator.random((200, 3, 8, 8), dtype=np.float32)
    run = adapt(images, lambda batch: np.full((len(batch), 4), 0.25), method="soda-e", budget=30)
    np.testing.assert_array_equal(run.probabilities, run.before)
    assert run.adaptor.parameters.size == 0 and run.reason.endswith(".")


def test_random_answers_are_adopted_at_most_at_about_the_level() -> None:
    """A box that answers by dice: the search moves, the verdict does not follow (seen: 0 of 40)."""
    adopted = 0
    for seed in range(40):
        dice = np.random.default_rng([seed, 1])

        def answer(batch, dice=dice):
            return dice.dirichlet(np.full(4, 0.5), len(batch))

        images = np.random.default_rng(seed).random((120, 3, 8, 8), dtype=np.float32)
        run = adapt(images, answer, method="soda-e", budget=20, seed=seed)
        adopted += run.verdict is not None and run.verdict.adopt
    assert adopted <= 3  # at a level of 0.01, more than 3 of 40 happen once in 2,000 such tests


@pytest.mark.parametrize("jpeg", [None, 75])
def test_bytes_and_jpeg_keep_nine_tenths_of_the_gain(world, plain, jpeg) -> None:
    run = adapt(world.hazy, Quantised(world.box, jpeg=jpeg), method="soda-e", budget=10)
    assert world.gain(run) >= 0.9 * world.gain(plain) and not run.notices


def best(rows, count: int, spread: bool):
    """The best few; what is left is spread over the others, or missing."""
    places = np.argsort(-rows, axis=1)[:, :count]
    kept = np.zeros_like(rows)
    np.put_along_axis(kept, places, np.take_along_axis(rows, places, axis=1), axis=1)
    if not spread:
        return kept
    rest = (1 - kept.sum(axis=1, keepdims=True)) / (rows.shape[1] - count)
    return np.where(kept > 0, kept, rest)


@pytest.mark.parametrize(
    "through",
    [
        lambda rows: np.round(rows, 2),
        lambda rows: best(rows, 3, spread=True),
        lambda rows: best(rows, 3, spread=False),
    ],
    ids=["two digits", "best three, rest spread", "best three, rest zero"],
)
def test_rounded_and_cut_off_answers_will_do(world, plain, through) -> None:
    box = load_box(lambda batch: through(world.box(batch)), partial=True)
    assert world.gain(adapt(world.hazy, box, method="soda-e", budget=10)) >= 0.9 * world.gain(plain)
