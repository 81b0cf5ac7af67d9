"""soda-e on mixed images: a search and a verdict for each condition, one budget, one adaptor."""

import csv
import json

import numpy as np
import pytest

from soda_tta import ImageError, MethodError, Run, adapt, all_methods, apply, rejudge
from soda_tta.adaptors import Adaptor, Bank, Identity, RoutedAdaptor
from soda_tta.engine.plan import plan_run
from soda_tta.methods.economy_merging import serving_groups

SODA_E = all_methods()["soda-e"]


def accuracy(rows, labels) -> float:
    return float((rows.argmax(axis=1) == labels).mean())


def test_each_condition_has_its_own_adaptor_and_the_clean_part_stays_clean(mixed) -> None:
    run = mixed.run
    kinds = [result.adopted for result in run.conditions]
    assert sorted(kinds) == [False, True]
    clean = run.after[~mixed.hazy]
    unchanged = np.array_equal(clean, run.before[~mixed.hazy])
    assert unchanged
    gain = accuracy(run.after[mixed.hazy], mixed.labels[mixed.hazy]) - accuracy(
        run.before[mixed.hazy], mixed.labels[mixed.hazy]
    )
    assert gain > 0.1
    assert isinstance(run.adaptor, RoutedAdaptor)
    assert run.verdict.adopt and "1 of 2 conditions" in run.verdict.sentence


def test_the_budget_is_one_for_all_conditions(mixed) -> None:
    assert mixed.run.ledger.total <= 20 * 220
    # images that stay as they are have their answer already
    kept = (~mixed.hazy).sum()
    assert mixed.run.ledger.queries["evaluate"] <= 220 - kept


def test_answers_are_those_of_the_adaptor(mixed) -> None:
    again = mixed.model(mixed.run.adaptor(mixed.images))
    np.testing.assert_allclose(mixed.run.after, again, atol=1e-4)


def test_one_condition_is_what_it_was_before(mixed) -> None:
    run = adapt(mixed.images, mixed.model, budget=20, groups="none", conditions=1)
    assert run.conditions is None
    assert not isinstance(run.adaptor, RoutedAdaptor)
    assert run.card.settings["conditions"] == "1"


def test_images_that_are_alike_cost_what_they_did(mixed) -> None:
    clean = np.concatenate([mixed.images[~mixed.hazy]] * 2)
    alike = adapt(clean, mixed.model, budget=12, groups="none")
    forced = adapt(clean, mixed.model, budget=12, groups="none", conditions=1)
    assert alike.conditions is None
    assert alike.ledger.queries == forced.ledger.queries
    np.testing.assert_array_equal(alike.probabilities, forced.probabilities)


def test_a_run_over_conditions_is_saved_and_loaded(mixed, tmp_path) -> None:
    mixed.run.save(tmp_path / "run")
    loaded = Run.load(tmp_path / "run")
    assert loaded.summary() == json.loads(json.dumps(mixed.run.summary()))
    assert [result.words for result in loaded.conditions] == [
        result.words for result in mixed.run.conditions
    ]
    np.testing.assert_array_equal(loaded.conditions.routes[0], mixed.run.conditions.routes[0])
    np.testing.assert_array_equal(
        loaded.adaptor(mixed.images[:5]), mixed.run.adaptor(mixed.images[:5])
    )
    rows = list(csv.DictReader((tmp_path / "run" / "predictions.csv").open()))
    adapted = mixed.run.conditions.members(
        next(number for number, each in enumerate(mixed.run.conditions) if each.adopted)
    )
    assert {row["condition"] for row, own in zip(rows, adapted, strict=True) if own} <= {"0", "1"}


def test_labels_may_overrule_the_verdict_of_each_condition(mixed) -> None:
    judged = rejudge(mixed.run, labels=mixed.labels)
    assert [result.adopted for result in judged.conditions] == [
        result.adopted for result in mixed.run.conditions
    ]
    assert len(judged.earlier_verdicts) == 1
    assert "on labelled images" in judged.verdict.sentence
    few = rejudge(mixed.run, labels=np.where(np.arange(220) < 3, mixed.labels, -1))
    assert few.verdict.adopt and "the labels do not decide" in few.verdict.sentence
    opposite = (mixed.labels + 1) % 6  # nothing is right: the gain becomes a loss or nothing
    wrong = np.where(mixed.run.after.argmax(1) == mixed.run.before.argmax(1), -1, 0)
    wrong = np.where(wrong == 0, mixed.run.before.argmax(1), opposite)
    refused = rejudge(mixed.run, labels=wrong)
    assert not refused.verdict.adopt
    assert "are clearly more answers right" in refused.verdict.sentence
    np.testing.assert_array_equal(refused.probabilities, refused.before)


def test_the_user_may_accept_what_was_found(mixed) -> None:
    accepted = rejudge(mixed.run, accept=True)
    assert accepted.verdict.sentence.endswith(": accepted by the user.")
    found = [result.candidate is not None for result in accepted.conditions]
    assert [result.adopted for result in accepted.conditions] == found


