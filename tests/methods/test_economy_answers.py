"""soda-e with a stated class prior and further views: the answers, the verdict, the cost."""

import warnings

import numpy as np
import pytest

from soda_tta import BoxError, Run, adapt, all_methods, apply, load_box, rejudge
from soda_tta.adaptors import Adaptor
from soda_tta.adaptors.answering import VIEWS, weighted
from soda_tta.box import OnnxBox
from soda_tta.data import open_images
from soda_tta.demo import accuracy
from soda_tta.engine.plan import plan_run
from soda_tta.objectives import class_weights
from soda_tta.zoo.digits import hazy_digits, load_digits

SODA_E = all_methods()["soda-e"]
BUDGET = 8


class World:
    """Hazy digits, and a model that a mirror image does not disturb: it sees both at once."""

    def __init__(self, folder) -> None:
        model, images = hazy_digits(folder, seed=0)
        self.box = OnnxBox(model)
        self.labels = load_digits(seed=0).test_labels[:400]
        self.images = open_images(images)[slice(0, 400)]

    def symmetric(self, images):
        """Answers to a mirror image differ a little from those to the image."""
        both = 0.55 * self.box(images) + 0.45 * self.box(np.ascontiguousarray(images[..., ::-1]))
        return both.astype(np.float32)

    def adapt(self, box=None, budget=BUDGET, **settings) -> Run:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return adapt(self.images, box or self.box, budget=budget, conditions=1, **settings)

    def accuracy(self, run) -> float:
        return accuracy(run.probabilities, self.labels)


@pytest.fixture(scope="module")
def world(tmp_path_factory) -> World:
    return World(tmp_path_factory.mktemp("digits"))


@pytest.fixture(scope="module")
def balanced(world) -> Run:
    return world.adapt(prior="balanced")


@pytest.fixture(scope="module")
def viewed(world) -> Run:
    return world.adapt(world.symmetric, views=2, prior="balanced")


def test_answers_are_matched_to_the_prior_and_nothing_is_queried_for_that(world, balanced) -> None:
    plain = world.adapt()
    assert plain.adaptor.answering.is_plain and plain.card.answering is None
    assert balanced.ledger.queries == plain.ledger.queries
    weights = balanced.adaptor.answering.weights
    np.testing.assert_allclose(
        balanced.probabilities, weighted(plain.probabilities, weights), atol=1e-5
    )
    spread = [np.abs(run.probabilities.mean(axis=0) - 0.1).max() for run in (plain, balanced)]
    assert spread[1] < spread[0] / 2
    assert world.accuracy(balanced) >= world.accuracy(plain) - 0.01
    assert balanced.card.answering["prior"] == "balanced"
    assert not balanced.notices


def test_images_that_are_kept_are_matched_too(world) -> None:
    run = world.adapt(prior="balanced", level=1e-300)
    assert not run.verdict.adopt
    weights = class_weights(run.before, np.full(10, 0.1))
    np.testing.assert_allclose(run.probabilities, weighted(run.before, weights), atol=1e-5)
    one = apply(run, world.images[:1], world.box)
    np.testing.assert_allclose(one.probabilities, run.probabilities[:1], atol=1e-4)


def test_a_prior_that_confident_answers_contradict_is_noticed(world) -> None:
    shares = np.array([0.9, *[0.1 / 9] * 9])
    run = world.adapt(prior=shares)
    assert any("does not fit" in text for text in run.notices)
    assert world.accuracy(run) < world.accuracy(world.adapt()) - 0.1


def test_the_mirror_image_of_a_digit_is_not_used(world) -> None:
    run = world.adapt(views=2)
    assert run.adaptor.answering.is_plain
    assert any("mirror image is not used" in text for text in run.notices)
    assert run.ledger.queries["view"] <= 256  # what it took to find out
    assert run.predictions.tolist() == apply(run, world.images, world.box).predictions.tolist()


def test_a_mirror_image_that_is_recognised_as_well_is_averaged(world, viewed) -> None:
    assert viewed.adaptor.answering.views == ("mirror",)
    assert viewed.ledger.queries["view"] == 400
    assert viewed.ledger.total <= BUDGET * 400
    adapted = viewed.adaptor(world.images)
    mean = (world.symmetric(adapted) + world.symmetric(VIEWS["mirror"](adapted))) / 2
    expected = weighted(mean, viewed.adaptor.answering.weights)
    np.testing.assert_allclose(viewed.probabilities, expected, atol=1e-4)
    assert viewed.card.answering["views"] == ["image", "mirror"]


