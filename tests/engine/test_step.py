"""First-order evaluation against finite differences, and the objective's slope against its value."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from soda_tta.adaptors import PaperNetwork
from soda_tta.box import CallableBox, Ledger, Metered, ModuleBox, Quantised
from soda_tta.data import open_images
from soda_tta.engine.loop import Training
from soda_tta.engine.step import (
    Task,
    changes_by_groups,
    loss_and_gradient,
    losses_of_candidates,
    norm_slope,
)
from soda_tta.errors import BoxError
from soda_tta.objectives.equations import PseudoLabels, Soda, perturbation_norm
from soda_tta.objectives.reliable import Selection
from soda_tta.search import SGD, MultiPoint, PerImage

OBJECTIVES = [Soda(alpha=0.5), PseudoLabels(), Soda(alpha=0.0, beta=0.05)]


@pytest.mark.parametrize("objective", OBJECTIVES[:2], ids=str)
@pytest.mark.parametrize("reliable", [[True] * 6, [False] * 6, [True, False] * 3])
def test_the_slope_is_the_derivative_of_the_value(objective, reliable) -> None:
    rows = np.random.default_rng(0).dirichlet(np.full(4, 3.0), 6)
    labels, mask = np.array([0, 1, 2, 3, 0, 1]), np.array(reliable)
    slope = objective.slope(rows, labels, mask)
    for index in np.ndindex(*rows.shape):
        nudge = np.zeros(rows.shape)
        nudge[index] = 1e-6
        above, below = (objective(rows + sign * nudge, labels, mask).value for sign in (1, -1))
        difference = (above - below) / 2e-6
        assert slope[index] == pytest.approx(difference, abs=1e-4)


@pytest.fixture
def task(images) -> Task:
    torch.manual_seed(0)
    module = torch.nn.Sequential(
        torch.nn.Flatten(), torch.nn.Linear(192, 16), torch.nn.Tanh(), torch.nn.Linear(16, 4)
    )
    selection = Selection(np.arange(50) % 4, np.arange(50) % 5 == 0)
    box = ModuleBox(module, logits=True)
    return Task(
        open_images(images * 0.8 + 0.1),
        box,
        Ledger(),
        selection,
        Soda(),
        batch=50,
        seed=0,
        reserve=0,
    )


@pytest.mark.parametrize("objective", OBJECTIVES, ids=str)
@pytest.mark.parametrize(
    "network", [PaperNetwork(width=4), PaperNetwork(width=4, blocks=1, dropout=0.5)], ids=str
)
def test_the_gradient_agrees_with_finite_differences_of_the_black_box_loss(
    task, objective, network
) -> None:
    task = replace(task, objective=objective)
    adaptor, indices = network.build(seed=0), np.arange(20)
    theta = adaptor.parameters.astype(np.float64)
    loss, gradient = loss_and_gradient(task, task.box, adaptor, theta, indices, noise=3)
    (same,) = losses_of_candidates(task, task.box, adaptor, theta[None], indices, noise=3)
    assert loss.value == pytest.approx(same.value, abs=1e-5)
    direction = np.random.default_rng(1).standard_normal(theta.size)
    direction /= np.linalg.norm(direction)
    step = 1e-2
    pair = np.stack([theta + step * direction, theta - step * direction])
    plus, minus = losses_of_candidates(task, task.box, adaptor, pair, indices, noise=3)
    slope = (plus.value - minus.value) / (2 * step)
    assert gradient @ direction == pytest.approx(slope, rel=0.1, abs=2e-3)


@pytest.mark.parametrize("objective", OBJECTIVES, ids=str)
def test_the_gradient_is_the_same_in_pieces(task, objective, monkeypatch) -> None:
    task = replace(task, objective=objective)
    adaptor, indices = PaperNetwork(width=4).build(seed=0), np.arange(19)
    whole, gradient = loss_and_gradient(
        task, task.box, adaptor, adaptor.parameters, indices, noise=0
    )
    monkeypatch.setattr(
        "soda_tta.engine.step.PIECE_BYTES", 0
    )  # four images a piece, the last has three
    pieces, sum_of_gradients = loss_and_gradient(
        task, task.box, adaptor, adaptor.parameters, indices, noise=0
    )
    assert pieces.value == pytest.approx(whole.value, abs=1e-6)
    np.testing.assert_allclose(sum_of_gradients, gradient, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize(
    "network", [PaperNetwork(width=4), PaperNetwork(width=4, blocks=1, dropout=0.5)], ids=str
)
def test_the_slope_of_the_norm_is_that_of_the_whole_gradient(task, network) -> None:
    adaptor, indices = network.build(seed=0), np.arange(19)
    with_norm, without = (
        replace(task, objective=Soda(alpha=0.5, beta=beta)) for beta in (0.05, 0.0)
    )
    at = adaptor, adaptor.parameters.astype(np.float64), indices, 3
    difference = (
        loss_and_gradient(with_norm, task.box, *at)[1]
        - loss_and_gradient(without, task.box, *at)[1]
    )
    np.testing.assert_allclose(norm_slope(with_norm, *at), difference, atol=1e-5)


@pytest.mark.parametrize("search", [MultiPoint(), PerImage()], ids=str)
def test_the_norm_is_differentiated_and_not_estimated(task, search) -> None:
    """Behind a box that always answers the same there is nothing to estimate, and the step is the norm's alone."""
    box = CallableBox(lambda images: np.full((len(images), 4), 0.25, np.float32))
    task = replace(task, box=box, objective=Soda(beta=0.05))
    adaptor = PaperNetwork(width=4).build(seed=0)
    theta = adaptor.parameters.astype(np.float64)
    training = Training(
        task, adaptor, search.start(theta, SGD(lr=0.1, momentum=0, weight_decay=0), seed=0)
    )
    (step,) = training.advance(1, "probe")
    indices = np.random.default_rng([0, 1, 0]).permutation(50)  # the order of the first epoch
    slope = norm_slope(task, adaptor, theta, indices, 0).astype(
        np.float64
    )  # a step is made in double precision
    np.testing.assert_allclose(training.search.theta, theta - 0.1 * slope)
    (whole,) = losses_of_candidates(task, box, adaptor, theta[None], indices, noise=0)
    assert step.loss == pytest.approx(whole.value)


