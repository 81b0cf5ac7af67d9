import numpy as np
import pytest

from soda_tta.errors import MethodError
from soda_tta.search import Evolution

SCALES = np.array(
    [1.0, 3.0, 10.0, 30.0, 100.0]
)  # an ellipsoid: one direction is 10,000 times as steep as another


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
def test_it_finds_the_minimum(function, generations: int, diagonal: bool) -> None:
    search = evolve(Evolution(diagonal=diagonal).start(np.ones(5), seed=1), function, generations)
    assert function(search.theta[None])[0] < 1e-4


def test_a_turned_ellipsoid_needs_correlations() -> None:
    turn, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((5, 5)))

    def turned(points):
        return ellipsoid(points @ turn)

    whole, diagonal = (
        turned(evolve(Evolution(diagonal=kind).start(np.ones(5), seed=2), turned, 250).theta[None])[
            0
        ]
        for kind in (False, True)
    )
    assert whole < 1e-4 and whole < diagonal


def test_the_diagonal_form_takes_many_parameters() -> None:
    search = Evolution(population=20, diagonal=True).start(np.ones(400), seed=0)
    evolve(search, sphere, 150)
    assert search.theta.shape == (400,) and sphere(search.theta[None])[0] < 0.5 * 400


def test_units_are_the_first_deviations_of_each_parameter() -> None:
    units = np.array([1.0, 0.1, 10.0])
    search = Evolution(population=2000, sigma=0.3).start(np.array([5.0, 0.0, -50.0]), units, seed=0)
    points = search.ask()
    np.testing.assert_allclose(points.std(axis=0), 0.3 * units, rtol=0.1)
    np.testing.assert_allclose(points.mean(axis=0), [5.0, 0.0, -50.0], atol=0.05 * units.max())
    np.testing.assert_allclose(search.theta, [5.0, 0.0, -50.0])


@pytest.mark.parametrize("diagonal", [False, True])
def test_everything_follows_from_the_seed_and_leaves_numpys_own_alone(diagonal: bool) -> None:
    before = np.random.get_state()[1].copy()  # noqa: NPY002 - that it is not touched is the point
    first, second, third = (
        evolve(Evolution(diagonal=diagonal).start(np.ones(5), seed=seed), ellipsoid, 10)
        for seed in (3, 3, 4)
    )
    np.testing.assert_array_equal(first.theta, second.theta)
    np.testing.assert_array_equal(first.ask(), second.ask())
    assert np.abs(first.theta - third.theta).max() > 0
    np.testing.assert_array_equal(before, np.random.get_state()[1])  # noqa: NPY002


def test_a_generation_has_as_many_points_as_it_says_and_for_the_loop_the_mean_before_them() -> None:
    settings, units = Evolution(population=7), np.array([1.0, 0.1, 10.0])
    points = settings.start(np.ones(3), units, seed=5).ask()
    followed = settings.followed(np.ones(3), units, seed=5).ask()
    assert points.shape == (7, 3) and len(followed) == settings.candidates == 8
    np.testing.assert_array_equal(followed[0], np.ones(3))
    np.testing.assert_array_equal(followed[1:], points)


def test_a_generation_stays_until_its_losses_are_told() -> None:
    search = Evolution().start(np.ones(5))
    first = search.ask()
    np.testing.assert_array_equal(first, search.ask())
    search.tell(sphere(first))
    assert not (search.ask() == first).any()


@pytest.mark.parametrize("diagonal", [False, True])
def test_the_loss_at_the_mean_is_followed_and_not_heeded(diagonal: bool) -> None:
    settings = Evolution(diagonal=diagonal)
    plain, followed = settings.start(np.ones(5), seed=1), settings.followed(np.ones(5), seed=1)
    assert followed.length == settings.sigma and followed.count == 0
    for number in range(30):
        plain.tell(sphere(plain.ask()))
        followed.tell([(-1.0) ** number * 1e9, *sphere(followed.ask()[1:])])
    np.testing.assert_array_equal(plain.theta, followed.theta)
    assert plain.length == followed.length != settings.sigma and followed.count == 30


@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("asked", [False, True])
def test_one_picked_up_from_its_state_continues_bit_for_bit(diagonal: bool, asked: bool) -> None:
    settings = Evolution(diagonal=diagonal)
    whole = evolve(settings.followed(np.ones(5), SCALES, seed=3), ellipsoid, 20)
    half = evolve(settings.followed(np.ones(5), SCALES, seed=3), ellipsoid, 8)
    other = evolve(
        settings.followed(np.ones(5), SCALES, seed=3), sphere, 4
    )  # what it had learned is forgotten
    if asked:
        other.ask()
    other.restore(half.state())
    assert other.count == 8
    np.testing.assert_array_equal(whole.theta, evolve(other, ellipsoid, 12).theta)
    np.testing.assert_array_equal(whole.ask(), other.ask())


def test_a_state_is_what_was_told_however_little() -> None:
    search = Evolution(population=4).followed(np.zeros(3))
    assert search.state()["told"].shape == (0, 5)
    search.tell([5.0, 1.0, 2.0, 3.0, 4.0])  # without asking: a journal tells, too
    np.testing.assert_array_equal(search.state()["told"], [[5.0, 1.0, 2.0, 3.0, 4.0]])


@pytest.mark.parametrize("count", [0, 2, 11, 14])
def test_losses_of_the_wrong_number_are_refused(count: int) -> None:
    for search in (Evolution().start(np.zeros(3)), Evolution().followed(np.zeros(3))):
        with pytest.raises(ValueError, match=r"shorter|longer|unpack"):
            search.tell(np.zeros(count))


def test_correlations_of_too_many_parameters_are_refused_with_the_remedy() -> None:
    for start in (Evolution().start, Evolution().followed):
        assert start(np.zeros(100)).theta.shape == (100,)
        with pytest.raises(MethodError, match=r"3,523 parameters .*diagonal=true"):
            start(np.zeros(3523))
    assert Evolution(diagonal=True).followed(np.zeros(3523)).ask().shape == (13, 3523)


def test_any_seed_will_do() -> None:
    assert Evolution().start(np.zeros(3), seed=2**40 + 1).ask().shape == (12, 3)


@pytest.mark.parametrize("wrong", [{"population": 3}, {"sigma": 0.0}, {"sigma": float("nan")}])
def test_impossible_numbers_are_refused(wrong) -> None:
    with pytest.raises(MethodError, match="evolution"):
        Evolution(**wrong)


@pytest.mark.parametrize("diagonal", [False, True])
def test_losses_that_are_all_alike_give_no_direction(diagonal: bool) -> None:
    search = Evolution(diagonal=diagonal).followed(np.ones(5), seed=2)
    first = search.ask()[1:]
    search.tell([0.0] * search.settings.candidates)
    np.testing.assert_array_equal(search.theta, np.ones(5))
    assert not np.array_equal(search.ask()[1:], first)  # another generation comes next
