"""Multi-point search and its steps, against values worked out by hand and against PyTorch."""

import numpy as np
import pytest
import torch

from soda_tta.errors import MethodError
from soda_tta.search import SGD, Adam, MultiPoint

QUADRATIC = np.diag([1.0, 2.0, 3.0, 4.0])
POINT = np.array([1.0, -0.5, 0.25, 2.0])
GRADIENT = QUADRATIC @ POINT  # of f(x) = x'Ax / 2


def quadratic(points):
    return 0.5 * np.einsum("kd,de,ke->k", points, QUADRATIC, points)


def estimates(directions: int, draws: int, sigma: float = 1.0) -> np.ndarray:
    settings = MultiPoint(directions=directions, mu=1e-4, sigma=sigma)
    searches = [settings.start(POINT, step=SGD(), seed=seed) for seed in range(draws)]
    return np.array([search.estimate(quadratic(search.ask())) for search in searches])


def test_equation_1_by_hand() -> None:
    search = MultiPoint(directions=2, mu=0.5, sigma=1.0).start(np.zeros(2), step=SGD(), seed=0)
    points = search.ask()
    u = (points[1:] - points[0]) / 0.5
    by_hand = ((3.0 - 1.0) * u[0] + (0.0 - 1.0) * u[1]) / (0.5 * 2)
    np.testing.assert_allclose(search.estimate([1.0, 3.0, 0.0]), by_hand)


@pytest.mark.parametrize("sigma", [1.0, 0.1])
def test_the_mean_estimate_is_sigma_squared_times_the_gradient(sigma: float) -> None:
    mean = estimates(directions=5, draws=4000, sigma=sigma).mean(axis=0)
    np.testing.assert_allclose(mean / sigma**2, GRADIENT, atol=0.25)


def test_the_variance_shrinks_as_one_over_the_number_of_directions() -> None:
    variances = {q: estimates(q, draws=1500).var(axis=0).sum() for q in (1, 4, 16)}
    assert variances[1] / variances[4] == pytest.approx(4, rel=0.2)
    assert variances[1] / variances[16] == pytest.approx(16, rel=0.2)


def test_multi_point_search_finds_the_minimum_of_a_quadratic() -> None:
    settings = MultiPoint(directions=20, mu=1e-3, sigma=1.0)
    search = settings.start(POINT, step=SGD(lr=0.05, momentum=0.5), seed=0)
    for _ in range(200):
        search.tell(quadratic(search.ask()))
    assert np.abs(search.theta).max() < 1e-2


def test_ask_returns_the_same_points_until_losses_are_told() -> None:
    search = MultiPoint().start(POINT, step=SGD(), seed=0)
    first = search.ask()
    np.testing.assert_array_equal(first, search.ask())
    search.tell(quadratic(first))
    assert np.abs(search.ask()[1] - search.theta - (first[1] - POINT)).max() > 0


@pytest.mark.parametrize("rule", [SGD(lr=0.01), Adam(lr=0.01)], ids=["sgd", "adam"])
def test_a_restored_search_continues_bit_for_bit(rule) -> None:
    def advance(search, steps):
        for _ in range(steps):
            search.tell(quadratic(search.ask()))
        return search

    whole = advance(MultiPoint().start(POINT, step=rule, seed=3), 20)
    half = advance(MultiPoint().start(POINT, step=rule, seed=3), 8)
    other = MultiPoint().start(np.zeros(4), step=rule, seed=3)
    other.restore({name: array.copy() for name, array in half.state().items()})
    np.testing.assert_array_equal(advance(other, 12).theta, whole.theta)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (
            SGD(lr=0.1, momentum=0.9, weight_decay=0.01),
            lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01),
        ),
        (SGD(lr=0.1, momentum=0.0), lambda p: torch.optim.SGD(p, lr=0.1, weight_decay=1e-5)),
        (Adam(lr=0.1, weight_decay=0.01), lambda p: torch.optim.Adam(p, lr=0.1, weight_decay=0.01)),
    ],
)
def test_steps_equal_those_of_pytorch(ours, theirs) -> None:
    weight = torch.tensor(POINT, requires_grad=True)
    optimiser = theirs([weight])
    theta = POINT
    memory = ours.vectors(4)
    for count in range(1, 8):
        gradient = np.random.default_rng(count).normal(size=4)
        theta = ours.step(theta, gradient, count, memory)
        weight.grad = torch.tensor(gradient)
        optimiser.step()
    np.testing.assert_allclose(theta, weight.detach().numpy(), rtol=1e-9)


@pytest.mark.parametrize("wrong", [{"directions": 0}, {"mu": 0.0}, {"sigma": -1.0}])
def test_impossible_settings_are_refused(wrong) -> None:
    with pytest.raises(MethodError):
        MultiPoint(**wrong)


def test_a_wrong_number_of_losses_is_refused() -> None:
    with pytest.raises(ValueError, match="6 candidates"):
        MultiPoint(directions=5).start(POINT, step=SGD(), seed=0).tell([1.0, 2.0])