@pytest.mark.parametrize("deviation", [0.2, 0.4])
def test_the_norm_is_of_normalised_pixels(task, deviation: float) -> None:
    adaptor, indices = PaperNetwork(width=4, deviation=deviation).build(seed=0), np.arange(19)
    images, theta = task.images[indices], adaptor.parameters.astype(np.float64)
    norm = 0.05 * perturbation_norm((adaptor(images) - images) / deviation)
    weighed, plain = (replace(task, objective=Soda(beta=beta)) for beta in (0.05, 0.0))

    def losses(of: Task) -> list[float]:
        points = theta[None].repeat(3, axis=0)
        (asked,) = losses_of_candidates(of, of.box, adaptor, theta[None], indices, noise=0)
        grouped, _ = changes_by_groups(of, of.box, adaptor, points, indices, noise=0)
        differentiated, _ = loss_and_gradient(of, of.box, adaptor, theta, indices, noise=0)
        return [asked.value, grouped.value, differentiated.value]

    np.testing.assert_allclose(np.subtract(losses(weighed), losses(plain)), norm, rtol=1e-4)


def test_a_gradient_costs_one_query_an_image(task) -> None:
    adaptor = PaperNetwork(width=4).build(seed=0)
    box = Metered(task.box, task.ledger, "probe")
    loss_and_gradient(task, box, adaptor, adaptor.parameters, np.arange(20), noise=0)
    assert task.ledger.queries == {"probe": 20}


def test_boxes_without_a_gradient_say_so(task) -> None:
    with pytest.raises(BoxError, match="PyTorch module"):
        CallableBox(lambda x: x).differentiable(torch.zeros(1, 3, 8, 8))
    with pytest.raises(BoxError, match="rounds"):
        Quantised(task.box).differentiable(torch.zeros(1, 3, 8, 8))


def test_differentiable_probabilities_are_those_of_the_box(task, images) -> None:
    from soda_tta.box import Input

    module = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 4))
    for facts in (
        Input(),
        Input(channels="BGR", pixel_range=255, mean=(1, 2, 3), std=(50, 60, 70)),
        Input(layout="NHWC"),
    ):
        box = ModuleBox(module, input=facts, logits=True)
        ours = box.differentiable(torch.from_numpy(images)).detach().numpy()
        np.testing.assert_allclose(ours, box(images), atol=1e-5)
