"""Gradients estimated at the images: they point where the true ones do, every query counted."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch

from soda_tta import adapt
from soda_tta.adaptors import PaperNetwork
from soda_tta.box import Meter, ModuleBox, Quantised
from soda_tta.data import open_images
from soda_tta.engine.step import Batch, Task, loss_and_gradient
from soda_tta.errors import BudgetError, MethodError
from soda_tta.methods.input_space import (
    OwnPerturbations,
    ThroughNetwork,
    da_pgd,
    da_zoo_input,
    loss_of,
)
from soda_tta.objectives.equations import Soda
from soda_tta.objectives.reliable import Selection
from soda_tta.search import SGD
from soda_tta.search.descent import Descent

BOTH = [da_pgd, da_zoo_input.but(width=4)]
OBJECTIVE = Soda(alpha=1.0)
LABELS = np.array([0, 1, 2, 0, 1, 2])


@pytest.fixture
def white() -> ModuleBox:
    """A linear classifier of 3 x 4 x 4 pixels."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return ModuleBox(
            torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(48, 3)), logits=True
        )


@pytest.fixture
def small() -> np.ndarray:
    return np.random.default_rng(1).uniform(0.3, 0.7, (6, 3, 4, 4)).astype(np.float32)


def true_gradient(box: ModuleBox, images: np.ndarray, selection: Selection) -> np.ndarray:
    """The derivative of the loss by each pixel, through PyTorch."""
    pixels = torch.from_numpy(images).requires_grad_(True)
    rows = box.differentiable(pixels)
    slope = OBJECTIVE.slope(rows.detach().numpy(), selection.labels, selection.reliable)
    rows.backward(torch.from_numpy(slope).to(rows.dtype))
    return pixels.grad.numpy()


def estimated_gradient(method, box, images: np.ndarray, selection: Selection) -> np.ndarray:
    """The estimate of a method, as in its third step."""
    loss = partial(loss_of, OBJECTIVE, (selection.labels, selection.reliable))
    _, estimate = method.estimate(box, images, loss, seed=0, step=3)
    return estimate


def cosine(first: np.ndarray, second: np.ndarray) -> float:
    first = first.ravel()
    second = second.ravel()
    return float(first @ second / np.linalg.norm(first) / np.linalg.norm(second))


def test_the_learned_network_is_kept(white, small) -> None:
    run = adapt(small, white, method=da_zoo_input, epochs=3, width=4, lr=0.1)
    np.testing.assert_allclose(white(run.adaptor(small)), run.probabilities, atol=1e-5)
    assert run.ledger.queries["evaluate"] == len(small)
    untrained = da_zoo_input.but(width=4).network().build(0)
    assert not np.array_equal(run.adaptor.parameters, untrained.parameters)


@pytest.mark.parametrize(
    ("reliable", "deviation"),
    [([True] * 6, 0.2), ([False] * 6, 0.2), ([True, False] * 3, 0.2), ([True] * 6, 0.4)],
)
def test_the_estimate_is_sigma_squared_times_the_gradient_by_normalised_pixels(
    white, small, reliable, deviation: float
) -> None:
    selection = Selection(LABELS, np.array(reliable))
    # mu is large, so that the rounding of float32 responses does not matter
    method = da_pgd.but(q=8000, mu=0.1, sigma=0.5, deviation=deviation)
    estimate = estimated_gradient(method, white, small, selection)
    truth = deviation * true_gradient(white, small, selection)
    assert cosine(estimate, truth) > 0.95
    assert np.linalg.norm(estimate) == pytest.approx(0.25 * np.linalg.norm(truth), rel=0.1)


def test_pgd_moves_along_the_sign_of_the_true_gradient(white, small) -> None:
    selection = Selection(LABELS, np.ones(6, bool))
    method = da_pgd.but(q=8000, mu=0.1, sigma=0.5)
    estimate = estimated_gradient(method, white, small, selection)
    movable = OwnPerturbations(small.copy(), step=2e-4)
    movable.move(np.arange(6), estimate)
    change = movable.images - small
    truth = true_gradient(white, small, selection)
    np.testing.assert_allclose(np.abs(change), 2e-4, rtol=1e-3)
    clear = np.abs(truth) > np.quantile(np.abs(truth), 0.5)
    assert (np.sign(change) == -np.sign(truth))[clear].mean() > 0.98


@pytest.mark.parametrize("deviation", [0.2, 0.267])
def test_steps_and_networks_are_in_pixels_normalised_by_the_deviation(
    small, make_work, deviation: float
) -> None:
    work = make_work(small, np.full((6, 3), 1 / 3))
    movable = da_pgd.but(deviation=deviation, lr=1e-2).start(work)
    movable.move(np.arange(6), np.ones_like(small))
    np.testing.assert_allclose(
        small - movable.adapted(np.arange(6)), np.minimum(small, deviation * 1e-2), atol=1e-6
    )
    assert da_zoo_input.but(deviation=deviation).network().deviation == deviation
    for method in BOTH:
        with pytest.raises(MethodError, match="deviation"):
            method.but(deviation=0.0)


def test_pgd_stays_inside_the_pixel_range() -> None:
    movable = OwnPerturbations(np.array([0.0, 1.0, 0.5], np.float32).reshape(1, 3, 1, 1), step=2e-4)
    movable.move(np.array([0]), np.array([1.0, -1.0, 0.0]).reshape(1, 3, 1, 1))
    assert movable.images.ravel().tolist() == [0.0, 1.0, 0.5]


