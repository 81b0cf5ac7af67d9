"""CMA-ES and its diagonal form, on functions whose minimum is known."""

import numpy as np
import pytest

from soda_tta.errors import MethodError
from soda_tta.search import Evolution

# An ellipsoid: one direction is 10,000 times as steep as another.
SCALES = np.array([1.0, 3.0, 10.0, 30.0, 100.0])


def sphere(points):
    return (points**2).sum(axis=1)


def ellipsoid(points):
    return ((SCALES * points) ** 2).sum(axis=1)


def evolve(search, function, generations: int):
    for _ in range(generations):
        search.tell(function(search.ask()))
    return search


@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize(("function", "generations"), [(sphere, 100), (ellipsoid, 300)])
def test_evolution_finds_the_minimum(function, generations: int, diagonal: bool) -> None:
    search = evolve(Evolution(diagonal=diagonal).start(np.ones(5), seed=1), function, generations)
    assert function(search.theta[None])[0] < 1e-4


def test_a_rotated_ellipsoid_needs_correlations() -> None:
    rotation, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((5, 5)))

    def rotated(points):
        return ellipsoid(points @ rotation)

    def minimum(diagonal: bool) -> float:
        search = Evolution(diagonal=diagonal).start(np.ones(5), seed=2)
        return rotated(evolve(search, rotated, 250).theta[None])[0]

    with_correlations = minimum(diagonal=False)
    assert with_correlations < 1e-4
    assert with_correlations < minimum(diagonal=True)


def test_the_diagonal_form_handles_hundreds_of_parameters() -> None:
    search = Evolution(population=20, diagonal=True).start(np.ones(400), seed=0)
    evolve(search, sphere, 150)
    assert search.theta.shape == (400,)
    assert sphere(search.theta[None])[0] < 0.5 * 400


def test_units_are_the_first_deviations_of_each_parameter() -> None:
    units = np.array([1.0, 0.1, 10.0])
    mean = np.array([5.0, 0.0, -50.0])
    search = Evolution(population=2000, sigma=0.3).start(mean, units=units, seed=0)
    points = search.ask()[1:]
    np.testing.assert_allclose(points.std(axis=0), 0.3 * units, rtol=0.1)
    np.testing.assert_allclose(points.mean(axis=0), mean, atol=0.05 * units.max())
    np.testing.assert_allclose(search.theta, mean)


@pytest.mark.parametrize("diagonal", [False, True])
def test_everything_follows_from_the_seed_and_not_from_numpys_global_state(diagonal: bool) -> None:
    before = np.random.get_state()[1].copy()  # noqa: NPY002 - it must not change
    first, second, third = (
        evolve(Evolution(diagonal=diagonal).start(np.ones(5), seed=seed), ellipsoid, 10)
        for seed in (3, 3, 4)
    )
    np.testing.assert_array_equal(first.theta, second.theta)
    np.testing.assert_array_equal(first.ask(), second.ask())
    assert np.abs(first.theta - third.theta).max() > 0
    np.testing.assert_array_equal(before, np.random.get_state()[1])  # noqa: NPY002


def test_ask_returns_the_mean_and_then_the_generation() -> None:
    settings = Evolution(population=7)
    points = settings.start(np.ones(3), units=np.array([1.0, 0.1, 10.0]), seed=5).ask()
    assert points.shape == (8, 3)
    assert settings.candidates == 8
    np.testing.assert_array_equal(points[0], np.ones(3))
    assert (points[1:] != np.ones(3)).all()


def test_ask_returns_the_same_generation_until_its_losses_are_told() -> None:
    search = Evolution().start(np.ones(5))
    first = search.ask()
    np.testing.assert_array_equal(first, search.ask())
    search.tell(sphere(first))
    assert not (search.ask() == first).any()


@pytest.mark.parametrize("diagonal", [False, True])
def test_the_loss_at_the_mean_is_ignored(diagonal: bool) -> None:
    settings = Evolution(diagonal=diagonal)
    correct = settings.start(np.ones(5), seed=1)
    wrong_at_the_mean = settings.start(np.ones(5), seed=1)
    assert correct.length == settings.sigma
    assert correct.count == 0
    for number in range(30):
        correct_points = correct.ask()
        losses = sphere(correct_points)
        correct.tell(losses)
        np.testing.assert_array_equal(wrong_at_the_mean.ask(), correct_points)
        wrong_at_the_mean.tell([(-1.0) ** number * 1e9, *losses[1:]])
    np.testing.assert_array_equal(correct.theta, wrong_at_the_mean.theta)
    assert correct.length == wrong_at_the_mean.length != settings.sigma
    assert wrong_at_the_mean.count == 30


@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("asked", [False, True])
def test_a_restored_search_continues_bit_for_bit(diagonal: bool, asked: bool) -> None:
    settings = Evolution(diagonal=diagonal)
    whole = evolve(settings.start(np.ones(5), units=SCALES, seed=3), ellipsoid, 20)
    half = evolve(settings.start(np.ones(5), units=SCALES, seed=3), ellipsoid, 8)
    # What the other search has learned before it is restored has no effect.
    other = evolve(settings.start(np.ones(5), units=SCALES, seed=3), sphere, 4)
    if asked:
        other.ask()
    other.restore(half.state())
    assert other.count == 8
    np.testing.assert_array_equal(whole.theta, evolve(other, ellipsoid, 12).theta)
    np.testing.assert_array_equal(whole.ask(), other.ask())


def test_the_state_is_the_losses_told_so_far() -> None:
    search = Evolution(population=4).start(np.zeros(3))
    assert search.state()["losses"].shape == (0, 5)
    search.tell([5.0, 1.0, 2.0, 3.0, 4.0])  # without ask(), as when a journal is replayed
    np.testing.assert_array_equal(search.state()["losses"], [[5.0, 1.0, 2.0, 3.0, 4.0]])


@pytest.mark.parametrize("count", [0, 2, 12, 14])
def test_a_wrong_number_of_losses_is_refused(count: int) -> None:
    search = Evolution().start(np.zeros(3))
    with pytest.raises(ValueError, match=f"{count} losses for 13 candidates"):
        search.tell(np.zeros(count))
    assert search.count == 0


def test_correlations_of_too_many_parameters_are_refused_with_the_remedy() -> None:
    assert Evolution().start(np.zeros(100)).theta.shape == (100,)
    with pytest.raises(MethodError, match=r"3,523 parameters.*diagonal=True"):
        Evolution().start(np.zeros(3523))
    assert Evolution(diagonal=True).start(np.zeros(3523)).ask().shape == (13, 3523)


def test_seeds_beyond_32_bits_are_accepted() -> None:
    assert Evolution().start(np.zeros(3), seed=2**40 + 1).ask().shape == (13, 3)


@pytest.mark.parametrize("wrong", [{"population": 3}, {"sigma": 0.0}, {"sigma": float("nan")}])
def test_impossible_settings_are_refused(wrong) -> None:
    with pytest.raises(MethodError, match="evolution"):
        Evolution(**wrong)


@pytest.mark.parametrize("diagonal", [False, True])
def test_equal_losses_do_not_move_the_mean(diagonal: bool) -> None:
    search = Evolution(diagonal=diagonal).start(np.ones(5), seed=2)
    first = search.ask()[1:]
    search.tell([0.0] * search.settings.candidates)
    np.testing.assert_array_equal(search.theta, np.ones(5))
    assert not np.array_equal(search.ask()[1:], first)  # the next generation differs