def test_apply_writes_the_condition_and_its_distance(mixed, tmp_path) -> None:
    strange = np.random.default_rng(0).random((3, 3, 16, 16)).astype(np.float32)
    images = np.concatenate([mixed.images[:6], strange])
    answers = apply(mixed.run.adaptor, images, mixed.model, out=tmp_path / "answers.json")
    rows = json.loads((tmp_path / "answers.json").read_text())
    assert rows["conditions"]["unfamiliar"] == 3
    assert [row["condition"] for row in rows["answers"][6:]] == [None] * 3
    assert answers.csv().splitlines()[0] == "image,class,confidence,condition,distance"
    np.testing.assert_allclose(answers.probabilities[6:], mixed.model(strange), atol=1e-6)


def test_known_conditions_are_where_the_split_begins(mixed) -> None:
    kinds = np.where(mixed.hazy, "hazy", "clean")
    run = adapt(mixed.images, mixed.model, budget=20, groups="none", condition_by=kinds)
    assert len(run.conditions) == 2
    assert run.card.condition_by["count"] == 2
    number = next(place for place, each in enumerate(run.conditions) if each.adopted)
    assert mixed.hazy[run.conditions.members(number)].mean() > 0.9


@pytest.mark.parametrize(
    ("kinds", "settings", "message"),
    [
        (np.arange(220), {}, "none of 220 groups has 40 images"),
        (np.zeros(3), {}, "condition_by has shape"),
        (np.arange(220) % 2, {"conditions": 1}, "leave out one of them"),
        (np.arange(220) % 2, {"method": "deployed"}, "does not look for conditions"),
    ],
)
def test_known_conditions_that_cannot_be_used(mixed, kinds, settings, message) -> None:
    asked = []

    def model(images):
        asked.append(images)
        return mixed.model(images)

    with pytest.raises((ImageError, MethodError), match=message):
        adapt(mixed.images, model, budget=20, condition_by=kinds, **settings)
    assert not asked


@pytest.mark.parametrize("value", ["0", "many", -1, 1.5, 100])
def test_a_number_of_conditions_that_is_not_valid(value) -> None:
    with pytest.raises(MethodError, match="is not valid; give a number from 1 to 99, or 'auto'"):
        SODA_E.but(conditions=value)


@pytest.mark.parametrize("count", [30, 250])
def test_identical_images_are_one_condition(mixed, count) -> None:
    images = np.repeat(mixed.images[:1], count, axis=0)
    run = adapt(images, mixed.model, groups="none")
    assert run.conditions is None
    np.testing.assert_array_equal(run.probabilities, run.before)


def test_a_fixed_number_of_conditions(mixed) -> None:
    run = adapt(mixed.images, mixed.model, budget=12, groups="none", conditions=2)
    assert run.conditions is None or len(run.conditions) <= 2


def test_without_a_budget_the_plan_pays_for_at_most_four_searches() -> None:
    whole = SODA_E.sizes(10_000, None)
    planned = plan_run(SODA_E, 10_000)
    assert planned.queries["probe"] == 4 * whole.probe
    assert plan_run(SODA_E.but(conditions=1), 10_000).queries["probe"] == whole.probe
    assert plan_run(SODA_E, 300).queries["probe"] == SODA_E.sizes(300, None).probe
    assert plan_run(SODA_E, 10_000, 10).total <= 100_000


def test_whether_to_adapt_at_all_is_for_the_verdict() -> None:
    same = np.zeros((3, 20), int)
    groups = serving_groups([same, same, same], own=[0, 1, 2])
    assert [group.members for group in groups] == [(0,), (1, 2)]


def test_an_adaptor_of_an_older_layout_still_loads(tmp_path) -> None:
    Bank().adaptor({"median": 0.5}).save(tmp_path / "old.safetensors")
    assert Adaptor.load(tmp_path / "old.safetensors").describe() == "median filter 50%"
    assert Identity().describe() == "leaves the image unchanged"


def test_an_interrupted_run_has_what_it_found_so_far(mixed) -> None:
    steps = []
    run = adapt(
        mixed.images,
        mixed.model,
        budget=20,
        groups="none",
        stop=lambda: len(steps) > 3,
        listener=lambda event: steps.append(event) if type(event).__name__ == "Step" else None,
    )
    assert run.stopped == "interrupted"
    assert run.after is None
    assert isinstance(run.adaptor, RoutedAdaptor)


@pytest.mark.parametrize("steps", [1, 4, 6])
def test_a_resumed_run_divides_its_budget_in_the_same_way(mixed, tmp_path, steps: int) -> None:
    made = []

    def listen(event) -> None:
        if type(event).__name__ == "Step":
            made.append(event)

    options = {"budget": 20, "groups": "none", "out": tmp_path / "run"}
    stop = {"stop": lambda: len(made) >= steps, "listener": listen}
    stopped = adapt(mixed.images, mixed.model, **options, **stop)
    assert stopped.stopped == "interrupted"
    resumed = adapt(mixed.images, mixed.model, resume=True, **options)
    np.testing.assert_array_equal(resumed.probabilities, mixed.run.probabilities)
    assert resumed.verdict == mixed.run.verdict
    assert resumed.ledger.total == mixed.run.ledger.total
