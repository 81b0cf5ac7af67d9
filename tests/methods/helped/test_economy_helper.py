"""soda-e with a helper: what it asks, what it confirms, and when images stay as they are."""

import numpy as np
import pytest

from soda_tta import MethodError, Run, Stream, adapt, load_box
from soda_tta.adaptors import Identity
from soda_tta.methods.economy_confirm import Confirmation, chosen
from soda_tta.testing.data import make_black_box, make_images, make_white_box

HELPER = "soda_tta.testing.data:make_white_box"
IMAGES = make_images(160)
SETTINGS = dict(method="soda-e", helper=HELPER, batch=24, groups="none")


@pytest.fixture(scope="module", autouse=True)
def short_search():
    """The helper searches for a tenth of the usual time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("soda_tta.methods.economy_helper.FREE_QUERIES", 1200)
        yield


@pytest.fixture(scope="module")
def adopted() -> Run:
    return adapt(IMAGES, make_black_box(), **SETTINGS)


def test_the_search_costs_nothing_and_the_shortlist_little(adopted: Run) -> None:
    assert adopted.history and all(step.queries == 0 for step in adopted.history)
    assert adopted.ledger.queries == {"judge": 200, "evaluate": 110}
    assert adopted.queries_per_image == pytest.approx(310 / 160)
    assert (~np.isnan(adopted.before[:, 0])).sum() == 50
    assert adopted.verdict.adopt and adopted.verdict.images == 50


def test_the_answers_are_the_models_own_to_the_adapted_images(adopted: Run) -> None:
    assert not isinstance(adopted.adaptor, Identity)
    expected = make_black_box()(adopted.adaptor(IMAGES))
    np.testing.assert_allclose(adopted.probabilities, expected, atol=1e-4)


def test_fusing_averages_with_the_adapted_helper_and_changes_nothing_else(adopted: Run) -> None:
    with pytest.warns(UserWarning, match="averaged with the helper"):
        fused = adapt(IMAGES, make_black_box(), fuse=0.4, **SETTINGS)
    assert fused.ledger.queries == adopted.ledger.queries
    np.testing.assert_array_equal(fused.adaptor.parameters, adopted.adaptor.parameters)
    own = (fused.probabilities - 0.6 * adopted.probabilities) / 0.4
    assert own.min() > -1e-5
    np.testing.assert_allclose(own.sum(axis=1), 1, atol=1e-4)


def test_a_model_that_gains_nothing_keeps_its_images() -> None:
    """Whatever the helper likes, this model answers the same."""
    sent = []

    def indifferent(images):
        sent.append(images)
        return np.tile([0.7, 0.1, 0.1, 0.1], (len(images), 1))

    run = adapt(IMAGES, load_box(indifferent), **SETTINGS)
    assert not run.verdict.adopt and isinstance(run.adaptor, Identity)
    assert not np.isnan(run.before).any() and run.changed == 0
    np.testing.assert_array_equal(run.before, run.probabilities)


def test_one_query_per_image_leaves_no_room_to_confirm() -> None:
    run = adapt(IMAGES, make_black_box(), budget=1, **SETTINGS)
    assert run.ledger.queries == {"evaluate": 160}
    assert run.stopped == "budget" and "too few" in run.reason


def test_a_larger_budget_lets_the_model_search_on() -> None:
    run = adapt(IMAGES, make_black_box(), budget=8, **SETTINGS)
    assert 0 < run.ledger.queries["probe"] <= 8 * 160 - 160 - 200
    assert run.ledger.queries["judge"] in (200, 250)
    assert any(step.queries for step in run.history)


@pytest.mark.parametrize(
    "settings", [{"conditions": "2"}, {"average": True}, {"fuse": 1.5}], ids=str
)
def test_settings_that_do_not_go_with_a_helper_are_refused(settings) -> None:
    with pytest.raises(MethodError):
        adapt(IMAGES, make_black_box(), **SETTINGS, **settings)


def test_live_traffic_takes_no_helper() -> None:
    with pytest.raises(MethodError, match="without a helper"):
        Stream(make_black_box(), method="soda-e", helper=HELPER)


def test_fusing_needs_a_helper() -> None:
    with pytest.raises(MethodError, match="helper"):
        adapt(IMAGES, make_black_box(), method="soda-e", fuse=0.4)


@pytest.mark.parametrize(
    ("images", "limit", "confirmed", "per_image"),
    [(1000, None, 50, 1.15), (2000, None, 100, 1.15), (10_000, None, 150, 1.045)],
)
def test_about_one_query_per_image(images, limit, confirmed, per_image) -> None:
    plan = Confirmation.within(images, limit)
    assert plan.confirmed == confirmed
    assert sum(plan.queries.values()) / images == pytest.approx(per_image)


@pytest.mark.parametrize("images", [10, 60, 100, 1000, 5000])
@pytest.mark.parametrize("budget", [1, 1.2, 2, 3, 10])
def test_a_plan_is_within_its_limit(images: int, budget: float) -> None:
    limit = int(budget * images)
    assert sum(Confirmation.within(images, limit).queries.values()) <= limit


def test_the_best_candidate_is_adopted_only_if_it_is_better_beyond_chance() -> None:
    random = np.random.default_rng(0)
    even = np.full((60, 4), 0.25)
    confident = 0.9 * np.eye(4)[np.arange(60) % 4] + 0.025
    scenes = np.arange(60)
    best, verdict = chosen(np.array([even, even, confident]), scenes, random)
    assert (best, verdict.adopt) == (2, True)
    best, verdict = chosen(np.array([confident, even, even]), scenes, random)
    assert best > 0 and not verdict.adopt and verdict.p_value > 0.9
    noisy = np.array([random.dirichlet(np.ones(4), 60) for _ in range(2)])
    assert chosen(noisy, scenes, random)[1].p_value > 0.001
    # sixty copies of one scene are one image
    best, verdict = chosen(np.array([even, confident]), np.zeros(60, int), random)
    assert verdict.independent == 1


def test_the_helper_must_be_for_the_same_classes() -> None:
    def two(images):
        return np.full((len(images), 2), 0.5)

    with pytest.raises(MethodError, match="knows 4 classes and the model 2"):
        adapt(IMAGES, load_box(two), **SETTINGS)


def test_a_run_is_read_back_and_has_a_page(adopted: Run, tmp_path) -> None:
    (tmp_path / "run").mkdir()
    run = Run.load(adopted.save(tmp_path / "run"))
    assert run.verdict == adopted.verdict
    assert run.card.helper["fingerprint"] == make_white_box().fingerprint()
    page = run.report(tmp_path / "page.html", images=IMAGES).read_text()
    assert "did not send all images as they are" in page
