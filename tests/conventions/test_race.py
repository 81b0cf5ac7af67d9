"""Sequential halving, its evidence and its table, by hand where it can be."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from soda_tta.box import Input
from soda_tta.conventions.evidence import have_same_effect, information, share_ahead
from soda_tta.conventions.looks import noise_of_each, smoothed, stretched
from soda_tta.conventions.own import read_conventions
from soda_tta.conventions.race import Runner, challenge, race, rounds
from soda_tta.conventions.table import Candidate, checked, pixel_candidates
from soda_tta.errors import BoxError

ONE_CLASS = np.tile([[0.98, 0.01, 0.01]], (60, 1))
UNCERTAIN = np.full((60, 3), 1 / 3)
RIGHT = 0.01 + 0.97 * np.eye(3)[np.arange(60) % 3]


def test_information_by_hand() -> None:
    # two images, certain and different: ln 2; the same class: 0; uncertain: 0
    assert information(np.eye(2))[0] == pytest.approx(np.log(2), abs=1e-4)
    assert information(ONE_CLASS)[0] == pytest.approx(0, abs=1e-6)
    assert information(UNCERTAIN)[0] == pytest.approx(0, abs=1e-6)
    weights = np.array([[1.0, 0.0], [0.5, 0.5]])  # the first image only, then both
    np.testing.assert_allclose(information(np.eye(2), weights), [0, np.log(2)], atol=1e-4)


def test_the_bootstrap_is_sure_only_of_real_differences() -> None:
    assert share_ahead(RIGHT, UNCERTAIN) == 1
    assert share_ahead(UNCERTAIN, RIGHT) == 0
    assert share_ahead(RIGHT, RIGHT) == 0.5
    random = np.random.default_rng(0)
    first, second = (random.dirichlet(np.ones(3), 60) for _ in range(2))
    assert 0.01 < share_ahead(first, second) < 0.99


def test_the_same_effect_is_a_small_difference_of_probabilities() -> None:
    assert have_same_effect(RIGHT, RIGHT + np.array([0.02, -0.01, -0.01]))
    assert not have_same_effect(RIGHT, UNCERTAIN)
    assert not have_same_effect(RIGHT, np.hstack([RIGHT, RIGHT]) / 2)


@given(st.integers(1, 60), st.integers(8, 128), st.integers(100, 1000))
def test_a_race_never_sends_more_than_it_may(candidates: int, images: int, queries: int) -> None:
    alive, count, spent = candidates, 0, 0
    for survivors, reached in rounds(candidates, images, queries):
        assert count <= reached <= images
        spent += alive * (reached - count)
        alive, count = survivors, reached
    assert spent <= queries


def test_the_best_of_many_wins_and_one_that_is_refused_is_out() -> None:
    answers = {f"wrong {number}": UNCERTAIN for number in range(9)}
    answers |= {"saturated": ONE_CLASS, "right": RIGHT, "refused": None}
    sent = []

    def ask(candidate: Candidate, chosen: slice):
        rows = answers[candidate.name]
        sent.append(chosen.stop - chosen.start)
        return None if rows is None else rows[chosen]

    end = race([Candidate(name, {}) for name in answers], ask, images=60, queries=400)
    assert end is not None and end.best.name == "right" and end.sure
    assert sum(sent) <= 400
    assert race([Candidate("refused", {})], ask, images=60, queries=400) is None


def test_what_is_usual_stays_unless_another_is_surely_better() -> None:
    random = np.random.default_rng(3)
    close = RIGHT[random.permutation(60)]  # as good, and different

    def ask(candidate: Candidate, chosen: slice):
        return {"close": close, "right": RIGHT}[candidate.name][chosen]

    usual = Runner(Candidate("usual", {}), RIGHT)
    assert challenge(usual, [Candidate("close", {})], ask, 60).best.name == "usual"
    poor = Runner(Candidate("usual", {}), UNCERTAIN)
    assert challenge(poor, [Candidate("right", {}), Candidate("close", {})], ask, 60).best != poor


def test_grey_models_have_no_channel_order() -> None:
    names = [
        candidate.name
        for candidate in pixel_candidates(
            Input(channels="L"), frozenset(), ["NCHW"], np.zeros((1, 3, 4, 4), np.float32)
        )
    ]
    assert "MNIST" in names and not any("RGB" in name for name in names)


def test_noise_is_measured_and_removed_where_it_is() -> None:
    random = np.random.default_rng(0)
    flat = np.full((2, 3, 32, 32), 0.5, np.float32)
    flat[1] += 0.1 * random.standard_normal((3, 32, 32)).astype(np.float32)
    noise = noise_of_each(flat)
    assert noise[0] == 0 and noise[1] == pytest.approx(0.1, rel=0.1)
    clean = smoothed(flat)
    np.testing.assert_array_equal(clean[0], flat[0])
    assert noise_of_each(clean)[1] < 0.04
    assert stretched(flat[:1]).std() == 0  # an image of one colour is not blown up


def test_own_conventions_come_from_a_file(tmp_path) -> None:
    file = tmp_path / "own.toml"
    file.write_text("[mine]\nmean = [0.1, 0.2, 0.3]\nstd = 0.5\n")
    assert read_conventions(file) == {
        "mine": {"pixel_range": 1.0, "mean": (0.1, 0.2, 0.3), "std": 0.5}
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mean = 3", "mean is not a table"),
        ("[mine]\nmeen = 3", "has the entry meen; use mean, std, pixel_range"),
        ("[mine]\nstd = 0", "must be positive"),
        ("[mine", "cannot be read as TOML"),
    ],
)
def test_a_wrong_file_is_refused_with_the_remedy(tmp_path, text: str, message: str) -> None:
    file = tmp_path / "own.toml"
    file.write_text(text)
    with pytest.raises(BoxError, match=message):
        read_conventions(file)
    assert checked({}) == {}
