"""The verdict: by hand, and how often it is wrong when there is no gain."""

import math

import numpy as np
import pytest
from scipy import stats

from soda_tta.box.probabilities import softmax
from soda_tta.judging.measures import (
    LEAST_GAIN,
    Evidence,
    at_confidence_of,
    information_test,
    one_sided_p_value,
)
from soda_tta.judging.verdict import Verdict, judge, moved
from soda_tta.objectives.agreement import matching_information_of_each, shared_information_of_each
from soda_tta.objectives.equations import information_of_each
from soda_tta.objectives.tempering import tempered

CLASSES = 10


def views(generator, truth, noise: float):
    """Two views of each image: the model sees what is there plus independent noise."""
    return tuple(softmax(truth + noise * generator.standard_normal(truth.shape)) for _ in range(2))


def adopted(
    before: float,
    after: float,
    images: int = 250,
    runs: int = 600,
    shares=None,
) -> float:
    """How often a change of the noise is adopted at level 0.01."""
    return float((p_values(before, after, images, runs, shares) <= 0.01).mean())


def p_values(
    before: float, after: float, images: int = 250, runs: int = 600, shares=None
) -> np.ndarray:
    """The p-values of a change of the noise; `adopt` compares them with the level."""
    found = []
    for seed in range(runs):
        generator = np.random.default_rng(seed)
        labels = generator.choice(CLASSES, images, p=shares)
        truth = 4 * np.eye(CLASSES)[labels] + generator.standard_normal((images, CLASSES))
        first = views(generator, truth, before)
        second = views(generator, truth, after)
        verdict = judge(first, second, 0.01)
        assert verdict.adopt == (verdict.p_value <= 0.01)
        found.append(verdict.p_value)
    return np.array(found)


def test_without_a_gain_the_rate_of_adoptions_is_at_most_the_level() -> None:
    """Below it, as two tests must pass: 0.2 % at 0.01 and 1.8 % at 0.05 over 600 seeds."""
    without_gain = p_values(1.5, 1.5)
    assert (without_gain <= 0.01).mean() <= 0.01
    assert 0 < (without_gain <= 0.05).mean() <= 0.05
    assert adopted(1.5, 1.5, images=12) <= 0.01


def test_unbalanced_classes_do_not_raise_the_rate_of_adoptions() -> None:
    shares = np.array([0.45, 0.45] + 8 * [0.0125])
    assert adopted(1.5, 1.5, shares=shares) <= 0.025


def test_a_real_gain_is_adopted_and_a_loss_is_not() -> None:
    assert adopted(2.5, 1.5, runs=60) >= 0.98
    assert adopted(1.5, 1.2, runs=150) >= 0.6
    assert adopted(1.5, 2.0, runs=150) == 0


def test_small_random_changes_are_rarely_adopted() -> None:
    """An adaptor that changes probabilities a little, in random directions."""
    adoptions = 0
    for seed in range(400):
        generator = np.random.default_rng(seed)
        truth = 4 * np.eye(CLASSES)[generator.integers(0, CLASSES, 125)]
        logits = [truth + 1.5 * generator.standard_normal(truth.shape) for _ in range(2)]
        after = tuple(
            softmax(rows + 0.1 * generator.standard_normal(truth.shape)) for rows in logits
        )
        adoptions += judge(tuple(softmax(rows) for rows in logits), after, 0.01).adopt
    assert adoptions / 400 <= 0.03


@pytest.mark.parametrize(("images", "classes"), [(60, 10), (250, 100), (500, 1000)])
def test_confident_guesses_with_few_images_per_class_are_not_adopted(
    images: int, classes: int
) -> None:
    """Without subtracting what different images share by chance, all of these were adopted."""
    adoptions = 0
    for seed in range(20):
        generator = np.random.default_rng(seed)
        even = [generator.dirichlet(np.ones(classes), images) for _ in range(2)]
        confident = [np.eye(classes)[generator.integers(0, classes, images)] for _ in range(2)]
        adoptions += judge(tuple(even), tuple(confident), 0.01).adopt
    assert adoptions <= 2


def test_more_confidence_in_the_same_predictions_is_not_a_gain() -> None:
    generator = np.random.default_rng(0)
    truth = 4 * np.eye(CLASSES)[generator.integers(0, CLASSES, 400)]
    before = views(generator, truth, 2.0)
    verdict = judge(before, (tempered(before[0], 3.0), tempered(before[1], 3.0)), 0.01)
    assert not verdict.adopt