def test_apply_gives_the_answers_of_the_run_from_a_file_and_one_by_one(
    world, viewed, tmp_path
) -> None:
    viewed.save(tmp_path / "run")
    loaded = Run.load(tmp_path / "run")
    assert loaded.card.answering == viewed.card.answering
    for source in (viewed, tmp_path / "run", tmp_path / "run" / "adaptor.safetensors"):
        answers = apply(source, world.images, world.symmetric)
        np.testing.assert_allclose(answers.probabilities, viewed.probabilities, atol=1e-4)
        assert answers.ledger.queries == {"serve": 800}
    alone = apply(viewed, world.images[7:8], world.symmetric)
    np.testing.assert_allclose(alone.probabilities[0], viewed.probabilities[7], atol=1e-4)


def test_an_interrupted_apply_with_views_resumes_without_a_further_query(
    world, viewed, tmp_path, monkeypatch
) -> None:
    monkeypatch.setattr("soda_tta.data.images.AT_ONCE_FLOATS", 100 * world.images[0].size)
    out = tmp_path / "answers.csv"
    stops = iter([False, False, False, False, True])
    first = apply(viewed, world.images, world.symmetric, out=out, stop=lambda: next(stops))
    assert first.interrupted
    answered = ~np.isnan(first.probabilities[:, 0])
    assert 0 < answered.sum() < 400  # both views of them have a response
    second = apply(viewed, world.images, world.symmetric, out=out, resume=True)
    assert second.ledger.total == 800
    np.testing.assert_allclose(second.probabilities, viewed.probabilities, atol=1e-4)
    assert [path.name for path in tmp_path.iterdir()] == ["answers.csv"]


def test_three_views_use_what_the_verdict_has_paid(world) -> None:
    run = world.adapt(world.symmetric, budget=12, views=3)
    assert run.adaptor.answering.views == ("mirror", "shift")
    assert run.ledger.queries["view"] == 800 - run.verdict.images


def test_a_run_too_small_to_search_has_views_if_they_are_affordable(world) -> None:
    few = world.images[:30]
    run = adapt(few, world.symmetric, views=2)
    assert run.ledger.queries == {"select": 30, "view": 60}  # shifted, and mirrored
    assert run.adaptor.answering.views == ("mirror",)
    with pytest.warns(UserWarning, match="budget does not cover"):
        poor = adapt(few, world.symmetric, views=2, budget=2)
    assert poor.ledger.queries == {"select": 30}


def test_plans_price_views_and_auto_takes_them_only_where_there_is_room() -> None:
    two = plan_run(SODA_E.but(views=2, conditions=1), 1000, 10)
    assert two.queries["view"] == 1000
    assert two.total <= 10_000
    auto = SODA_E.but(views="auto", conditions=1)
    assert "view" not in plan_run(auto, 1000, 10).queries
    assert plan_run(auto, 1000, 30).queries["view"] == 1000
    assert plan_run(auto, 10_000, 5).queries["view"] == 10_000
    assert plan_run(auto, 1000).queries["view"] == 1000
    assert plan_run(SODA_E.but(views=2), 30).queries == {"select": 30, "view": 60}


def test_a_run_is_judged_again_with_its_prior(world, balanced) -> None:
    refused = world.adapt(prior="balanced", level=1e-300)
    accepted = rejudge(refused, accept=True)
    assert accepted.adaptor.answering.weights is not None
    assert accepted.verdict.basis == "user"
    assert world.accuracy(accepted) >= accuracy(refused.before, world.labels) + 0.3
    by_labels = rejudge(balanced, labels=world.labels)
    assert by_labels.verdict.basis == "labels"
    np.testing.assert_array_equal(by_labels.probabilities, balanced.probabilities)


def test_conditions_share_one_set_of_weights(world, tmp_path) -> None:
    images = np.concatenate([world.images[:250], 1 - 0.4 * world.images[250:]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = adapt(images, world.box, budget=12, conditions=2, prior="balanced")
    assert run.adaptor.answering.weights.shape == (10,)
    run.adaptor.save(tmp_path / "a.safetensors")
    loaded = Adaptor.load(tmp_path / "a.safetensors")
    answers = apply(loaded, images[:40], world.box)
    np.testing.assert_allclose(answers.probabilities, run.probabilities[:40], atol=1e-4)


def test_a_run_killed_among_mirror_images_resumes_with_the_same_answers(
    world, viewed, tmp_path
) -> None:
    class Mortal:
        asked = 0
        most = viewed.ledger.total - 50  # within the last pass, which is that over mirror images

        def __call__(self, images):
            if self.asked + len(images) > self.most:
                raise BoxError("the model is gone")
            self.asked += len(images)
            return world.symmetric(images)

    model = Mortal()
    box = load_box(model, batch=40)
    settings = {"views": 2, "prior": "balanced", "out": tmp_path / "run"}
    with pytest.raises(BoxError, match="is gone"):
        world.adapt(box, **settings)
    model.most = 10**9
    resumed = world.adapt(box, resume=True, **settings)
    np.testing.assert_allclose(resumed.probabilities, viewed.probabilities, atol=1e-6)
    assert model.asked == viewed.ledger.total
