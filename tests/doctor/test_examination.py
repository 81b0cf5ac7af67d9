"""The whole examination: what it says of each kind of box, what it spends, and what it says when the box fails."""

import json

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from soda_tta import adapt
from soda_tta.box import CallableBox, Input
from soda_tta.data import open_images
from soda_tta.doctor import examine
from soda_tta.errors import BoxUnavailable, ImageError, MethodError


def test_hazy_images_of_a_sound_model_are_worth_a_run(make, haze, colour_model) -> None:
    model = colour_model()
    found = examine(haze(make(240)), model, clean=make(240, seed=1), price=2.0)
    assert found.advice == "go" and found.failed is None
    assert found["shift"].state == found["trial"].state == "good"
    assert found["cost"].numbers["money"] == pytest.approx(
        found["cost"].numbers["queries"] / 1000 * 2.0
    )
    assert found.total == model.asked <= found.limit == 960


def test_images_like_the_clean_ones_are_left_alone(make, colour_model) -> None:
    found = examine(make(240), colour_model(), clean=make(240, seed=1))
    assert (
        found.advice == "leave"
        and found["shift"].state == "bad"
        and "not shifted" in found.sentence
    )


def test_without_clean_images_high_accuracy_is_reason_enough_to_leave(make, colour_model) -> None:
    found = examine(make(240), colour_model(sharpness=100.0))
    assert found.advice == "leave" and "little to gain" in found.sentence and "shift" not in found


def test_where_nothing_is_sure_it_may_be_tried(make, colour_model) -> None:
    found = examine(make(240), colour_model(sharpness=8.0))
    assert found.advice == "try" and "--clean" in found.sentence


def test_a_model_that_is_sure_of_clean_images_has_nothing_to_fix(make, colour_model) -> None:
    sure = colour_model(sharpness=300.0)
    assert examine(make(240), sure, clean=make(240, seed=1)).advice == "leave"


def rounded(rows):
    return (
        np.rint(rows * 10) / 10
        + (1 - (np.rint(rows * 10) / 10).sum(axis=1, keepdims=True)) * np.eye(6)[0]
    )


def noisy(rows, generator=np.random.default_rng(0)):  # noqa: B008 - one stream for the whole model, as dropout has
    mixed = rows + generator.dirichlet(np.ones(6), len(rows))
    return mixed / mixed.sum(axis=1, keepdims=True)


def best_only(rows):
    return np.eye(6)[rows.argmax(axis=1)]


@pytest.mark.parametrize(
    ("sharpness", "then", "name"),
    [
        (60.0, rounded, "digits"),
        (60.0, noisy, "repeatability"),
        (60.0, lambda rows: 0.4 * rows + 0.6 * np.roll(rows, 1, axis=0), "repeatability"),
    ],
    ids=["rounded", "random", "company"],
)
def test_a_model_that_cannot_be_adapted_to_is_sent_back(
    make, haze, colour_model, sharpness, then, name
) -> None:
    found = examine(haze(make(240)), colour_model(sharpness, then))
    assert found.advice == "fix" and found[name].state == "bad" and found[name].remedy


@pytest.mark.parametrize(
    ("sharpness", "then", "name"),
    [(60.0, best_only, "completeness"), (5000.0, lambda rows: rows, "saturation")],
    ids=["one class", "saturated"],
)
def test_classes_alone_are_enough_for_a_search_by_candidates(
    make, haze, colour_model, sharpness, then, name: str
) -> None:
    model = colour_model(sharpness, then)
    found = examine(haze(make(240)), model)
    assert found.advice in ("go", "try") and found[name].state == "caution"
    run = adapt(haze(make(600)), model, method=found.method, budget=found.budget)
    assert run.verdict is not None and run.verdict.adopt


def test_even_classes_alone_are_no_reason_to_leave_the_images(make, colour_model) -> None:
    found = examine(make(240), colour_model(60.0, best_only))
    assert found.estimate is not None and found.estimate.bound and found["accuracy"].state == "good"
    assert found.advice == "try" and "at most about" in found.sentence
    sorted_by_class = make(
        240, labels=np.repeat(np.arange(6), 40)
    )  # as folders lie: the first few are of one class
    assert examine(sorted_by_class, colour_model(60.0, best_only)).advice == "try"


@pytest.mark.parametrize("count", [1, 10, 30])
def test_too_few_images_to_learn_from_are_left_alone(make, haze, colour_model, count: int) -> None:
    found = examine(haze(make(count)), colour_model())
    assert (
        found.advice == "leave"
        and "collect 40 or more" in found.sentence
        and found["cost"].state == "caution"
    )
    assert examine(haze(make(40)), colour_model()).advice == "try"
    assert "too few to try plain restorations" in examine(haze(make(40)), colour_model()).sentence


def test_rounding_inside_a_function_is_a_caution_but_no_obstacle(make, haze, colour_model) -> None:
    model = colour_model()
    found = examine(haze(make(240)), lambda images: model(np.rint(images * 255) / 255))
    assert found["rounding"].state == "caution" and found.advice == "go"
    declared = examine(
        haze(make(240)), CallableBox(lambda x: model(x / 255.0), input=Input(dtype="uint8"))
    )
    assert declared["rounding"].numbers["declared"] == pytest.approx(1 / 255)