def test_the_p_value_by_hand() -> None:
    """Forty images; without adaptation the two views of twelve of them do not agree."""
    after = np.array([[0.95, 0.05], [0.05, 0.95]] * 20)
    first = after.copy()
    second = after.copy()
    first[:12] = [0.9, 0.1]
    second[:12] = [0.1, 0.9]
    verdict = judge((first, second), (after, after), level=0.05)
    information = [information_of_each(rows) for rows in (after, first, second)]
    equal = at_confidence_of((after, after), (first, second))
    tails = {"information": tail(information[0] - (information[1] + information[2]) / 2) / 0.5}
    measures = {
        "consistency": matching_information_of_each,
        "shared information": shared_information_of_each,
    }
    for name, measure in measures.items():
        old = measure(first, second)
        gains = [measure(*views) - old for views in ((after, after), equal)]
        tails[name] = max(map(tail, gains)) / 0.25
    assert verdict.measure == min(tails, key=tails.get)
    assert verdict.p_value == pytest.approx(min(tails.values()), rel=1e-6)
    assert verdict.adopt and verdict.p_value < 0.05
    assert verdict.images == verdict.independent == 40 and verdict.level == 0.05


def tail(gain: np.ndarray) -> float:
    """The one-sided p-value of a paired t-test, from its formula."""
    t = (gain.mean() - LEAST_GAIN) / (gain.std(ddof=1) / math.sqrt(len(gain)))
    return float(stats.t.sf(t, len(gain) - 1))


def test_information_alone_does_not_pass_the_guard() -> None:
    """Predictions become confident and even, but two views of an image no longer agree."""
    generator = np.random.default_rng(0)
    truth = 3 * np.eye(CLASSES)[generator.integers(0, CLASSES, 200)]
    before = views(generator, truth, 1.0)
    guesses = tuple(np.eye(CLASSES)[generator.integers(0, CLASSES, 200)] for _ in range(2))
    assert information_of_each(guesses[0]).mean() > information_of_each(before[0]).mean()
    verdict = judge(before, guesses, 0.01)
    assert not verdict.adopt and verdict.p_value > 0.5


def test_several_candidates_share_the_accepted_rate() -> None:
    generator = np.random.default_rng(1)
    truth = 4 * np.eye(CLASSES)[generator.integers(0, CLASSES, 60)]
    before, after = views(generator, truth, 2.0), views(generator, truth, 1.5)
    one = judge(before, after, 0.01)
    assert judge(before, after, 0.01, candidates=2).p_value == pytest.approx(2 * one.p_value)


def frames(generator, scenes: int, count: int, before: float, after: float):
    """Views of near copies: what the model sees wrongly, it sees wrongly in all of them."""
    truth = 4 * np.eye(CLASSES)[generator.integers(0, CLASSES, scenes)]
    numbers = np.repeat(np.arange(scenes), count)

    def view(noise: float):
        logits = truth + noise * generator.standard_normal(truth.shape)
        return softmax(logits[numbers] + 0.3 * generator.standard_normal((len(numbers), CLASSES)))

    return (view(before), view(before)), (view(after), view(after)), numbers


def test_near_copies_without_a_gain_are_not_adopted_and_would_be_as_single_images() -> None:
    """30 scenes x 12 frames: nothing is gained on other scenes, whatever these show."""
    by_scene = by_image = 0
    for seed in range(100):
        before, after, scenes = frames(np.random.default_rng(seed), 30, 12, 1.8, 1.8)
        by_scene += judge(before, after, 0.01, scenes=scenes).adopt
        by_image += judge(before, after, 0.01).adopt
    assert by_scene <= 1
    assert by_image >= 10


def test_near_copies_with_a_real_gain_are_adopted() -> None:
    adoptions = 0
    for seed in range(20):
        before, after, scenes = frames(np.random.default_rng(seed), 30, 12, 3.0, 1.0)
        adoptions += judge(before, after, 0.01, scenes=scenes).adopt
    assert adoptions >= 18


def test_nothing_can_be_concluded_from_a_few_scenes() -> None:
    before, after, scenes = frames(np.random.default_rng(0), 9, 50, 5.0, 0.5)
    verdict = judge(before, after, 0.01, scenes=scenes)
    assert not verdict.adopt and verdict.p_value == 1 and verdict.independent == 9
    assert "nothing can be concluded on 450 images of 9 scenes" in verdict.sentence


def test_a_gain_is_detected_with_few_images_per_class() -> None:
    """1,000 classes, 300 images: the table of classes by classes shows nothing, matching does."""
    generator = np.random.default_rng(3)
    truth = generator.integers(0, 1000, 300)

    def two_views(strength: float) -> tuple[np.ndarray, np.ndarray]:
        logits = generator.normal(size=(2, 300, 1000))
        logits[:, np.arange(300), truth] += strength
        return softmax(logits[0]), softmax(logits[1])

    assert judge(two_views(3.0), two_views(9.0), 0.01).adopt
    assert not judge(two_views(9.0), two_views(3.0), 0.01).adopt
    assert not judge(two_views(3.0), two_views(3.0), 0.01).adopt


