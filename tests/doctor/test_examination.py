"""The whole examination: its advice for each kind of model, its queries, and failures."""

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


def test_hazy_images_are_worth_a_run(make, haze, colour_model) -> None:
    model = colour_model()
    examination = examine(haze(make(240)), model, clean=make(240, seed=1), price=2.0)
    assert examination.advice == "go" and examination.failure is None
    assert examination["shift"].state == examination["trial"].state == "good"
    cost = examination["cost"].measurements
    assert cost["cost"] == pytest.approx(cost["queries"] / 1000 * 2.0)
    assert examination.total_queries == model.queries <= examination.query_limit == 960


def test_images_like_the_clean_ones_are_left_alone(make, colour_model) -> None:
    examination = examine(make(240), colour_model(), clean=make(240, seed=1))
    assert examination.advice == "leave" and "not shifted" in examination.sentence
    assert examination["shift"].state == "bad"


def test_without_clean_images_high_accuracy_is_a_reason_to_leave(make, colour_model) -> None:
    examination = examine(make(240), colour_model(sharpness=100.0))
    assert examination.advice == "leave" and "little to gain" in examination.sentence
    assert "shift" not in examination


def test_uncertain_cases_may_be_tried(make, colour_model) -> None:
    examination = examine(make(240), colour_model(sharpness=8.0))
    assert examination.advice == "try" and "clean=" in examination.sentence


def test_a_confident_model_on_clean_images_needs_no_fix(make, colour_model) -> None:
    confident = colour_model(sharpness=300.0)
    assert examine(make(240), confident, clean=make(240, seed=1)).advice == "leave"


def rounded(rows):
    tenths = np.rint(rows * 10) / 10
    return tenths + (1 - tenths.sum(axis=1, keepdims=True)) * np.eye(6)[0]


def noisy(rows, generator=np.random.default_rng(0)):  # noqa: B008 - one stream per model, as dropout has
    mixed = rows + generator.dirichlet(np.ones(6), len(rows))
    return mixed / mixed.sum(axis=1, keepdims=True)


def mixed_with_neighbour(rows):
    return 0.4 * rows + 0.6 * np.roll(rows, 1, axis=0)


def best_only(rows):
    return np.eye(6)[rows.argmax(axis=1)]


@pytest.mark.parametrize(
    ("then", "name"),
    [
        (rounded, "digits"),
        (noisy, "repeatability"),
        (mixed_with_neighbour, "repeatability"),
    ],
    ids=["rounded", "random", "depends on the batch"],
)
def test_a_model_that_cannot_be_used_needs_a_fix(make, haze, colour_model, then, name) -> None:
    examination = examine(haze(make(240)), colour_model(60.0, then))
    assert examination.advice == "fix"
    assert examination[name].state == "bad" and examination[name].remedy


@pytest.mark.parametrize(
    ("sharpness", "then", "name"),
    [(60.0, best_only, "completeness"), (5000.0, lambda rows: rows, "saturation")],
    ids=["one class", "saturated"],
)
def test_classes_without_probabilities_are_enough_for_a_run(
    make, haze, colour_model, sharpness, then, name: str
) -> None:
    model = colour_model(sharpness, then)
    examination = examine(haze(make(240)), model)
    assert examination.advice in ("go", "try") and examination[name].state == "caution"
    run = adapt(haze(make(600)), model, method=examination.method, budget=examination.budget)
    assert run.verdict is not None and run.verdict.adopt


def test_classes_without_probabilities_are_no_reason_to_leave(make, colour_model) -> None:
    examination = examine(make(240), colour_model(60.0, best_only))
    assert examination.estimate is None and "Not enough" in examination["accuracy"].sentence
    assert examination["accuracy"].state == "caution"
    assert examination.advice == "try" and "is not known" in examination.sentence
    # as in class folders, where the first images all have the same class
    sorted_by_class = make(240, labels=np.repeat(np.arange(6), 40))
    assert examine(sorted_by_class, colour_model(60.0, best_only)).advice == "try"