def test_unbalanced_classes_are_left_alone_when_clean_images_show_them(
    make, haze, colour_model
) -> None:
    labels = np.where(np.arange(240) % 20 == 0, np.arange(240) % 6, 2)
    night, day = haze(make(240, labels=labels)), make(240, seed=1, labels=labels)
    found = examine(night, colour_model(), clean=day)
    assert found.advice == "leave" and found["balance"].state == "bad"
    assert found.estimate is not None


class Failing:
    """Answers so many images, then no more."""

    def __init__(self, model, after: int) -> None:
        self.model, self.left = model, after

    def __call__(self, images):
        self.left -= len(images)
        if self.left < 0:
            raise BoxUnavailable("the service went away; ask again later.")
        return self.model(images)


@pytest.mark.parametrize(
    ("after", "known", "unknown"),
    [
        (130, {"sum", "digits", "balance", "accuracy"}, {"repeatability", "trial"}),
        (250, {"sum", "balance", "accuracy"}, {"repeatability", "trial"}),
        (290, {"repeatability"}, {"sensitivity", "trial"}),
        (400, {"repeatability", "sensitivity", "rounding"}, {"trial"}),
    ],
)
def test_a_model_that_fails_half_way_leaves_what_is_known(
    make, haze, colour_model, after, known, unknown
) -> None:
    found = examine(haze(make(240)), Failing(colour_model(), after))
    assert (
        found.failed is not None
        and "the service went away" in found.failed
        and "queries" in found.failed
    )
    assert all(name in found for name in known) and not any(name in found for name in unknown)
    assert found.advice == "unknown" and found.estimate is not None and "cost" in found


def test_images_that_cannot_be_read_are_not_the_models_doing(colour_model) -> None:
    with pytest.raises(ImageError, match="floats from 200 to 200"):
        examine(np.full((240, 3, 8, 8), 200.0, np.float32), colour_model())


def test_a_model_that_never_answers_is_not_said_to_answer_wrongly(make, haze, colour_model) -> None:
    found = examine(haze(make(240)), Failing(colour_model(), 0))
    assert found.advice == "unknown" and found["answers"].sentence == "The model did not answer."
    assert found.failed is not None and "went away" in found.failed


def test_a_clean_folder_that_fails_keeps_what_the_images_told(make, haze, colour_model) -> None:
    found = examine(haze(make(240)), Failing(colour_model(), 300), clean=make(240, seed=1))
    assert (
        found.failed is not None
        and "clean" in found.failed
        and "balance" in found
        and found.estimate is not None
    )


def test_a_model_that_never_answers_says_its_remedy(make) -> None:
    found = examine(make(20), lambda images: 5 * np.ones((len(images), 3)))
    assert (
        found.advice == "fix" and found.estimate is None and "--logits" in found["answers"].remedy
    )


def test_many_images_are_sampled_and_the_cost_is_of_them_all(make, colour_model) -> None:
    model = colour_model()
    found = examine(make(1000), model, sample=100)
    assert (found.images, found.sampled, found.limit) == (
        1000,
        100,
        200,
    ) and model.asked == found.total <= 200
    assert found["cost"].numbers["queries"] > 1000


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.integers(1, 70), st.integers(0, 30), st.integers(1, 60), st.integers(0, 5))
def test_never_more_than_two_queries_per_image_and_never_a_crash(
    make, colour_model, count, clean, sample, seed
) -> None:
    model = colour_model()
    given_clean = make(clean, seed=1) if clean else None
    found = examine(make(count), model, clean=given_clean, sample=sample, seed=seed)
    assert model.asked == found.total <= 2 * (min(count, sample) + min(clean, sample))
    assert found.failed is None and found.advice in ("go", "try", "leave", "fix")
    json.dumps(found.facts())


def test_the_same_seed_gives_the_same_examination(make, haze, colour_model) -> None:
    first, second = (
        examine(haze(make(150)), colour_model(), sample=120, seed=3).facts() for _ in range(2)
    )
    assert {**first, "seconds": 0} == {**second, "seconds": 0}


def test_a_modest_model_is_judged_by_the_accuracy_it_is_known_to_have(
    make, haze, colour_model
) -> None:
    modest = colour_model(sharpness=12.0)
    alone, known = (
        examine(make(240), modest, clean=make(240, seed=1), clean_accuracy=a) for a in (None, 0.97)
    )
    assert alone.estimate is not None and known.estimate is not None
    assert alone.estimate.accuracy < 0.7 and known.estimate.accuracy == pytest.approx(
        0.97, abs=0.05
    )
    with pytest.raises(MethodError, match="--clean"):
        examine(make(24), modest, clean_accuracy=0.9)


def test_few_images_are_named(make, colour_model) -> None:
    found = examine(make(3), colour_model())
    assert found["images"].state == "caution" and found.total <= 6


def test_a_sample_of_nothing_is_refused(make, colour_model) -> None:
    with pytest.raises(ImageError, match="at least 1"):
        examine(make(3), colour_model(), sample=0)


def test_progress_reaches_no_further_than_the_limit(make, colour_model) -> None:
    seen: list[tuple[int, int]] = []
    found = examine(
        open_images(make(240)), colour_model(), progress=lambda done, of: seen.append((done, of))
    )
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert seen[-1][0] == found.total and {of for _, of in seen} == {found.limit}


def test_asking_for_a_finding_that_is_not_there_says_what_is(make, colour_model) -> None:
    with pytest.raises(KeyError, match="there is sum"):
        examine(make(10), colour_model())["shift"]