def test_predictions_that_split_up_are_not_a_gain_unless_views_agree_more() -> None:
    """Two classes; then some images are taken for others, not always alike in both views."""
    generator = np.random.default_rng(4)
    truth = generator.integers(0, 2, 400)
    lost = generator.random(400) < 0.1
    wrong = generator.integers(2, 10, 400)
    first = np.where(lost, wrong, truth)
    second = np.where(lost & (generator.random(400) < 0.5), wrong, truth)
    before, after = (
        [0.01 + 0.9 * np.eye(10)[rows] for rows in pair]
        for pair in ((truth, truth), (first, second))
    )
    gains = matching_information_of_each(*after) - matching_information_of_each(*before)
    assert one_sided_p_value(gains) < 0.005
    assert not judge(tuple(before), tuple(after), 0.01).adopt


def test_no_change_is_not_a_gain() -> None:
    rows = softmax(np.random.default_rng(0).standard_normal((20, 3)))
    verdict = judge((rows, rows), (rows, rows), 0.01)
    assert not verdict.adopt and verdict.p_value == 1.0 and verdict.before == verdict.after


def test_the_sentence_states_the_verdict_and_its_p_value() -> None:
    generator = np.random.default_rng(1)
    truth = 4 * np.eye(CLASSES)[generator.integers(0, CLASSES, 100)]
    better = judge(views(generator, truth, 3.0), views(generator, truth, 1.0), 0.01)
    worse = judge(views(generator, truth, 1.0), views(generator, truth, 3.0), 0.01)
    assert better.sentence.startswith(
        "Adopt: on 100 independent images"
    ) and better.sentence.endswith(").")
    assert worse.sentence.startswith("Keep: on 100 independent images")
    assert worse.sentence.endswith("without a real gain is 100%, and 1% is accepted).")
    assert Verdict(**better.facts()) == better


@pytest.mark.parametrize(
    ("height", "width", "down", "left"),
    [(32, 32, 2, 2), (8, 8, 1, 1), (64, 48, 4, 3), (4, 4, 1, 1)],
)
def test_the_second_view_is_the_image_shifted_down_and_left(height, width, down, left) -> None:
    images = np.random.default_rng(0).random((3, 3, height, width), dtype=np.float32)
    second = moved(images)
    assert second.shape == images.shape and second.dtype == np.float32 and second.flags.c_contiguous
    np.testing.assert_array_equal(second[:, :, down:, :-left], images[:, :, :-down, left:])
    for row in range(down):  # pixels that enter repeat the border
        np.testing.assert_array_equal(second[:, :, row, :-left], images[:, :, 0, left:])
    for column in range(width - left, width):
        np.testing.assert_array_equal(second[:, :, down:, column], images[:, :, :-down, -1])


def test_a_stated_prior_keeps_the_level() -> None:
    """Two arms that differ by noise alone: at a level of 10 %, 20 of 100 happen once in 1,000."""
    random = np.random.default_rng(7)
    prior = np.array([0.7, 0.1, 0.1, 0.1])
    adopted = 0
    for _ in range(100):
        scores = 2 * random.normal(size=(120, 4)) + np.log(prior)
        arms = []
        for _ in range(2):
            views = []
            for _ in range(2):
                powers = np.exp(scores + random.normal(0, 0.8, scores.shape))
                views.append(powers / powers.sum(axis=1, keepdims=True))
            arms.append(tuple(views))
        adopted += judge(*arms, level=0.1, prior=prior).adopt
    assert adopted <= 20


def test_a_change_that_spreads_predictions_is_worth_less_if_few_classes_were_stated() -> None:
    """The model leans rightly to its first class; a change makes it spread its guesses evenly."""
    random = np.random.default_rng(3)
    labels = random.choice(4, 400, p=[0.85, 0.05, 0.05, 0.05])

    def views(guessed):
        rows = np.full((400, 4), 0.02) + 0.92 * np.eye(4)[guessed]
        return rows, rows

    spread = np.where(random.random(400) < 0.6, random.integers(4, size=400), labels)
    before, after = views(labels), views(spread)
    equal = at_confidence_of(after, before)
    priors = (None, np.array([0.85, 0.05, 0.05, 0.05]))
    unknown, stated = (
        information_test(Evidence(before, after, equal, np.arange(400), prior)) for prior in priors
    )
    assert unknown.p_value < 1e-6 and unknown.after > unknown.before
    assert stated.p_value > 0.5 and stated.after < stated.before