@pytest.mark.parametrize("count", [1, 10, 30])
def test_too_few_images_to_learn_from_are_left_alone(make, haze, colour_model, count: int) -> None:
    examination = examine(haze(make(count)), colour_model())
    assert examination.advice == "leave" and "Collect 47 or more" in examination.sentence
    assert examination["cost"].state == "caution"


def test_with_few_images_simple_restorations_are_not_tried(make, haze, colour_model) -> None:
    examination = examine(haze(make(48)), colour_model())
    assert examination.advice == "try" and "trial" not in examination
    assert "restorations could not be tried" in examination.sentence


def test_on_tiny_images_simple_restorations_are_not_tried(make, haze, colour_model) -> None:
    examination = examine(haze(make(240))[:, :, :3, :3], colour_model())
    assert examination.failure is None and "trial" not in examination


def test_rounding_inside_a_function_is_a_caution_and_no_obstacle(make, haze, colour_model) -> None:
    model = colour_model()
    examination = examine(haze(make(240)), lambda images: model(np.rint(images * 255) / 255))
    assert examination["rounding"].state == "caution" and examination.advice == "go"
    box = CallableBox(lambda x: model(x / 255.0), input=Input(dtype="uint8"))
    declared = examine(haze(make(240)), box)["rounding"]
    assert declared.measurements["declared_step"] == pytest.approx(1 / 255)


def test_classes_that_are_unbalanced_in_clean_images_are_left_alone(
    make, haze, colour_model
) -> None:
    labels = np.where(np.arange(240) % 20 == 0, np.arange(240) % 6, 2)
    night = haze(make(240, labels=labels))
    day = make(240, seed=1, labels=labels)
    examination = examine(night, colour_model(), clean=day)
    assert examination.advice == "leave" and examination["balance"].state == "bad"
    assert examination.estimate is not None


class Failing:
    """A model that fails after so many images."""

    def __init__(self, model, after: int) -> None:
        self.model = model
        self.left = after

    def __call__(self, images):
        self.left -= len(images)
        if self.left < 0:
            raise BoxUnavailable("the service is unavailable; try again later.")
        return self.model(images)


@pytest.mark.parametrize(
    ("after", "present", "absent"),
    [
        (130, {"sum", "digits", "balance", "accuracy"}, {"repeatability", "trial"}),
        (250, {"sum", "balance", "accuracy"}, {"repeatability", "trial"}),
        (290, {"repeatability"}, {"sensitivity", "trial"}),
        (400, {"repeatability", "sensitivity", "rounding"}, {"trial"}),
    ],
)
def test_a_failure_half_way_keeps_the_findings_so_far(
    make, haze, colour_model, after, present, absent
) -> None:
    examination = examine(haze(make(240)), Failing(colour_model(), after))
    assert examination.failure is not None
    assert "the service is unavailable" in examination.failure
    assert "queries" in examination.failure
    assert all(name in examination for name in present)
    assert not any(name in examination for name in absent)
    assert examination.advice == "unknown"
    assert examination.estimate is not None and "cost" in examination


def test_images_that_cannot_be_read_are_an_error(colour_model) -> None:
    with pytest.raises(ImageError, match="floats from 200 to 200"):
        examine(np.full((240, 3, 8, 8), 200.0, np.float32), colour_model())


def test_an_unavailable_model_does_not_need_a_fix(make, haze, colour_model) -> None:
    examination = examine(haze(make(240)), Failing(colour_model(), 0))
    assert examination.advice == "unknown"
    assert examination["answers"].sentence == "The model did not respond."
    assert examination.failure is not None and "unavailable" in examination.failure


def test_a_failure_on_clean_images_keeps_the_findings_on_the_images(
    make, haze, colour_model
) -> None:
    model = Failing(colour_model(), 300)
    examination = examine(haze(make(240)), model, clean=make(240, seed=1))
    assert examination.failure is not None and "clean" in examination.failure
    assert "balance" in examination and examination.estimate is not None