@pytest.mark.parametrize("deviation", [0.2, 0.267])
def test_zoo_input_carries_the_estimate_back_to_the_true_gradient_of_theta(
    white, small, deviation: float
) -> None:
    selection = Selection(LABELS, np.array([True, False] * 3))
    source = open_images(small)
    indices = np.arange(6)
    adaptor = PaperNetwork(width=4, deviation=deviation).build(seed=0)
    through = ThroughNetwork(source, adaptor, Descent(adaptor.parameters, SGD()))
    task = Task(source, Meter(white), selection, OBJECTIVE, batch=6, seed=0, reserve=0)
    batch = Batch(task, white, adaptor, indices, noise=0)
    _, truth = loss_and_gradient(batch, adaptor.parameters)

    # without an estimate: the chain rule alone
    at_images = deviation * true_gradient(white, through.adapted(indices), selection)
    np.testing.assert_allclose(through.gradient(indices, at_images), truth, atol=1e-5)

    method = da_zoo_input.but(q=4000, mu=0.1, sigma=0.5, deviation=deviation)
    estimate = estimated_gradient(method, white, through.adapted(indices), selection)
    assert cosine(through.gradient(indices, estimate), truth) > 0.9


def test_zoo_input_steps_by_sgd(white, small) -> None:
    adaptor = PaperNetwork(width=4).build(seed=0)
    rule = SGD(lr=0.1, momentum=0.0, weight_decay=0.0)
    through = ThroughNetwork(open_images(small), adaptor, Descent(adaptor.parameters, rule))
    at_images = np.ones((2, 3, 4, 4), np.float32)
    expected = adaptor.parameters - 0.1 * through.gradient(np.array([1, 4]), at_images)
    through.move(np.array([1, 4]), at_images)
    np.testing.assert_array_equal(through.search.theta, expected)


@pytest.mark.parametrize("method", BOTH, ids=lambda method: method.name)
def test_every_query_is_planned_counted_and_sent(method, box, model, images) -> None:
    run = adapt(images, box, method=method.but(epochs=3, batch=20, q=2))
    assert run.ledger.queries == {"select": 50, "probe": 50 * 3 * 3, "evaluate": 50}
    assert run.ledger.queries == run.card.plan["queries"]
    assert model.asked == run.ledger.total
    assert [step.queries for step in run.history[:3]] == [60, 60, 30]
    assert len(run.history) == 9
    assert run.probabilities.shape == run.before.shape


@pytest.mark.parametrize("method", BOTH, ids=lambda method: method.name)
def test_the_seed_decides_everything(method, box, images) -> None:
    method = method.but(epochs=2, batch=20, q=3, lr=0.1)
    first, again, other = (adapt(images, box, method=method, seed=seed) for seed in (5, 5, 6))
    np.testing.assert_array_equal(first.probabilities, again.probabilities)
    assert first.history == again.history
    assert not np.array_equal(first.probabilities, other.probabilities)


@pytest.mark.parametrize("method", BOTH, ids=lambda method: method.name)
def test_large_images_are_sent_in_pieces(method, box, images, monkeypatch) -> None:
    monkeypatch.setattr("soda_tta.methods.input_space.QUERY_BYTES", 5 * 6 * 3 * 8 * 8 * 4)
    run = adapt(images, box, method=method.but(epochs=1, batch=23))
    assert run.ledger.queries["probe"] == 300


def test_pgd_lowers_its_loss_on_a_model_it_can_follow(white, small, make_work) -> None:
    work = make_work(small, white(small), white)
    da_pgd.but(epochs=15, q=200, mu=0.1, lr=0.1, tau=0.0, rho=0.0, alpha=1.0).adapt(work)
    assert work.history[-1].loss < work.history[0].loss - 0.01


@pytest.mark.parametrize("method", BOTH, ids=lambda method: method.name)
def test_the_callers_images_are_not_changed(method, box, images) -> None:
    kept = images.copy()
    adapt(images, box, method=method.but(epochs=1, lr=0.1))
    np.testing.assert_array_equal(images, kept)


def test_impossible_settings_are_refused_before_the_first_query(box, model, images) -> None:
    for settings in ({"q": 0}, {"mu": 0.0}, {"lr": 0.0}, {"tau": 2.0}, {"epochs": 0}, {"queue": 3}):
        with pytest.raises(MethodError):
            da_pgd.but(**settings)
    for settings in ({"width": 0}, {"activation": "sine"}):
        with pytest.raises(MethodError):
            da_zoo_input.but(**settings)
    with pytest.raises(BudgetError, match="raise the budget"):
        adapt(images, box, method=da_pgd, budget=100)
    assert not model.asked


def test_q_is_another_name_for_directions() -> None:
    assert da_pgd.but(q="7") == replace(da_pgd, directions=7)


@pytest.mark.parametrize("method", BOTH, ids=lambda method: method.name)
def test_probes_that_drown_in_rounding_cause_a_notice_with_a_mu_that_helps(
    white, small, make_work, method
) -> None:
    bytes_only = Quantised(white)
    exact = make_work(small, white(small), white)
    rounded = make_work(small, white(small), bytes_only)
    (notice,) = method.notices(rounded)
    assert "rounding noise" in notice
    assert method.notices(exact) == []
    mu = float(notice.split("mu=")[1].rstrip(".)"))
    assert method.but(mu=mu).notices(rounded) == []
    with pytest.warns(UserWarning, match="rounding noise"):
        adapt(small, bytes_only, method=method, epochs=1)