def test_a_model_without_a_usable_response_comes_with_the_remedy(make) -> None:
    examination = examine(make(20), lambda images: 5 * np.ones((len(images), 3)))
    assert examination.advice == "fix" and examination.estimate is None
    assert "logits" in examination["answers"].remedy


def test_many_images_are_sampled_and_the_cost_is_that_of_all(make, colour_model) -> None:
    model = colour_model()
    examination = examine(make(1000), model, sample=100)
    assert (examination.images, examination.sampled, examination.query_limit) == (1000, 100, 200)
    assert model.queries == examination.total_queries <= 200
    assert examination["cost"].measurements["queries"] > 1000


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.integers(1, 70), st.integers(0, 30), st.integers(1, 60), st.integers(0, 5))
def test_at_most_two_queries_per_image_are_used(
    make, colour_model, count, clean_count, sample, seed
) -> None:
    model = colour_model()
    clean = make(clean_count, seed=1) if clean_count else None
    examination = examine(make(count), model, clean=clean, sample=sample, seed=seed)
    limit = 2 * (min(count, sample) + min(clean_count, sample))
    assert model.queries == examination.total_queries <= limit
    assert examination.failure is None and examination.advice in ("go", "try", "leave", "fix")
    json.dumps(examination.facts())


def test_the_same_seed_gives_the_same_examination(make, haze, colour_model) -> None:
    images = haze(make(150))
    first, second = (examine(images, colour_model(), sample=120, seed=3).facts() for _ in range(2))
    assert {**first, "seconds": 0} == {**second, "seconds": 0}


def test_the_known_clean_accuracy_calibrates_the_estimate(make, colour_model) -> None:
    under_confident = colour_model(sharpness=12.0)
    images = make(240)
    clean = make(240, seed=1)
    alone = examine(images, under_confident, clean=clean)
    calibrated = examine(images, under_confident, clean=clean, clean_accuracy=0.97)
    assert alone.estimate is None and alone.facts()["estimate"] is None
    assert "Not enough to estimate" in alone["accuracy"].sentence
    assert "clean_accuracy=" in alone["accuracy"].remedy
    assert calibrated.estimate is not None and not calibrated.estimate.bound
    assert calibrated.estimate.accuracy == pytest.approx(0.97, abs=0.05)
    assert calibrated.queries["clean"] == 240


def test_an_invalid_clean_accuracy_is_refused(make, colour_model) -> None:
    with pytest.raises(MethodError, match="needs clean images"):
        examine(make(24), colour_model(), clean_accuracy=0.9)
    with pytest.raises(MethodError, match="not a valid share"):
        examine(make(24), colour_model(), clean=make(24), clean_accuracy=97)


def test_few_images_are_a_caution(make, colour_model) -> None:
    examination = examine(make(3), colour_model())
    assert examination["images"].state == "caution" and examination.total_queries <= 6
    one = examine(make(1), colour_model())
    assert not any("1 images" in each.sentence for each in one.findings)
    assert one["images"].sentence.startswith("1 image for") and one.sentence.startswith("1 image:")


def test_an_empty_sample_is_refused(make, colour_model) -> None:
    with pytest.raises(ImageError, match="at least 1"):
        examine(make(3), colour_model(), sample=0)


def test_progress_ends_at_the_total_within_the_limit(make, colour_model) -> None:
    calls: list[tuple[int, int]] = []
    examination = examine(
        open_images(make(240)),
        colour_model(),
        progress=lambda done, limit: calls.append((done, limit)),
    )
    assert [done for done, _ in calls] == sorted(done for done, _ in calls)
    assert calls[-1][0] == examination.total_queries
    assert {limit for _, limit in calls} == {examination.query_limit}


def test_the_error_about_a_missing_finding_names_the_others(make, colour_model) -> None:
    with pytest.raises(KeyError, match="the findings are sum"):
        examine(make(10), colour_model())["shift"]
